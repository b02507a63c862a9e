"""The registered model through the engine's contract: with draws of its prior, and, slowly, with a real fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from _contention import KERNELS, Target, pairs, table
from _mixes import multiplied, with_slowdowns

import bayesperf as bp
from bayesperf.errors import InputError
from bayesperf.inference.infer import Inference
from bayesperf.inference.sampling import sample_prior
from bayesperf.model import Request
from bayesperf.models.contention import Contention, slowdown
from bayesperf.models.roofline import Roofline
from bayesperf.schema import rows_for

MIXES = [(KERNELS[0], KERNELS[1], KERNELS[1]), (KERNELS[1], KERNELS[1], KERNELS[0])]


def simulated() -> pd.DataFrame:
    """Two targets, one that shares and one that takes turns."""
    made = [
        table(target, list(pairs(KERNELS[:2])), seed, heldout=MIXES, campaigns=1)
        for seed, target in enumerate((Target("box"), Target("taker", turns=True)))
    ]
    return pd.concat(made, ignore_index=True)


@pytest.fixture(scope="module")
def built() -> tuple[Any, pd.DataFrame, pm.Model]:
    """Coding, rows and PyMC model of the rows to fit."""
    rows = rows_for(simulated(), "fit").reset_index(drop=True)
    encoded = Contention().encode(rows, None)
    return encoded, rows, Contention().build(encoded)


@pytest.fixture(scope="module")
def profile(built: tuple[Any, pd.DataFrame, pm.Model]) -> bp.Profile:
    """A profile whose posterior is its prior: what is made of draws does not depend on where they come from."""
    model, (encoded, rows, pymc) = Contention(), built
    tree = sample_prior(pymc, draws=20, seed=1)
    groups = {"posterior": tree["prior"].to_dataset(), "prior": tree["prior"].to_dataset()}
    facts = {"caveats": model.caveats(encoded)}
    return bp.Profile(Inference(xr.DataTree.from_dict(groups), model, encoded, rows, None, [], facts))


def test_one_observed_variable_holds_all_rows(built: tuple[Any, pd.DataFrame, pm.Model]) -> None:
    encoded, _, model = built
    seen = Contention().observations(encoded)
    (name,) = [v.name for v in model.observed_RVs if model.named_vars_to_dims[v.name] == ("observation",)]
    assert name == "log_time"
    assert list(model.coords["observation"]) == [ids[0] for ids in seen["measurement_ids"]]
    np.testing.assert_allclose(model["observed_log_time"].get_value(), seen["log_time"])


def test_what_runs_alone_is_predicted_as_the_roofline_does(profile: bp.Profile) -> None:
    alone = profile.table[profile.table["corunners"].isna()].drop(columns=["time_s", "corunners"])
    encoded, draws = profile.inference.encoded, profile.draws()
    ours = Contention().predict(encoded, draws, alone, Request(), None, np.random.default_rng(1))
    theirs = Roofline().predict(encoded.solo, draws, alone, Request(), None, np.random.default_rng(1))
    np.testing.assert_array_equal(ours.log_time, theirs.log_time)
    np.testing.assert_array_equal(ours.misfit, theirs.misfit)
    # And no less where other rows of the same table do not run alone.
    table = profile.table.drop(columns="time_s")
    mixed = Contention().predict(encoded, draws, table, Request(effect="none"), None, np.random.default_rng(1))
    rows = np.flatnonzero(table["corunners"].isna())
    same = Roofline().predict(encoded.solo, draws, table, Request(effect="none"), None, np.random.default_rng(1))
    np.testing.assert_array_equal(mixed.log_time[:, rows], same.log_time[:, rows])
    assert (mixed.terms["interference"][:, rows] < -79).all()
    assert (mixed.shares["interference"][:, rows] == 0).all()


def test_shares_sum_to_one_and_interference_is_a_limit(profile: bp.Profile) -> None:
    mixes = rows_for(simulated(), "heldout").drop(columns="time_s")
    found = profile.predict(mixes)
    total = sum(np.asarray(share) for share in found.parts.shares.values())
    np.testing.assert_allclose(total, 1.0, atol=1e-9)
    limits = found.limits
    np.testing.assert_allclose(limits.sum("limit"), 1.0)
    turns = mixes["target"].to_numpy() == "taker"
    assert float(limits.sel(limit="interference")[turns].mean()) > 0
    assert {"p_interference", "median_s"} <= set(found.to_frame().columns)


def test_notes_say_what_was_assumed(profile: bp.Profile) -> None:
    work = {"op": "matmul", "dtype": "float32", "flops": 1e9, "bytes": 1e6, "target": "box"}
    found = profile.predict([{**work, "corunners": "stream_triad:1+fortnite:1"}])
    said = " ".join(found.notes)
    assert "average" in said
    assert "half" in said
    assert not any("beside" in note for note in profile.predict([work]).notes)


def test_slowdowns_are_of_at_least_one_and_need_co_runners(profile: bp.Profile) -> None:
    rows = with_slowdowns(simulated())
    found = slowdown(profile, rows.drop(columns="time_s"), draws=20)
    assert (found["slowdown_lower"] <= found["slowdown"]).all()
    assert (found["slowdown_upper"] > 1.0).all()
    assert (multiplied(profile, rows) > 1.0).all()
    with pytest.raises(InputError, match="corunners"):
        slowdown(profile, rows.drop(columns=["time_s", "corunners"]))


def test_named_parameters(profile: bp.Profile) -> None:
    found = profile.parameters()
    assert {"contention_memory", "contention_compute", "shared_memory", "sharing_turns"} <= set(found["parameter"])
    evidence = found.set_index(["parameter", "target"])["evidence"]
    beside = set(profile.table.loc[profile.table["corunners"].notna(), "measurement_id"])
    assert set(evidence["contention_memory", "box"]) <= beside
    assert "take turns on taker" in " ".join(profile.facts["caveats"])


@pytest.mark.slow
def test_mixes_follow_from_pairs() -> None:
    rows = simulated()
    profile = bp.fit(rows_for(rows, "fit"), model="contention", draws=400, tune=500, chains=2, seed=3)
    held = with_slowdowns(rows)
    held = held[held["role"] == "heldout"].reset_index(drop=True)
    found = slowdown(profile, held.drop(columns="time_s"))
    error = np.abs(found["slowdown"] / held["measured"] - 1.0)
    assert error.mean() < 0.1
    assert np.abs(multiplied(profile, held) / held["measured"] - 1.0).mean() > error.mean()
    assert held["measured"].between(found["slowdown_lower"], found["slowdown_upper"]).mean() > 0.7
    assert set(profile.validate(rows).groups["target"]) == {"box", "taker"}
