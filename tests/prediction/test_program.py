"""Programs: kernels' times added draw by draw, on a model whose every draw is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.errors import InputError
from bayesperf.prediction.arrange import PAGE_BYTES, _ratio, arrange, checked
from bayesperf.prediction.program import ProgramPrediction, _launch_times
from bayesperf.prediction.runs import HAND_OVER_S
from bayesperf.prediction.standins import StandIn, kin_factors, stand_in
from tests.known import DRAWS, known_profile


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
    assert float(predicted(known_profile(), table).median()) == pytest.approx(12e-3 + 1.5e-3 + 1e-4)
    assert float(predicted(known_profile(), table, launch="none").median()) == pytest.approx(12e-3 + 1.5e-3)


def test_a_queued_launch_counts_where_it_is_longer() -> None:
    assert float(predicted(known_profile(), kernels("softmax"), launch="queued").median()) == pytest.approx(5e-4)
    table = kernels("softmax", count=0.1)
    step = predicted(known_profile(), table, launch="queued")
    assert float(step.median()) == pytest.approx(1e-4)
    assert float(step.limits.sel(limit="overhead")) == 1.0
    assert step.shares.values.tolist() == [0.0, 1.0]


def test_shared_errors_do_not_average_out() -> None:
    one = predicted(known_profile(shared=0.1), kernels("matmul"), launch="none")
    many = predicted(known_profile(shared=0.1), kernels(*["matmul", "fma_chain", "softmax"] * 10), launch="none")
    assert width(many.draws) == pytest.approx(width(one.draws), rel=1e-6)
    assert width(one.draws) == pytest.approx(2 * 1.645 * 0.1, rel=0.05)


def test_misfits_of_different_configurations_average_out_and_those_of_one_do_not() -> None:
    of = known_profile(misfit=0.1)
    one = predicted(of, kernels("matmul"), launch="none")
    repeated = predicted(of, kernels("matmul", count=25.0), launch="none")
    rows = predicted(of, kernels(*["matmul"] * 25), launch="none")
    different = predicted(of, kernels(*["matmul"] * 25, flops=np.linspace(1e9, 2e9, 25)), launch="none")
    assert width(repeated.draws) == pytest.approx(width(one.draws), rel=1e-6)
    assert width(rows.draws) == pytest.approx(width(one.draws), rel=1e-6)
    assert width(different.draws) == pytest.approx(width(one.draws) / 5, rel=0.15)
    np.testing.assert_array_equal(rows.kernel_draws.values[:, 0], rows.kernel_draws.values[:, 24])


def test_limits_are_weighted_by_time() -> None:
    step = predicted(known_profile(), kernels("matmul", "softmax", count=[1.0, 2.0]), launch="wait")
    limits = step.limits
    assert float(limits.sum()) == pytest.approx(1.0)
    assert float(limits.sel(limit="compute")) == pytest.approx(1 / 2.1)
    assert float(limits.sel(limit="memory")) == pytest.approx(1 / 2.1)
    assert float(limits.sel(limit="overhead")) == pytest.approx(0.1 / 2.1)


def test_quantiles_interval_and_cdf_agree() -> None:
    step = predicted(known_profile(shared=0.2), kernels("matmul"))
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
    frame = predicted(known_profile(), table).by_kernel()
    assert list(frame.columns[: len(table.columns)]) == list(table.columns)
    assert frame["instruction"].tolist() == ["matmul.0", "softmax.1", "launch"]
    assert frame["total_s"].tolist() == pytest.approx([4e-3, 1e-3, 1e-4])
    assert frame["median_s"].tolist() == pytest.approx([1e-3, 5e-4, 1e-4])
    assert frame["share"].sum() == pytest.approx(1.0)


def test_what_a_run_allocates_is_part_of_its_launch() -> None:
    table = kernels("matmul")
    table.attrs = {"output_bytes": 8e5, "temporary_bytes": 2e5}
    step = predicted(known_profile(), table)
    assert float(step.median()) == pytest.approx(1e-3 + 3e-4)
    launch = step.by_kernel().iloc[-1]
    assert (launch["op"], launch["bytes"]) == ("allocation", PAGE_BYTES)


def test_a_kernel_like_a_measured_one_stands_in_and_is_named() -> None:
    step = predicted(known_profile(), kernels("elementwise"), launch="none")
    assert float(step.median()) == pytest.approx(2e-3, rel=0.02)
    assert width(step.draws) == pytest.approx(2 * 1.645 * 0.25, rel=0.05)
    assert step.by_kernel()["predicted_as"].tolist() == ["fma_chain"]
    assert any("elementwise was not measured: predicted as fma_chain" in note for note in step.notes)


@pytest.mark.parametrize(
    ("op", "share", "function", "measured", "found"),
    [
        ("elementwise", 0.0, None, {"elementwise", "fma_chain"}, StandIn("elementwise", "measured")),
        ("elementwise", 0.0, None, {"stream_add", "fma_chain"}, StandIn("fma_chain", "near")),
        ("elementwise", 0.2, "exp", {"exp", "fma_chain"}, StandIn("exp", "measured", functions=True)),
        ("elementwise", 0.04, "exp", {"exp", "fma_chain"}, StandIn("fma_chain", "near")),
        ("reduce", 0.2, "power", {"tanh", "reduce"}, StandIn("tanh", "far", functions=True)),
        ("elementwise", 0.2, "exp", {"fma_chain"}, StandIn("elementwise", "unknown")),
        ("matmul", 0.5, "exp", {"exp", "matmul"}, StandIn("matmul", "measured")),
        ("softmax", 0.2, "exp", {"exp", "softmax"}, StandIn("softmax", "measured")),
        ("softmax", 0.2, "exp", {"exp"}, StandIn("exp", "measured", functions=True)),
        ("stream_copy", 0.0, None, {"stream_triad"}, StandIn("stream_triad", "near")),
        ("reduce_columns", 0.0, None, {"stream_read"}, StandIn("stream_read", "near")),
        ("conv2d", 0.0, None, {"matmul"}, StandIn("matmul", "far")),
        ("sort", 0.0, None, {"matmul"}, StandIn("sort", "unknown")),
    ],
)
def test_stand_ins(op: str, share: float, function: str | None, measured: set[str], found: StandIn) -> None:
    assert stand_in(op, share, function, measured) == found


def test_a_product_across_rows_runs_like_the_measured_one_and_not_just_so() -> None:
    step = predicted(known_profile(), kernels("matmul", "matmul", across=[True, False]), launch="none")
    logs = np.log(step.kernel_draws.values)
    assert logs.std(axis=0) == pytest.approx([0.25, 0.0], abs=0.02)
    assert step.supported
    assert any("matmul across rows was not measured: predicted as matmul" in note for note in step.notes)


def test_a_stand_in_is_off_by_a_factor_that_its_family_shares() -> None:
    families = [("elementwise", "fma_chain"), ("elementwise", "fma_chain"), ("matmul", "matmul"), ("sort", "sort")]
    logs = np.log(kin_factors(families, ["near", "near", "measured", "unknown"], 20_000, seed=1))
    assert (logs[:, 2] == 0).all()
    np.testing.assert_allclose(logs.mean(axis=0), [0.0, 0.0, 0.0, 1.5], atol=0.03)
    np.testing.assert_allclose(logs.std(axis=0), [0.25, 0.25, 0.0, 1.5], atol=0.03)
    # Half of the variance is the family's: kernels of one family are wrong together.
    assert np.corrcoef(logs[:, 0], logs[:, 1])[0, 1] == pytest.approx(0.5, abs=0.03)
    assert np.corrcoef(logs[:, 0], logs[:, 3])[0, 1] == pytest.approx(0.0, abs=0.03)


def test_functions_count_alone_where_they_decide() -> None:
    of = known_profile()
    table = kernels("elementwise", flops=[1e6], function_values=[4e5], transcendentals=[4e5], function=["exp"])
    arranged = arrange(of, checked(table), "box", launched=False)
    # Nothing that evaluates functions was measured on this box.
    assert arranged.kin == ["unknown"]
    assert arranged.rows["flops"].tolist() == [1e6]
    with_exp = replace(of.inference, rows=of.table.assign(op=of.table["op"].replace("softmax", "exp")))
    arranged = arrange(bp.Profile(with_exp), checked(table), "box", launched=False)
    assert (arranged.kin, arranged.rows["flops"].tolist()) == (["measured"], [4e5])


def test_kernels_in_parts_run_as_on_all_devices() -> None:
    of = known_profile()
    one, two = of.table.assign(target="box-x1"), of.table.assign(target="box-x2", n_devices=2.0)
    both = bp.Profile(replace(of.inference, rows=pd.concat([one, two], ignore_index=True)))
    table = kernels("fma_chain", "fma_chain", "fma_chain", threads=[np.nan, 2.0, 8.0], n_devices=1.0)
    arranged = arrange(both, checked(table), "box-x1", launched=True)
    assert arranged.rows["target"].tolist()[:4] == ["box-x1", "box-x2", "box-x1", "box-x1"]
    assert arranged.rows["n_devices"].tolist()[:3] == [1.0, 2.0, 1.0]
    # A program on all of them is not cut again.
    assert set(arrange(both, checked(table), "box-x2", launched=False).rows["target"]) == {"box-x2"}
    step = both.predict_program(table, "box-x1", draws=DRAWS)
    assert step.to_frame().loc[0, "target"] == "box-x1"


def test_kernels_in_parts_that_only_one_device_tells_about_run_as_parts_of_it() -> None:
    of = known_profile()
    one = of.table.assign(target="box-x1", op=of.table["op"].replace("softmax", "transpose"))
    two = of.table[of.table["op"] != "softmax"].assign(target="box-x2", n_devices=2.0)
    both = bp.Profile(replace(of.inference, rows=pd.concat([one, two], ignore_index=True)))
    table = kernels("transpose", "fma_chain", "sort", threads=2.0, n_devices=1.0, working_set_bytes=1e6)
    arranged = arrange(both, checked(table), "box-x1", launched=False)
    assert arranged.rows["target"].tolist() == ["box-x1", "box-x2", "box-x2"]
    assert arranged.rows["n_devices"].tolist() == [1.0, 2.0, 2.0]
    assert arranged.rows["bytes"].tolist() == [5e5, 1e6, 1e6]
    assert arranged.rows["working_set_bytes"].tolist() == [5e5, 1e6, 1e6]
    assert arranged.kin == ["near", "measured", "unknown"]
    # What is shown is the whole kernel.
    assert arranged.table["bytes"].tolist() == [1e6] * 3


def test_each_kernel_in_parts_is_handed_over() -> None:
    table = kernels("matmul", "matmul", threads=[2.0, 1.0], flops=[1e9, 2e9], count=[100.0, 1.0])
    step = predicted(known_profile(), table, launch="none")
    once = step.by_kernel()["median_s"]
    assert once.tolist() == pytest.approx([1e-3 + HAND_OVER_S, 1e-3], rel=1e-3)


def noisy(sd: float, processes: int) -> bp.Profile:
    """The known profile, its points measured in processes that were slower or faster as a whole."""
    of, rng = known_profile(), np.random.default_rng(3)
    work = pd.concat([of.table[of.table["flops"] > 0].assign(flops=1e9 * (1 + at)) for at in range(6)])
    factors = np.exp(sd * rng.standard_normal(processes))
    rows = pd.concat(
        [
            work.assign(process=f"one-{at}", time_s=work["time_s"] * factor, statistic="slope", intercept_s=9e-4)
            for at, factor in enumerate(factors)
        ],
        ignore_index=True,
    )
    return bp.Profile(replace(of.inference, rows=rows))


def test_the_moment_of_a_run_does_not_average_out() -> None:
    table = kernels(*["matmul"] * 40, flops=np.geomspace(1e8, 1e10, 40))
    quiet, loud = noisy(0.0, 30), noisy(0.2, 30)
    assert width(predicted(quiet, table, launch="none").draws) < 0.01
    assert width(predicted(loud, table, launch="none").draws) == pytest.approx(2 * 1.7 * 0.2, rel=0.35)


def test_waiting_for_a_long_run_costs_what_intercepts_say() -> None:
    of = noisy(0.0, 3)
    assert float(predicted(of, kernels("matmul", count=[100.0])).median()) == pytest.approx(0.1 + 9e-4, rel=1e-3)
    short = float(predicted(of, kernels("matmul", count=[0.01])).median())
    assert short == pytest.approx(1e-4 + 1e-5 + 8e-4 * 0.02, rel=0.01)
    # Nobody sleeps who issues the next run.
    assert float(predicted(of, kernels("matmul"), launch="queued").median()) == pytest.approx(1e-3)


def test_a_launch_of_a_program_that_computes_is_one_that_is_handed_on() -> None:
    small, large = kernels("matmul", flops=10.0), kernels("matmul")
    for table in (small, large):
        table.attrs = {"output_bytes": 16.0, "platform": "cpu"}
    assert predicted(known_profile(), small).by_kernel().iloc[-1]["op"] == "dispatch"
    assert predicted(known_profile(), large).by_kernel().iloc[-1]["op"] == "allocation"


def test_each_buffer_adds_what_it_takes_beyond_a_small_one_and_its_writing() -> None:
    of = known_profile()
    with_copy = bp.Profile(
        replace(of.inference, rows=of.table.assign(op=of.table["op"].replace("softmax", "stream_copy")))
    )
    table = kernels("matmul")
    # Of three results one takes the place of an argument; scalars cost nothing.
    table.attrs = {"output_bytes": 2e6 + 4, "outputs": [1e6, 1e6, 1e6, 4.0], "temporary_bytes": 5e5}
    arranged = arrange(with_copy, checked(table), "box", launched=True)
    assert arranged.launch == ("launch", "written", "written")
    behind = arranged.rows.iloc[1:]
    assert behind["bytes"].tolist() == [PAGE_BYTES, 5e5, 1e6]
    assert behind["count"].tolist() == [1, 1, 2]
    assert behind["op"].tolist() == ["allocation", "stream_copy", "stream_copy"]
    # The base, nothing for the smaller buffer, whose writing explains it, and twice what is left of the larger.
    parts = np.array([[10.0, 30.0, 35.0]])
    known = replace(arranged, rows=arranged.rows.assign(ratio=[np.nan, np.nan, 3.0, 5.0]))
    assert _launch_times(parts, known).tolist() == [10.0 + 2 * (40.0 - 35.0)]


def test_allocations_between_measured_sizes_and_beyond() -> None:
    sizes, times = [4096.0, 4096.0 * 256, 4096.0 * 65536], [1e-5, 2e-5, 8e-5]
    measured = pd.DataFrame({"op": "allocation", "bytes": sizes * 2, "time_s": times * 2})
    assert _ratio(measured, 4096.0) == pytest.approx(1.0)
    assert _ratio(measured, 4096.0 * 16) == pytest.approx(2**0.5)
    assert _ratio(measured, 4096.0 * 4096) == pytest.approx(4.0)
    assert _ratio(measured, 4096.0 * 65536 * 3) == pytest.approx(24.0)


def test_a_program_without_kernels_is_a_launch() -> None:
    step = predicted(known_profile(), kernels("scalar"))
    assert float(step.median()) == pytest.approx(1e-4)
    assert any("only the launch" in note for note in step.notes)
    with pytest.raises(InputError, match="no kernels"):
        predicted(known_profile(), kernels("scalar"), launch="none")


def test_support_is_weighted_by_time() -> None:
    step = predicted(known_profile(), kernels("matmul", "fma_chain", flops=[1e9, 1e15]), launch="none")
    assert step.supported_share == pytest.approx(1 / 3)
    assert not step.supported
    assert predicted(known_profile(), kernels("matmul")).supported
    unknown = predicted(known_profile(), kernels("matmul", "sort", count=[0.0001, 1.0]), launch="none")
    assert unknown.supported_share < 0.1
    assert unknown.by_kernel()["unsupported_features"].tolist() == ["", "op"]
    row = step.to_frame(0.8).iloc[0]
    assert (row["kernels"], row["interval"], row["target"]) == (2, 0.8, "box")
    assert row["flops"] == 1e9 + 1e15


def test_unknown_counts_are_refused_by_name() -> None:
    table = kernels("matmul", count=np.nan)
    table.attrs = {"unknown_trip_counts": ["while.7"]}
    with pytest.raises(InputError, match=r"while\.7.*trip_counts"):
        predicted(known_profile(), table)
    with pytest.raises(InputError, match="at least 0"):
        predicted(known_profile(), kernels("matmul", count=-1.0))


def test_a_program_runs_on_one_target_and_is_launched_one_way() -> None:
    with pytest.raises(InputError, match="one target"):
        predicted(known_profile(), kernels("matmul", "softmax", target=["box", "other"]))
    with pytest.raises(InputError, match="wait, queued, none"):
        predicted(known_profile(), kernels("matmul"), launch="sometimes")
