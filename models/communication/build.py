"""The PyMC model of a coded table. Equations in `physics`, levels in `hierarchy`, reasons for priors in `priors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesperf.models.common.cells import campaign_effects, cells, level_spread, noise_scales
from bayesperf.models.common.observed import Part, observe
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


def build(encoded: Encoded) -> pm.Model:
    """Build the model; dims are named after the levels."""
    members = members_of(encoded.labels, encoded.anchor)
    # No bounds to check: every scale is positive by construction.
    with pm.Model(coords=_coords(encoded), check_bounds=False) as model:
        p = _fabrics(encoded)
        _cells(encoded, p, members)
        between = {"misfit": PRIORS.misfit_pair_spread}
        if len(encoded.scatter.dof):
            between["repeat"] = PRIORS.repeat_pair_spread
        noise_scales(p, PRIORS, between, encoded.informed, "pair", len(encoded.log_time))
        if encoded.learns_campaigns:
            campaign_effects(p, PRIORS)
        observe([_observed(encoded, p)])
    for name, value in starting_points(encoded, members).items():
        model.set_initval(model[name], value)
    return model


def _coords(encoded: Encoded) -> dict[str, Any]:
    return {**{dim: encoded.labels.names(level) for level, dim in DIMS.items()}, "term": list(TERMS)}


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
        p[f"{name}_spread"] = level_spread(f"{name}_spread", median, ops)
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
        p[f"{name}_pair_spread"] = level_spread(f"{name}_pair_spread", pair_median, _count(known, members.cell_pair))
        raw = pm.Normal(f"{name}_pair_raw", 0.0, 1.0, dims="pair")
        p[f"{name}_pair"] = pm.Deterministic(f"{name}_pair", p[f"{name}_pair_spread"] * raw, dims="pair")
        # What one number of ranks differs by shows only beside another of the same pair.
        beside = int(known.sum()) - _count(known, members.cell_pair)
        p[f"{name}_cell_spread"] = level_spread(f"{name}_cell_spread", cell_median, beside)
        p[name] = cells(name, locate(pt, p, members), p[f"{name}_cell_spread"], known, "cell")
    for name, prior in (("handshake", PRIORS.handshake), ("flags", PRIORS.flags)):
        p[f"{name}_mean"] = pm.Normal(f"{name}_mean", *prior)
        spread = level_spread(f"{name}_spread", PRIORS.protocol_spread, int(informed["protocol"].sum()))
        p[f"{name}_spread"] = spread
        location = pt.repeat(p[f"{name}_mean"], pairs)
        p[name] = cells(name, location, spread, informed["protocol"], "pair")


def _count(known: Any, parent: Any) -> int:
    return len(np.unique(parent[known]))


def _observed(encoded: Encoded, p: Mapping[str, Any]) -> Part:
    """What is said of the configurations."""
    codes, scatter = encoded.codes, encoded.scatter
    mean, _, _ = protocol_times(pt, *row_terms(p, codes))
    if "campaign" in p:
        mean = mean + p["campaign"][codes.campaign]
    variance, repeat = p["misfit"][codes.pair] ** 2 + encoded.within, None
    if "repeat" in p:
        variance = variance + p["repeat"][codes.pair] ** 2 * encoded.repeat_weight
        repeat = p["repeat"][scatter.cell]
    return Part(encoded.ids, encoded.log_time, mean, variance, scatter, repeat, p["tail"])
