"""Predictions come from the same levels and the same physics as the model they were fitted with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayesperf.errors import InputError, UnknownNameError
from bayesperf.inference.sampling import sample_prior
from bayesperf.model import Draws, Floats, Predicted, Request
from bayesperf.models.communication import Communication
from bayesperf.models.communication.build import build
from bayesperf.models.communication.coded import Encoded
from bayesperf.models.communication.encode import encode
from bayesperf.models.communication.predict import predict
from bayesperf.specs import check_targets
from tests.messages import messages_table

Fitted = tuple[pd.DataFrame, Encoded, Draws, Floats]

SIZES = (1e3, 1e6, 1e9)


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """A table of two campaigns, its coding, prior draws of every variable and of the times."""
    table = messages_table(
        1, targets=("a", "b"), campaigns=("one", "two"), ops=("all_reduce", "all_gather"), ranks=(2, 4), sizes=SIZES,
        processes=1,
    )  # fmt: skip
    encoded = encode(table)
    tree = sample_prior(build(encoded), draws=800, seed=3)
    flat = tree["prior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    times = tree["prior_predictive"]["log_time"].stack(sample=("chain", "draw")).transpose("sample", ...)
    return table, encoded, {str(k): np.asarray(v, dtype=float) for k, v in flat.data_vars.items()}, times.to_numpy()


@pytest.fixture(scope="module")
def known(fitted: Fitted) -> Fitted:
    """One campaign, and every parameter known exactly: what is left is what was not measured."""
    table, _, draws, times = fitted
    once = table[table["campaign"] == "one"].reset_index(drop=True)
    exact = {name: np.repeat(v[:1], 400, axis=0) for name, v in draws.items() if not name.startswith("campaign")}
    return once, encode(once), exact, times


def _predict(fitted: Fitted, rows: pd.DataFrame, request: Request, targets: pd.DataFrame | None = None) -> Predicted:
    _, encoded, draws, _ = fitted
    return predict(encoded, draws, rows, request, targets, np.random.default_rng(4))


def test_predictor_equals_the_model_it_is_derived_from(fitted: Fitted) -> None:
    """Kolmogorov-Smirnov over every row between PyMC's prior predictive and ours, Holm-corrected."""
    table, encoded, _, expected = fitted
    predicted = _predict(fitted, table, Request(effect="none", own=True))
    noise = np.random.default_rng(5).standard_t(predicted.tail[:, None], size=predicted.log_time.shape)
    ours = predicted.log_time + np.hypot(predicted.misfit, np.sqrt(encoded.within)) * noise
    p = np.sort([scipy.stats.ks_2samp(ours[:, i], expected[:, i]).pvalue for i in range(ours.shape[1])])
    assert (p * np.arange(len(p), 0, -1) > 0.001).all()


def _spread(known: Fitted, targets: pd.DataFrame | None = None, **change: Any) -> float:
    row = known[0].iloc[[1]].assign(**change)
    return float(_predict(known, row, Request(effect="none"), targets).log_time.std())


def test_the_further_from_what_was_measured_the_wider(known: Fitted) -> None:
    sheets = check_targets(pd.DataFrame({"device": ["new"], "bandwidth_bytes_per_s": [1e12]}))
    same, ranks, op = _spread(known), _spread(known, n_devices=64), _spread(known, op="all_to_all")
    assert same < 1e-9
    assert 0.01 < ranks < op < _spread(known, sheets, target="new")


def test_limits_are_parts_of_the_time(fitted: Fitted) -> None:
    predicted = _predict(fitted, fitted[0], Request(effect="none", own=True))
    assert set(predicted.terms) == {"overhead", "communication"}
    parts = np.exp(np.stack(list(predicted.terms.values())))
    np.testing.assert_allclose(parts.sum(axis=0), np.exp(predicted.log_time), rtol=1e-6)
    np.testing.assert_allclose(sum(predicted.shares.values()), 1.0)
    moving = predicted.shares["communication"].mean(axis=0)
    assert (moving[fitted[0]["message_bytes"] == 1e9] > moving[fitted[0]["message_bytes"] == 1e3].max()).all()


@pytest.mark.parametrize("name", ["fitted", "known"])
def test_a_fresh_campaign_is_shared_by_its_rows(name: str, request: pytest.FixtureRequest) -> None:
    seen: Fitted = request.getfixturevalue(name)
    table = seen[0][seen[0]["target"] == "a"]
    fresh, same = _predict(seen, table, Request()), _predict(seen, table, Request(effect="none"))
    shift = fresh.log_time - same.log_time
    assert (shift.std(axis=0) > 0.01).all()
    # But for its part on latency and on bytes.
    assert np.corrcoef(shift, rowvar=False).min() > 0.2
    assert ("campaign spread assumed, one campaign seen" in fresh.notes) == (name == "known")


def test_campaigns_and_targets_are_named_when_unknown(fitted: Fitted) -> None:
    with pytest.raises(UnknownNameError, match="yesterday"):
        _predict(fitted, fitted[0], Request(campaign="yesterday"))
    with pytest.raises(UnknownNameError, match="measure collectives"):
        _predict(fitted, fitted[0].assign(target="elsewhere"), Request())
    with pytest.raises(InputError, match="roofline"):
        _predict(fitted, fitted[0].assign(op="matmul"), Request())
    with pytest.raises(InputError, match=r"workload 0 \(all_reduce\) has no n_devices"):
        _predict(fitted, fitted[0].drop(columns="n_devices"), Request())


def test_quantities_are_what_their_names_say(fitted: Fitted) -> None:
    _, encoded, draws, _ = fitted
    found = {(q.name, q.target, q.label): q for q in Communication().quantities(encoded, draws)}
    latency = found["message_latency", "a", "all_gather, 2 ranks"]
    small = fitted[0].iloc[[0]].assign(target="a", op="all_gather", n_devices=2, message_bytes=1.0)
    effect = Request(effect="none")
    np.testing.assert_allclose(
        np.median(latency.draws), np.exp(np.median(_predict(fitted, small, effect).log_time)), rtol=0.1
    )
    rate = found["bus_bandwidth", "a", "all_gather, 2 ranks"].draws
    large = small.assign(message_bytes=1e18)
    np.testing.assert_allclose(
        np.median(rate), 0.5e18 / np.exp(np.median(_predict(fitted, large, effect).log_time)), rtol=0.1
    )
    assert ("link_scaling", "a", "link rate when ranks double") in found
