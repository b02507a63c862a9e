"""Programs: kernels' times added draw by draw, on a model whose every draw is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesperf as bp
from bayesperf.errors import InputError
from bayesperf.inference.infer import Inference
from bayesperf.model import Draws, Floats, PerformanceModel, Predicted, Quantity, Request
from bayesperf.prediction.program import ProgramPrediction
from bayesperf.prediction.standins import stand_in
from bayesperf.schema import validate, with_ids

DRAWS = 4000
SECONDS = {"matmul": 1e-3, "fma_chain": 2e-3, "softmax": 5e-4, "dispatch": 1e-4, "allocation": 3e-4}


class Known(PerformanceModel):
    """Every operation takes its second of the list; `shared` errors are common to all, `misfit` is not."""

    name, version = "known", "1"

    def __init__(self, shared: float = 0.0, misfit: float = 0.0):
        self.shared, self.misfit = shared, misfit

    def encode(self, table: pd.DataFrame, targets: pd.DataFrame | None) -> Any:
        return None

    def observations(self, encoded: Any) -> pd.DataFrame:
        raise NotImplementedError

    def build(self, encoded: Any) -> Any:
        raise NotImplementedError

    def quantities(self, encoded: Any, draws: Draws) -> list[Quantity]:
        return []

    def caveats(self, encoded: Any) -> list[str]:
        return []

    def predict(
        self,
        encoded: Any,
        draws: Draws,
        workloads: pd.DataFrame,
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Predicted:
        base = np.log([SECONDS[op] for op in workloads["op"]])
        error = self.shared * draws["error"][:, None]
        time = np.broadcast_to(base + error, (len(error), len(workloads)))
        launches = workloads["op"].isin(["dispatch", "allocation"]).to_numpy()
        compute = workloads["op"].isin(["matmul"]).to_numpy()

        def term(mask: Any) -> Floats:
            return np.where(mask, time, -80.0)

        terms = {"compute": term(compute), "memory": term(~compute & ~launches), "overhead": term(launches)}
        shares = {name: (values > -80.0).astype(float) for name, values in terms.items()}
        zero = np.zeros(time.shape)
        return Predicted(time, zero + self.misfit, zero, np.full(len(error), 1e6), terms, shares, ("as it is known",))


def profile(shared: float = 0.0, misfit: float = 0.0) -> bp.Profile:
    error = np.random.default_rng(7).standard_normal((2, DRAWS // 2))
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"error": (("chain", "draw"), error)})})
    rows = pd.DataFrame(
        {
            "target": "box", "op": list(SECONDS), "dtype": "float32", "flops": [1e9, 1e9, 1e9, 0, 0],
            "bytes": [1e6, 1e6, 1e6, 0, 1e6], "time_s": list(SECONDS.values()), "n_devices": 1.0,
        }
    )  # fmt: skip
    table = with_ids(validate(rows), source="known")
    return bp.Profile(Inference(tree, Known(shared, misfit), None, table, None, [], {}))


def kernels(*ops: str, **columns: Any) -> pd.DataFrame:
    table = pd.DataFrame({"op": list(ops), "dtype": "float32", "flops": 1e9, "bytes": 1e6, "count": 1.0})
    return table.assign(instruction=[f"{op}.{at}" for at, op in enumerate(ops)], **columns)


def predicted(of: bp.Profile, table: pd.DataFrame, **options: Any) -> ProgramPrediction:
    return of.predict_program(table, draws=DRAWS, **options)


def width(draws: Any) -> float:
    lower, upper = np.quantile(np.log(draws), [0.05, 0.95])
    return float(upper - lower)


def test_times_are_counted_and_added_with_one_launch() -> None:
    table = kernels("matmul", "softmax", count=[12.0, 3.0])
    assert float(predicted(profile(), table).median()) == pytest.approx(12e-3 + 1.5e-3 + 1e-4)
    assert float(predicted(profile(), table, launch="none").median()) == pytest.approx(12e-3 + 1.5e-3)


def test_a_queued_launch_counts_where_it_is_longer() -> None:
    assert float(predicted(profile(), kernels("softmax"), launch="queued").median()) == pytest.approx(5e-4)
    table = kernels("softmax", count=0.1)
    step = predicted(profile(), table, launch="queued")
    assert float(step.median()) == pytest.approx(1e-4)
    assert float(step.limits.sel(limit="overhead")) == 1.0
    assert step.shares.values.tolist() == [0.0, 1.0]


def test_shared_errors_do_not_average_out() -> None:
    one = predicted(profile(shared=0.1), kernels("matmul"), launch="none")
    many = predicted(profile(shared=0.1), kernels(*["matmul", "fma_chain", "softmax"] * 10), launch="none")
    assert width(many.draws) == pytest.approx(width(one.draws), rel=1e-6)
    assert width(one.draws) == pytest.approx(2 * 1.645 * 0.1, rel=0.05)


def test_misfits_of_different_configurations_average_out_and_those_of_one_do_not() -> None:
    of = profile(misfit=0.1)
    one = predicted(of, kernels("matmul"), launch="none")
    repeated = predicted(of, kernels("matmul", count=25.0), launch="none")
    rows = predicted(of, kernels(*["matmul"] * 25), launch="none")
    different = predicted(of, kernels(*["matmul"] * 25, flops=np.linspace(1e9, 2e9, 25)), launch="none")
    assert width(repeated.draws) == pytest.approx(width(one.draws), rel=1e-6)
    assert width(rows.draws) == pytest.approx(width(one.draws), rel=1e-6)
    assert width(different.draws) == pytest.approx(width(one.draws) / 5, rel=0.15)
    np.testing.assert_array_equal(rows.kernel_draws.values[:, 0], rows.kernel_draws.values[:, 24])


def test_limits_are_weighted_by_time() -> None:
    step = predicted(profile(), kernels("matmul", "softmax", count=[1.0, 2.0]), launch="wait")
    limits = step.limits
    assert float(limits.sum()) == pytest.approx(1.0)
    assert float(limits.sel(limit="compute")) == pytest.approx(1 / 2.1)
    assert float(limits.sel(limit="memory")) == pytest.approx(1 / 2.1)
    assert float(limits.sel(limit="overhead")) == pytest.approx(0.1 / 2.1)


def test_quantiles_interval_and_cdf_agree() -> None:
    step = predicted(profile(shared=0.2), kernels("matmul"))
    lower, upper = step.interval(0.8).values
    np.testing.assert_allclose(step.quantile([0.1, 0.9]).values, [lower, upper])
    assert step.cdf(float(step.median())) == pytest.approx(0.5, abs=0.01)
    assert step.interval().dims == ("bound",)
    with pytest.raises(InputError, match="between 0 and 1"):
        step.interval(1.0)
    with pytest.raises(InputError, match="between 0 and 1"):
        step.quantile(1.2)


def test_a_row_for_each_kernel_and_one_for_the_launch() -> None:
    table = kernels("matmul", "softmax", count=[4.0, 2.0], mine=["a", "b"])
    frame = predicted(profile(), table).by_kernel()
    assert list(frame.columns[: len(table.columns)]) == list(table.columns)
    assert frame["instruction"].tolist() == ["matmul.0", "softmax.1", "launch"]
    assert frame["total_s"].tolist() == pytest.approx([4e-3, 1e-3, 1e-4])
    assert frame["median_s"].tolist() == pytest.approx([1e-3, 5e-4, 1e-4])
    assert frame["share"].sum() == pytest.approx(1.0)


def test_what_a_run_allocates_is_part_of_its_launch() -> None:
    table = kernels("matmul")
    table.attrs = {"output_bytes": 8e5, "temporary_bytes": 2e5}
    step = predicted(profile(), table)
    assert float(step.median()) == pytest.approx(1e-3 + 3e-4)
    launch = step.by_kernel().iloc[-1]
    assert (launch["op"], launch["bytes"]) == ("allocation", 1e6)


def test_a_kernel_like_a_measured_one_stands_in_and_is_named() -> None:
    step = predicted(profile(), kernels("elementwise"), launch="none")
    assert float(step.median()) == pytest.approx(2e-3)
    assert step.by_kernel()["predicted_as"].tolist() == ["fma_chain"]
    assert any("elementwise was not measured: predicted as fma_chain" in note for note in step.notes)


@pytest.mark.parametrize(
    ("op", "functions", "measured", "found"),
    [
        ("elementwise", 0.0, {"elementwise", "fma_chain"}, "elementwise"),
        ("elementwise", 0.0, {"stream_add", "fma_chain"}, "fma_chain"),
        ("elementwise", 0.9, {"exp", "fma_chain"}, "exp"),
        ("elementwise", 0.9, {"fma_chain"}, "elementwise"),
        ("stream_copy", 0.0, {"stream_triad"}, "stream_triad"),
        ("sort", 0.0, {"matmul"}, "sort"),
    ],
)
def test_stand_ins(op: str, functions: float, measured: set[str], found: str) -> None:
    assert stand_in(op, functions, measured) == found


def test_support_is_weighted_by_time() -> None:
    step = predicted(profile(), kernels("matmul", "fma_chain", flops=[1e9, 1e15]), launch="none")
    assert step.supported_share == pytest.approx(1 / 3)
    assert not step.supported
    assert predicted(profile(), kernels("matmul")).supported
    row = step.to_frame(0.8).iloc[0]
    assert (row["kernels"], row["interval"], row["target"]) == (2, 0.8, "box")
    assert row["flops"] == 1e9 + 1e15


def test_unknown_counts_are_refused_by_name() -> None:
    table = kernels("matmul", count=np.nan)
    table.attrs = {"unknown_trip_counts": ["while.7"]}
    with pytest.raises(InputError, match=r"while\.7.*trip_counts"):
        predicted(profile(), table)
    with pytest.raises(InputError, match="at least 0"):
        predicted(profile(), kernels("matmul", count=-1.0))
    with pytest.raises(InputError, match="no kernels"):
        predicted(profile(), kernels("matmul", count=0.0))


def test_a_program_runs_on_one_target_and_is_launched_one_way() -> None:
    with pytest.raises(InputError, match="one target"):
        predicted(profile(), kernels("matmul", "softmax", target=["box", "other"]))
    with pytest.raises(InputError, match="wait, queued, none"):
        predicted(profile(), kernels("matmul"), launch="sometimes")
