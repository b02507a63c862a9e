"""The PyMC model of a coded table. Equations in `physics`, levels in `hierarchy`, reasons for priors in `priors`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesperf.models.common.cells import (
    MIN_MEMBERS,
    campaign_effects,
    cells,
    level_spread,
    noise_scales,
    sampled_members,
)
from bayesperf.models.common.observed import Part, observe
from bayesperf.models.roofline.coded import Encoded
from bayesperf.models.roofline.curve import Curves
from bayesperf.models.roofline.discrepancy import rank_of
from bayesperf.models.roofline.hierarchy import (
    TERMS,
    TIMINGS,
    drop_shape,
    lacking_variance,
    launch_location,
    launch_scale,
    main_location,
    members_of,
    memory_location,
    operation_centring,
    overhead_location,
    rate_location,
    row_terms,
    shape_location,
    showing_launches,
    unit_rate_location,
    unit_spread,
)
from bayesperf.models.roofline.physics import smooth_roofline
from bayesperf.models.roofline.priors import PRIORS
from bayesperf.models.roofline.start import starting_points

__all__ = ["build", "coords_of"]

DIMS = {
    "target": "target",
    "op": "op",
    "unit": "unit",
    "rate": "rate_cell",
    "memory": "memory_cell",
    "launch": "launch_cell",
    "overhead": "overhead_cell",
    "noise": "noise_cell",
    "campaign": "campaign_cell",
    "shaped": "shaped",
    "shape": "shape_op",
    "shape_cell": "shape_cell",
}
"""Dim of each level; members are labelled by their parts, joined by ``|``."""


def build(
    encoded: Encoded,
    centred: Mapping[str, Any] | None = None,
    beside: Callable[[], Part] | None = None,
) -> pm.Model:
    """Build the model; dims are named after the levels, plus ``gap`` (between working sets).

    `centred` replaces, by level, which cells are sampled centred; the posterior does not depend on it. `beside` adds
    parameters of its own to the model at hand, and returns further observations.
    """
    centred = encoded.informed if centred is None else centred
    # No bounds to check: every scale is positive by construction.
    with pm.Model(coords=coords_of(encoded), check_bounds=False) as model:
        parameters = _parameters(encoded, centred)
        parts = [_observed(encoded, parameters), *([beside()] if beside else [])]
        observe(parts)
    if centred is encoded.informed:
        for name, value in starting_points(encoded, members_of(encoded.labels)).items():
            model.set_initval(model[name], value)
    return model


def coords_of(encoded: Encoded) -> dict[str, Any]:
    """Labels of every dim of parameters."""
    labels = encoded.labels
    coords: dict[str, Any] = {dim: labels.names(level) for level, dim in DIMS.items()}
    curves = encoded.sheets.curves
    coords["gap"] = _gap_labels(coords["target"], curves)
    coords |= {"kind": ["matrix", "vector"], "term": list(TERMS), "timing": list(TIMINGS)}
    coords["rank"] = np.arange(rank_of(encoded.bases))
    return coords


def _gap_labels(targets: list[str], curves: Curves) -> list[str]:
    ends = zip(curves.target, np.exp(curves.low), np.exp(curves.high), strict=True)
    return [f"{targets[code]}|{low:.0f}-{high:.0f}" for code, low, high in ends]


def _leaning(p: dict[str, Any], shape_cell: Any, features: Any) -> Any:
    """Discrepancy at the rows that determine a cell, (cell,)."""
    if "discrepancy" not in p:
        return 0.0
    there = (shape_cell >= 0)[:, None]
    return (p["discrepancy"][np.maximum(shape_cell, 0)] * (features * there)).sum(axis=1)


def _operations(name: str, spread: Any, centring: Any) -> Any:
    """Effects of operation families around the mean of those measured, which the level above already holds."""
    raw = pm.Normal(f"{name}_raw", 0.0, 1.0, dims="op")
    # Not a matrix product: those are slow to compile, and there are few families.
    return pm.Deterministic(name, spread * (pt.as_tensor(centring) * raw).sum(axis=1), dims="op")


def _parameters(encoded: Encoded, centred: Mapping[str, Any]) -> dict[str, Any]:
    labels, sheets, informed = encoded.labels, encoded.sheets, encoded.informed
    members = members_of(labels)
    p: dict[str, Any] = {}
    p["scale"] = pm.Normal("scale", sheets.scale, sheets.scale_spread, dims="target")
    main, main_spread = main_location(sheets)
    p["main"] = pm.Normal("main", main, main_spread, dims="target")
    (matrix, vector) = PRIORS.efficiency_matrix, PRIORS.efficiency_vector
    p["efficiency"] = pm.Normal("efficiency", [matrix[0], vector[0]], [matrix[1], vector[1]], dims="kind")
    units = np.arange(len(labels.of("unit")))
    known = int((np.isfinite(sheets.log_peak) & np.isin(units, members.rate_unit[informed["rate"]])).sum())
    p["efficiency_spread"] = level_spread("efficiency_spread", PRIORS.efficiency_spread, known)
    rate_ops, memory_ops = (
        len({labels.of(level)[c][1] for c in np.flatnonzero(informed[level])}) for level in ("rate", "memory")
    )
    p["operation_spread"] = level_spread("operation_spread", PRIORS.operation_spread, rate_ops)
    p["memory_operation_spread"] = level_spread("memory_operation_spread", PRIORS.memory_operation_spread, memory_ops)
    by_rate, by_memory = operation_centring(labels)
    p["operation_rate"] = _operations("operation_rate", p["operation_spread"], by_rate)
    p["operation_memory"] = _operations("operation_memory", p["memory_operation_spread"], by_memory)
    if labels.of("unit"):
        location = unit_rate_location(pt, p, members, sheets)
        spread = unit_spread(sheets, p["efficiency_spread"], pt)
        p["unit_rate"] = cells(
            "unit_rate", location, spread, np.isin(units, members.rate_unit[centred["rate"]]), "unit"
        )
    p["drop"] = pm.Gamma("drop", alpha=drop_shape(sheets), beta=1.0 / sheets.curves.mean, dims="gap")
    p["warp"] = pm.Normal("warp", 0.0, PRIORS.level_warp, dims="gap")
    _launches(encoded, p, centred)
    _discrepancy(encoded, p, centred)
    p["sharpness"] = pm.Normal("sharpness", *PRIORS.sharpness)
    _speeds(encoded, p, centred)
    spread = PRIORS.overhead_cell_spread
    p["overhead"] = cells("overhead", overhead_location(p, members), spread, centred["overhead"], "overhead_cell")
    between = {"misfit": PRIORS.misfit_cell_spread}
    if len(encoded.scatter.dof):
        between["repeat"] = PRIORS.repeat_cell_spread
    noise_scales(p, PRIORS, between, centred, "noise_cell", len(encoded.log_time))
    if encoded.learns_campaigns:
        campaign_effects(p, PRIORS)
    return p


def _launches(encoded: Encoded, p: dict[str, Any], centred: Mapping[str, Any]) -> None:
    """Overheads of every target by kind of timing; what is common to targets is learned where three show theirs."""
    members = members_of(encoded.labels)
    means, spreads = np.transpose([PRIORS.launch_overhead, PRIORS.chained_overhead])
    shown = members.launch_timing[showing_launches(members, encoded.informed["overhead"])]
    counts = np.bincount(shown, minlength=len(TIMINGS))
    if counts.max(initial=0) >= MIN_MEMBERS:
        p["launch_mean"] = pm.Normal("launch_mean", means, spreads, dims="timing")
        p["launch_spread"] = pm.LogNormal("launch_spread", np.log(PRIORS.launch_spread), 0.5, dims="timing")
    else:
        p["launch_mean"] = pm.Deterministic("launch_mean", pt.as_tensor(means), dims="timing")
        p["launch_spread"] = pm.Deterministic("launch_spread", pt.as_tensor(spreads), dims="timing")
    shows = showing_launches(members, centred["overhead"])
    p["launch"] = cells("launch", launch_location(p, members), launch_scale(p, members), shows, "launch_cell")


def _speeds(encoded: Encoded, p: dict[str, Any], centred: Mapping[str, Any]) -> None:
    """Compute rates and bandwidths of every operation on every target.

    Where only the slower of both shows, as all rows do the same FLOP on a byte, their ratio is sampled, and given it
    what shows: by themselves they would lie on a ridge with a corner, where the limit changes. Both come from normal
    distributions, so the ratio does, and the bandwidth given it.
    """
    labels, members, contested = encoded.labels, members_of(encoded.labels), encoded.contested
    rate: Any = None
    if labels.of("rate"):
        leaning = _leaning(p, members.rate_shape, encoded.leaning["rate"])
        of_rate = rate_location(p, members)
        informed = centred["rate"] & ~np.isin(np.arange(len(members.rate_op)), contested.rate)
        raw, rate = sampled_members("rate", of_rate, PRIORS.cell_spread, informed, "rate_cell", leaning)
    if labels.of("memory"):
        spread: Any = PRIORS.memory_cell_spread
        location, informed = memory_location(p, members), centred["memory"]
        leaning = _leaning(p, members.memory_shape, encoded.leaning["memory"])
        leaning = leaning - (encoded.leaning["anchor"] * p["drop"]).sum(axis=-1)
        there = contested.rate >= 0
        if there.any():
            both, step = np.hypot(PRIORS.cell_spread, spread), raw[np.maximum(contested.rate, 0)]
            log_ratio = of_rate[np.maximum(contested.rate, 0)] - location + both * step
            # By how much computing takes longer than memory: without it, the bandwidth is what shows.
            q = 1.0 + pt.exp(p["sharpness"])
            leaning = leaning + there * pt.softplus(q * (contested.intensity - log_ratio)) / q
            location = location - (there * spread**2 / both) * step
            spread, informed = np.where(there, PRIORS.cell_spread * spread / both, spread), informed | there
        p["memory"] = cells("memory", location, spread, informed, "memory_cell", leaning)
        if there.any():
            partner = np.full(len(labels.of("rate")), -1)
            partner[contested.rate[there]] = np.flatnonzero(there)
            rate = pt.switch(partner >= 0, (p["memory"] + log_ratio)[np.maximum(partner, 0)], rate)
    if labels.of("rate"):
        p["rate"] = pm.Deterministic("rate", rate, dims="rate_cell")


def _discrepancy(encoded: Encoded, p: dict[str, Any], centred: Mapping[str, Any]) -> None:
    """Systematic errors of operations that were measured at many configurations."""
    if not encoded.bases:
        return
    members = members_of(encoded.labels)
    if encoded.labels.of("shape"):
        p["shape_scale"] = pm.LogNormal("shape_scale", *PRIORS.discrepancy, dims="shape_op")
        p["discrepancy_common"] = cells(
            "discrepancy_common", 0.0, p["shape_scale"][:, None], centred["shape"], ("shape_op", "rank")
        )
    p["shape_cell_scale"] = pm.LogNormal("shape_cell_scale", *PRIORS.discrepancy, dims="shaped")
    location, spread = shape_location(pt, p, members), p["shape_cell_scale"][members.shape_cell_op][:, None]
    leaning = (encoded.leaning["curve"] * p["drop"]).sum(axis=-1)
    p["discrepancy"] = cells("discrepancy", location, spread, centred["shape_cell"], ("shape_cell", "rank"), leaning)


def _observed(encoded: Encoded, p: Mapping[str, Any]) -> Part:
    """What is said of the configurations."""
    codes, scatter, members = encoded.codes, encoded.scatter, members_of(encoded.labels)
    mean = smooth_roofline(pt, *row_terms(pt, p, codes, members, encoded.sheets), p["sharpness"])
    if "campaign" in p:
        mean = mean + p["campaign"][codes.campaign]
    variance = p["misfit"][codes.noise] ** 2 + encoded.within + lacking_variance(p, codes, members)
    repeat = None
    if "repeat" in p:
        variance = variance + p["repeat"][codes.noise] ** 2 * encoded.repeat_weight
        repeat = p["repeat"][scatter.cell]
    return Part(encoded.ids, encoded.log_time, mean, variance, scatter, repeat, p["tail"])
