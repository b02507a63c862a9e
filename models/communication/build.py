"""The PyMC model of a coded table. Equations in `physics`, levels in `hierarchy`, reasons for priors in `priors`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesperf.models.communication.coded import Encoded
from bayesperf.models.communication.hierarchy import (
    TERMS,
    Members,
    byte_location,
    latency_location,
    members_of,
    row_terms,
)
from bayesperf.models.communication.physics import protocol_times
from bayesperf.models.communication.priors import PRIORS
from bayesperf.models.communication.start import starting_points

__all__ = ["build"]

DIMS = {"target": "target", "op": "op", "pair": "pair", "cell": "cell", "campaign": "campaign_cell"}
"""Dim of each level; members are labelled by their parts, joined by ``|``."""

MIN_MEMBERS = 3
"""A level with fewer members does not teach its own spread: it is fixed at the prior median."""


def build(encoded: Encoded) -> pm.Model:
    """Build the model; dims are named after the levels."""
    members = members_of(encoded.labels, encoded.anchor)
    # No bounds to check: every scale is positive by construction.
    with pm.Model(coords=_coords(encoded), check_bounds=False) as model:
        p = _fabrics(encoded)
        _cells(encoded, p, members)
        _noise(encoded, p)
        _campaigns(encoded, p)
        _likelihood(encoded, p)
    for name, value in starting_points(encoded, members).items():
        model.set_initval(model[name], value)
    return model


def _coords(encoded: Encoded) -> dict[str, Any]:
    coords: dict[str, Any] = {
        dim: ["|".join(label) for label in encoded.labels.of(level)] for level, dim in DIMS.items()
    }
    coords |= {"term": list(TERMS), "observation": [ids[0] for ids in encoded.ids]}
    coords["repeated"] = np.arange(len(encoded.scatter.dof))
    return coords


def _spread(name: str, median: float, members: int) -> Any:
    """Scale of a level: learned from enough members, else fixed at the prior median (and stored as if drawn)."""
    if members >= MIN_MEMBERS:
        return pm.LogNormal(name, np.log(median), 0.5)
    return pm.Deterministic(name, pt.as_tensor(np.float64(median)))


def _members(name: str, location: Any, spread: Any, informed: Any, dim: str) -> Any:
    """Hierarchical members: centred where their own rows determine them, non-centred where the prior does."""
    centred = pt.as_tensor(informed)
    raw = pm.Normal(f"{name}_raw", pt.switch(centred, location, 0.0), pt.switch(centred, spread, 1.0), dims=dim)
    return pm.Deterministic(name, pt.switch(centred, raw, location + spread * raw), dims=dim)


def _effects(name: str, spread: Any, dim: str) -> Any:
    """Effects around the mean of those measured, which the level above already holds."""
    raw = pm.Normal(f"{name}_raw", 0.0, 1.0, dims=dim)
    return pm.Deterministic(name, spread * (raw - raw.mean()), dims=dim)


def _fabrics(encoded: Encoded) -> dict[str, Any]:
    """What belongs to targets, and to collectives on all of them."""
    ops = len(encoded.labels.of("op"))
    p: dict[str, Any] = {
        name: pm.Normal(name, *prior, dims="target")
        for name, prior in (("link", PRIORS.link), ("own", PRIORS.own), ("start", PRIORS.start), ("step", PRIORS.step))
    }
    p["growth"] = pm.StudentT("growth", nu=PRIORS.growth_tail, mu=0.0, sigma=PRIORS.growth_spread, dims="target")
    p["exponent_mean"] = pm.Normal("exponent_mean", *PRIORS.exponent)
    raw = pm.Normal("exponent_raw", 0.0, 1.0, dims="op")
    p["exponent"] = pm.Deterministic("exponent", p["exponent_mean"] + PRIORS.exponent_spread * raw, dims="op")
    for name, median in (
        ("step_operation", PRIORS.step_operation_spread),
        ("link_operation", PRIORS.link_operation_spread),
    ):
        p[f"{name}_spread"] = _spread(f"{name}_spread", median, ops)
        p[name] = _effects(name, p[f"{name}_spread"], "op")
    return p


def _cells(encoded: Encoded, p: dict[str, Any], members: Members) -> None:
    """Latency and time of a byte of every collective at every number of ranks, and its protocols."""
    informed, pairs = encoded.informed, len(encoded.labels.of("pair"))
    for name, locate, pair_median, cell_median in (
        ("latency", latency_location, PRIORS.latency_pair_spread, PRIORS.latency_cell_spread),
        ("byte", byte_location, PRIORS.byte_pair_spread, PRIORS.byte_cell_spread),
    ):
        known = informed[name]
        p[f"{name}_pair_spread"] = _spread(f"{name}_pair_spread", pair_median, _count(known, members.cell_pair))
        raw = pm.Normal(f"{name}_pair_raw", 0.0, 1.0, dims="pair")
        p[f"{name}_pair"] = pm.Deterministic(f"{name}_pair", p[f"{name}_pair_spread"] * raw, dims="pair")
        # What one number of ranks differs by shows only beside another of the same pair.
        beside = int(known.sum()) - _count(known, members.cell_pair)
        p[f"{name}_cell_spread"] = _spread(f"{name}_cell_spread", cell_median, beside)
        p[name] = _members(name, locate(pt, p, members), p[f"{name}_cell_spread"], known, "cell")
    for name, prior in (("handshake", PRIORS.handshake), ("flags", PRIORS.flags)):
        p[f"{name}_mean"] = pm.Normal(f"{name}_mean", *prior)
        spread = _spread(f"{name}_spread", PRIORS.protocol_spread, int(informed["protocol"].sum()))
        p[f"{name}_spread"] = spread
        location = pt.repeat(p[f"{name}_mean"], pairs)
        p[name] = _members(name, location, spread, informed["protocol"], "pair")


def _count(known: Any, parent: Any) -> int:
    return len(np.unique(parent[known]))


def _noise(encoded: Encoded, p: dict[str, Any]) -> None:
    pairs = len(encoded.labels.of("pair"))
    for name, prior, spread in (
        ("misfit", PRIORS.misfit, PRIORS.misfit_pair_spread),
        ("repeat", PRIORS.repeat, PRIORS.repeat_pair_spread),
    ):
        if name == "misfit" or len(encoded.scatter.dof):
            p[f"{name}_mean"] = pm.Normal(f"{name}_mean", *prior)
            log_scale = _members(
                f"log_{name}", pt.repeat(p[f"{name}_mean"], pairs), spread, encoded.informed[name], "pair"
            )
            p[name] = pm.Deterministic(name, pt.exp(log_scale), dims="pair")
    if len(encoded.log_time) >= PRIORS.tail_rows:
        p["tail"] = pm.Deterministic("tail", 2.0 + pm.LogNormal("tail_raw", np.log(PRIORS.tail - 2.0), 0.5))
    else:
        p["tail"] = pm.Deterministic("tail", pt.as_tensor(np.float64(PRIORS.tail)))


def _campaigns(encoded: Encoded, p: dict[str, Any]) -> None:
    """Campaign effects, where some target was measured in more than one campaign.

    With one campaign each, their spread cannot be learned: parameters are then those of that campaign, and the
    prediction for a fresh one adds the difference of two effects.
    """
    if not encoded.learns_campaigns:
        return
    p["campaign_spread"] = pm.LogNormal("campaign_spread", *PRIORS.campaign)
    p["campaign_vector_spread"] = pm.HalfNormal("campaign_vector_spread", PRIORS.campaign_vector)
    common = pm.Normal("campaign_raw", 0.0, 1.0, dims="campaign_cell")
    vector = pm.Normal("campaign_vector_raw", 0.0, 1.0, dims=("campaign_cell", "term"))
    p["campaign"] = pm.Deterministic("campaign", p["campaign_spread"] * common, dims="campaign_cell")
    p["campaign_vector"] = pm.Deterministic(
        "campaign_vector", p["campaign_vector_spread"] * vector, dims=("campaign_cell", "term")
    )


def _likelihood(encoded: Encoded, p: dict[str, Any]) -> None:
    codes = encoded.codes
    log_time, _, _ = protocol_times(pt, *row_terms(p, codes))
    if "campaign" in p:
        log_time = log_time + p["campaign"][codes.campaign]
    # Observations are data, so that a compiled model can be given another simulated set.
    observed = _observed("observed_log_time", encoded.log_time, "observation")
    variance = p["misfit"][codes.pair] ** 2 + encoded.within
    if "repeat" in p:
        variance = variance + p["repeat"][codes.pair] ** 2 * encoded.repeat_weight
    pm.StudentT("log_time", nu=p["tail"], mu=log_time, sigma=pt.sqrt(variance), observed=observed, dims="observation")
    if "repeat" in p:
        scatter = encoded.scatter
        # Variance of Student-t noise is its squared scale times nu / (nu - 2).
        expected = p["repeat"][scatter.pair] ** 2 * p["tail"] / (p["tail"] - 2.0) + scatter.within
        square = _observed("observed_scatter", scatter.square, "repeated")
        pm.Gamma("scatter", alpha=scatter.dof / 2.0, beta=0.5 / expected, observed=square, dims="repeated")


def _observed(name: str, values: Any, dim: str) -> Any:
    # With its shape in its type, or checks of it at run time would take seconds to compile.
    return pm.Data(name, values, dims=dim, shape=values.shape)
