"""Predictions come from the same levels and the same physics as the model they were fitted with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayesperf.errors import InputError, UnknownNameError
from bayesperf.inference.sampling import sample_prior
from bayesperf.model import Draws, Floats, Predicted, Request
from bayesperf.models.roofline.build import build
from bayesperf.models.roofline.coded import Encoded
from bayesperf.models.roofline.encode import encode
from bayesperf.models.roofline.predict import predict
from bayesperf.specs import check_targets
from tests.tables import products_table, roofline_table


def _prior(encoded: Encoded, draws: int = 1500) -> tuple[Draws, Floats]:
    tree = sample_prior(build(encoded), draws=draws, seed=3)
    flat = tree["prior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    predictive = tree["prior_predictive"]["log_time"].stack(sample=("chain", "draw")).transpose("sample", ...)
    return {str(k): np.asarray(v, dtype=float) for k, v in flat.data_vars.items()}, predictive.to_numpy()


@pytest.mark.parametrize(
    "table",
    [
        roofline_table(1, campaigns=("one",), processes=1),
        roofline_table(1, campaigns=("one", "two"), processes=1),
        products_table(1),
    ],
    ids=["one campaign", "two campaigns", "many shapes"],
)
def test_predictor_equals_the_model_it_is_derived_from(table: pd.DataFrame) -> None:
    """Kolmogorov-Smirnov over every row between PyMC's prior predictive and ours, Holm-corrected."""
    encoded = encode(table, None)
    draws, expected = _prior(encoded)
    predicted = predict(encoded, draws, table, Request(effect="none", own=True), None, np.random.default_rng(4))
    noise = np.random.default_rng(5).standard_t(predicted.tail[:, None], size=predicted.log_time.shape)
    within = np.sqrt(encoded.within)
    ours = predicted.log_time + np.hypot(predicted.misfit, within) * noise
    p = np.sort([scipy.stats.ks_2samp(ours[:, i], expected[:, i]).pvalue for i in range(ours.shape[1])])
    assert (p * np.arange(len(p), 0, -1) > 0.001).all()


def test_new_members_are_wider_than_measured_ones() -> None:
    table = roofline_table(1)
    encoded = encode(table, None)
    draws, _ = _prior(encoded, 400)
    pinned = {name: np.repeat(values[:1], 400, axis=0) for name, values in draws.items()}
    workloads = table.iloc[[0]].assign(op="matmul")
    known = predict(encoded, pinned, workloads, Request(effect="none"), None, np.random.default_rng(1))
    new_op = predict(
        encoded, pinned, workloads.assign(op="conv"), Request(effect="none"), None, np.random.default_rng(1)
    )
    fresh = predict(encoded, pinned, workloads, Request(), None, np.random.default_rng(1))
    assert known.log_time.std() < 1e-12
    assert new_op.log_time.std() > 0.2
    assert 0.01 < fresh.log_time.std() < 0.2
    assert fresh.notes == ("campaign spread assumed, one campaign seen",)


def test_a_fresh_campaign_after_one_has_twice_the_variance() -> None:
    table = roofline_table(1)
    encoded = encode(table, None)
    draws, _ = _prior(encoded, 400)
    pinned = {name: np.repeat(values[:1], 40_000, axis=0) for name, values in draws.items()}
    spread = {}
    for effect in ("fresh", "mean"):
        request = Request(effect=effect)
        predicted = predict(encoded, pinned, table.iloc[[0]], request, None, np.random.default_rng(2))
        spread[effect] = predicted.log_time.var()
    assert spread["fresh"] / spread["mean"] == pytest.approx(2.0, rel=0.1)


def test_rows_without_a_campaign_are_one_campaign_and_not_the_fresh_one() -> None:
    table = roofline_table(1).drop(columns="campaign")
    encoded = encode(table, None)
    draws, _ = _prior(encoded, 400)
    pinned = {name: np.repeat(values[:1], 400, axis=0) for name, values in draws.items()}
    for own in (False, True):
        fresh = predict(encoded, pinned, table.iloc[[0]], Request(own=own), None, np.random.default_rng(1))
        same = predict(
            encoded, pinned, table.iloc[[0]], Request(effect="none", own=own), None, np.random.default_rng(1)
        )
        assert fresh.log_time.std() > 0.01
        assert same.log_time.std() < 1e-9


def test_rows_of_one_campaign_share_its_effect() -> None:
    table = roofline_table(1)
    encoded = encode(table, None)
    draws, _ = _prior(encoded, 500)
    pinned = {name: np.repeat(values[:1], 500, axis=0) for name, values in draws.items()}
    predicted = predict(encoded, pinned, table.iloc[[0, 2]], Request(), None, np.random.default_rng(2))
    correlation = np.asarray(np.corrcoef(predicted.log_time, rowvar=False))[0, 1]
    assert correlation > 0.3


def test_a_target_known_by_its_spec_sheet_alone() -> None:
    sheets = check_targets(
        pd.DataFrame(
            {"device": ["new"], "peak_flops_float32": [1e13], "bandwidth_bytes_per_s": [1e12], "cache_bytes": [4e7]}
        )
    )
    table = roofline_table(1)
    encoded = encode(table, sheets)
    draws, _ = _prior(encoded, 1000)
    workload = pd.DataFrame(
        {"target": ["new"], "op": ["matmul"], "dtype": ["float32"], "flops": [1e13], "bytes": [1e9]}
    )
    predicted = predict(encoded, draws, workload, Request(), sheets, np.random.default_rng(2))
    lower, upper = np.exp(np.quantile(predicted.log_time, [0.05, 0.95]))
    assert lower < 1.6 < upper
    assert lower > 0.7
    assert upper < 8.0


def test_unknown_names_say_what_exists() -> None:
    table = roofline_table(1)
    encoded = encode(table, None)
    draws, _ = _prior(encoded, 10)
    rng = np.random.default_rng(1)
    with pytest.raises(UnknownNameError, match="there are: box"):
        predict(encoded, draws, table.iloc[[0]].assign(target="bix"), Request(), None, rng)
    # It is there, but says nothing of how fast the device is.
    sheets = check_targets(pd.DataFrame({"device": ["bix"], "cache_bytes": [1e6], "peak_flops_float32": [np.nan]}))
    with pytest.raises(InputError, match=r"bix was not measured.* says neither peak_flops_<dtype> nor bandwidth_bytes"):
        predict(encoded, draws, table.iloc[[0]].assign(target="bix"), Request(), sheets, rng)
    with pytest.raises(UnknownNameError, match="monday"):
        predict(encoded, draws, table.iloc[[0]], Request(campaign="tuesday"), None, rng)
    exact = predict(encoded, draws, table.iloc[[0]], Request(campaign="monday"), None, rng)
    none = predict(encoded, draws, table.iloc[[0]], Request(effect="none"), None, rng)
    np.testing.assert_allclose(exact.log_time, none.log_time)


def test_unmeasured_shapes_and_targets_are_wider_where_a_discrepancy_is_known() -> None:
    table = products_table(1)
    encoded = encode(table, None)
    assert list(encoded.bases) == ["matmul"]
    draws, _ = _prior(encoded, 400)
    pinned = {name: np.repeat(values[:1], 400, axis=0) for name, values in draws.items()}

    def predicted(workloads: pd.DataFrame, targets: pd.DataFrame | None = None) -> Predicted:
        return predict(encoded, pinned, workloads, Request(effect="none"), targets, np.random.default_rng(1))

    row = table.iloc[[0]]
    known = predicted(row)
    far = predicted(row.assign(flops=1e18, bytes=1e9, parallelism=1e7))
    scale = np.hypot(pinned["shape_cell_scale"][:, 0], pinned["shape_scale"][:, 0])
    np.testing.assert_allclose(far.misfit[:, 0] ** 2, pinned["misfit"][:, 0] ** 2 + scale**2, rtol=1e-6)
    assert known.misfit[0, 0] < far.misfit[0, 0]
    sheet = check_targets(pd.DataFrame({"device": ["new"], "peak_flops_float32": [4e11]}))
    assert np.isfinite(predicted(row.assign(target="new"), sheet).log_time).all()
