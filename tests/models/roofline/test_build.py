"""Whatever table comes, the model has named dims, a finite density and a finite gradient where sampling starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from pytensor.compile.mode import Mode

from bayesperf.errors import InputError
from bayesperf.models.roofline.build import build
from bayesperf.models.roofline.encode import encode
from bayesperf.models.roofline.model import Roofline
from bayesperf.schema import validate, with_ids
from bayesperf.specs import check_targets
from tests.tables import products_table, roofline_table

PLAIN = Mode("py", "fast_compile")
SHEETS = check_targets(
    pd.DataFrame(
        {"device": ["box"], "peak_flops_float32": [4e11], "bandwidth_bytes_per_s": [4e10], "cache_bytes": [1e6]}
    )
)


def _bare(**columns: list[object]) -> pd.DataFrame:
    return with_ids(validate(pd.DataFrame(columns)), source="bare")


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "one target": lambda: roofline_table(1),
    "three targets": lambda: roofline_table(1, targets=("a", "b", "c")),
    "three campaigns": lambda: roofline_table(1, campaigns=("x", "y", "z")),
    "many shapes": lambda: products_table(1),
    "many shapes of one target": lambda: products_table(1, targets=("a",)),
    "one repeat": lambda: roofline_table(1, processes=1),
    "one row": lambda: _bare(target=["a"], op=["matmul"], flops=[1e9], bytes=[1e6], time_s=[1e-3]),
    "copies only": lambda: _bare(
        target=["a"] * 3, op=["copy"] * 3, flops=[0] * 3, bytes=[1e6, 1e7, 1e8], time_s=[1e-4, 1e-3, 1e-2]
    ),
    "launches only": lambda: _bare(target=["a"] * 2, op=["noop"] * 2, flops=[0, 0], bytes=[0, 0], time_s=[1e-5, 2e-5]),
    "compute without bytes": lambda: _bare(
        target=["a"] * 2, op=["fma"] * 2, flops=[1e9, 1e10], bytes=[0, 0], time_s=[1e-2, 1e-1]
    ),
    "extreme": lambda: _bare(target=["a"] * 2, op=["x", "y"], flops=[1.0, 1e22], bytes=[1.0, 1e18], time_s=[1e-9, 1e6]),
}


@pytest.mark.parametrize(("name", "sheets"), [*((name, None) for name in TABLES), ("one target", SHEETS)])
def test_density_and_gradient_are_finite_at_the_start(name: str, sheets: pd.DataFrame | None) -> None:
    encoded = encode(TABLES[name](), sheets)
    model = build(encoded)
    point = model.initial_point(random_seed=1)
    assert np.isfinite(model.compile_logp(mode=PLAIN)(point))
    assert np.isfinite(model.compile_dlogp(mode=PLAIN)(point)).all()


@pytest.mark.parametrize("name", TABLES)
def test_variables_carry_named_dims(name: str) -> None:
    model = build(encode(TABLES[name](), None))
    for variable in model.free_RVs:
        assert len(model.named_vars_to_dims.get(variable.name, ())) == variable.ndim, variable.name


def test_campaign_spread_is_sampled_only_where_it_can_be_learned() -> None:
    def names(table: pd.DataFrame) -> set[str]:
        return {variable.name for variable in build(encode(table, None)).free_RVs}

    assert "campaign_spread" not in names(roofline_table(1, targets=("a", "b")))
    assert "campaign_spread" in names(roofline_table(1, campaigns=("x", "y")))


def test_repeats_of_a_configuration_are_one_observation() -> None:
    single, repeated = encode(roofline_table(1, processes=1), None), encode(roofline_table(1, processes=5), None)
    assert len(single.log_time) == len(repeated.log_time) == 18
    assert len(single.scatter.dof) == 0
    assert (repeated.scatter.dof == 4).all()
    assert all(len(ids) == 5 for ids in repeated.ids)


def test_prior_rates_rarely_exceed_the_peak() -> None:
    encoded = encode(roofline_table(1), SHEETS)
    with build(encoded):
        prior = pm.sample_prior_predictive(
            draws=2000, random_seed=1, var_names=["rate"], compile_kwargs={"mode": PLAIN}
        )
    rate = prior["prior"]["rate"].sel(rate_cell="box|matmul|float32").to_numpy()
    # Not never: sheets can be wrong.
    assert 0.001 < np.mean(np.exp(rate) > 4e11) < 0.05


def test_what_has_no_roofline_is_left_out_and_said() -> None:
    table = roofline_table(1)
    chase = table.iloc[:4].assign(op="pointer_chase", measurement_id=[f"chase{i}" for i in range(4)])
    beside = table.iloc[:2].assign(corunners="stream_triad*1", measurement_id=["beside0", "beside1"])
    ranks = table.iloc[:3].assign(op="all_reduce", n_devices=4, measurement_id=[f"ranks{i}" for i in range(3)])
    both = pd.concat([table, chase, beside, ranks], ignore_index=True)
    model = Roofline()
    encoded = model.encode(both, None)
    assert encoded.ids == model.encode(table, None).ids
    # A reduction on two devices is a kernel; one that sends a message is a collective.
    local = table.iloc[:1].assign(op="reduce", n_devices=2, measurement_id="local")
    sent = local.assign(message_bytes=4e6, measurement_id="sent")
    reduced = model.encode(pd.concat([both, local, sent], ignore_index=True), None)
    assert reduced.ids == [*encoded.ids, ["local"]]
    said = " ".join(model.caveats(encoded))
    assert "4 rows of pointer_chase" in said
    assert "2 rows beside co-runners" in said
    assert "3 collectives" in said
    with pytest.raises(InputError, match="pointer_chase"):
        model.encode(chase.reset_index(drop=True), None)
