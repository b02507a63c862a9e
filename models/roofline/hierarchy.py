"""Where each level's parameters lie given the level above: written once for sampling and for new members.

Every function takes the array namespace and a mapping of parameters (PyTensor variables, or draws with a leading
axis) and returns locations, (..., member). `Members` says which parents each member has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesperf.model import Floats
from bayesperf.models.roofline.coded import Codes, Labels, Sheets
from bayesperf.models.roofline.curve import code_curve, log_bandwidth
from bayesperf.models.roofline.discrepancy import process
from bayesperf.models.roofline.physics import ABSENT, unit_location
from bayesperf.models.roofline.priors import PRIORS
from bayesperf.models.roofline.units import unit_of

__all__ = [
    "TERMS",
    "TIMINGS",
    "Members",
    "drop_shape",
    "lacking_variance",
    "launch_location",
    "launch_scale",
    "main_location",
    "members_of",
    "memory_location",
    "operation_centring",
    "overhead_location",
    "rate_location",
    "row_terms",
    "shape_location",
    "showing_launches",
    "unit_rate_location",
    "unit_spread",
]

TERMS = ("compute", "memory", "overhead")
"""Terms of the roofline, in the order of `row_terms` and of a campaign's vector effect."""

TIMINGS = ("launched", "chained")
"""How an execution was timed: launched from the host, or chained in a running program."""

Index = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Members:
    """Parents of every labelled member, as codes."""

    unit_target: Index
    rate_unit: Index
    rate_op: Index
    memory_target: Index
    memory_op: Index
    launch_timing: Index
    overhead_launch: Index
    rate_shape: Index
    memory_shape: Index
    shape_cell_op: Index
    shape_cell_common: Index


def members_of(labels: Labels) -> Members:
    """Read the parents off the labels."""
    units = [(target, unit_of(op, dtype)) for target, op, dtype in labels.of("rate")]
    return Members(
        unit_target=labels.parents("unit", "target", slice(0, 1)),
        rate_unit=labels.find("unit", units),
        rate_op=labels.parents("rate", "op", slice(1, 2)),
        memory_target=labels.parents("memory", "target", slice(0, 1)),
        memory_op=labels.parents("memory", "op", slice(1, 2)),
        launch_timing=np.array([TIMINGS.index(kind) for _, kind in labels.of("launch")], dtype=np.intp),
        overhead_launch=labels.parents("overhead", "launch", (0, 2)),
        rate_shape=labels.parents("rate", "shape_cell", slice(0, 2)),
        memory_shape=labels.parents("memory", "shape_cell", slice(0, 2)),
        shape_cell_op=labels.parents("shape_cell", "shaped", slice(1, 2)),
        shape_cell_common=labels.parents("shape_cell", "shape", slice(1, 2)),
    )


def operation_centring(labels: Labels) -> tuple[Floats, Floats]:
    """Give the matrices (op, op) that centre operation effects.

    In rate they are centred among the families of one kind of unit, in bandwidth
    among all that move bytes. Families that are not concerned have zero rows.
    """
    ops = [op for (op,) in labels.of("op")]
    kinds = {op: unit_of(op, "").partition(":")[0] for _, op, _ in labels.of("rate")}
    moving = {op: "memory" for _, op in labels.of("memory")}
    return _centring([kinds.get(op) for op in ops]), _centring([moving.get(op) for op in ops])


def _centring(group: list[str | None]) -> Floats:
    same = np.array([[a is not None and a == b for b in group] for a in group], dtype=float).reshape(len(group), -1)
    members = np.maximum(same.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(np.diag(np.diag(same)) - same / members)


def unit_rate_location(xp: Any, p: Mapping[str, Any], members: Members, sheets: Sheets) -> Any:
    """Location of each unit's log rate, (..., unit)."""
    kind = np.where(sheets.is_matrix, 0, 1)
    expected = p["scale"][..., members.unit_target] + sheets.offset
    share = np.where(sheets.is_matrix, 0.0, PRIORS.vector_share)
    balance = PRIORS.vector_balance + np.where(sheets.is_function, PRIORS.function_rate, 0.0)
    balanced = p["main"][..., members.unit_target] + balance
    return unit_location(xp, (1.0 - share) * expected + share * balanced, p["efficiency"][..., kind], sheets.log_peak)


def unit_spread(sheets: Sheets, efficiency_spread: Any, xp: Any) -> Any:
    """Scale of each unit's log rate around its location: tight where its peak is known, (..., unit)."""
    unknown = np.where(sheets.is_matrix | sheets.is_function, PRIORS.unit_spread, PRIORS.vector_spread)
    return xp.where(np.isfinite(sheets.log_peak), efficiency_spread, unknown)


def main_location(sheets: Sheets) -> tuple[Any, Any]:
    """Location and scale of each target's log bandwidth at its anchor, (target,) each."""
    known = np.isfinite(sheets.log_bandwidth)
    location = np.where(
        known, np.nan_to_num(sheets.log_bandwidth) + PRIORS.main_efficiency[0], PRIORS.main_bandwidth[0]
    )
    return location, np.where(known, PRIORS.main_efficiency[1], PRIORS.main_bandwidth[1])


def drop_shape(sheets: Sheets) -> Any:
    """Gamma shape of each gap's log drop: its octaves, as the sum of that many exponential drops, (gap,)."""
    return np.maximum(sheets.curves.octaves, 1.0)


def launch_location(p: Mapping[str, Any], members: Members) -> Any:
    """Location of each target's log overhead by kind of timing, (..., launch)."""
    return p["launch_mean"][..., members.launch_timing]


def launch_scale(p: Mapping[str, Any], members: Members) -> Any:
    """Spread around it, (..., launch)."""
    return p["launch_spread"][..., members.launch_timing]


def showing_launches(members: Members, overhead: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Launches of which some operation's overhead is marked, (launch,)."""
    return np.isin(np.arange(len(members.launch_timing)), members.overhead_launch[overhead])


def rate_location(p: Mapping[str, Any], members: Members) -> Any:
    """Location of each (target, op, dtype)'s log compute rate, (..., rate)."""
    return p["unit_rate"][..., members.rate_unit] + p["operation_rate"][..., members.rate_op]


def memory_location(p: Mapping[str, Any], members: Members) -> Any:
    """Location of each (target, op)'s log bandwidth at the target's anchor, (..., memory)."""
    return p["main"][..., members.memory_target] + p["operation_memory"][..., members.memory_op]


def overhead_location(p: Mapping[str, Any], members: Members) -> Any:
    """Location of each (target, op, kind)'s log overhead, (..., overhead)."""
    return p["launch"][..., members.overhead_launch]


def shape_location(xp: Any, p: Mapping[str, Any], members: Members) -> Any:
    """Location of each (target, op)'s discrepancy: what all targets share, (..., shape_cell, rank)."""
    if "discrepancy_common" not in p:
        return 0.0
    common = members.shape_cell_common
    return xp.where((common >= 0)[:, None], p["discrepancy_common"][..., np.maximum(common, 0), :], 0.0)


def row_terms(xp: Any, p: Mapping[str, Any], codes: Codes, members: Members, sheets: Sheets) -> tuple[Any, Any, Any]:
    """Log time of each row's compute, memory and overhead term alone, (..., row) each, campaign vector included."""
    compute = memory = np.full(len(codes.target), ABSENT)
    if (codes.rate >= 0).any():
        there = codes.rate >= 0
        compute = xp.where(there, codes.log_flops - p["rate"][..., np.where(there, codes.rate, 0)], ABSENT)
    if (codes.memory >= 0).any():
        there = codes.memory >= 0
        cell = np.where(there, codes.memory, 0)
        curve = code_curve(sheets.curves, codes.target, codes.log_working_set)
        speed = log_bandwidth(xp, p["memory"][..., cell], p["drop"], p["warp"], curve)
        memory = xp.where(there, codes.log_bytes - speed, ABSENT)
    if "discrepancy" in p:
        # phi of rows without a discrepancy are zeros.
        wrong = process(xp, p["discrepancy"], codes.shape_cell, codes.phi)
        compute, memory = compute + wrong, memory + wrong
    overhead = p["overhead"][..., codes.overhead]
    if "campaign_vector" in p:
        shift = p["campaign_vector"][..., codes.campaign, :]
        compute, memory, overhead = compute + shift[..., 0], memory + shift[..., 1], overhead + shift[..., 2]
    return compute, memory, overhead


def lacking_variance(p: Mapping[str, Any], codes: Codes, members: Members) -> Any:
    """Variance of each row's log time that the discrepancy's features cannot express, (..., row); 0 without one."""
    if "discrepancy" not in p:
        return 0.0
    variance = p["shape_cell_scale"][..., members.shape_cell_op[np.maximum(codes.shape_cell, 0)]] ** 2
    if "discrepancy_common" in p:
        variance = variance + (p["shape_scale"][..., np.maximum(codes.shape, 0)] * (codes.shape >= 0)) ** 2
    return variance * codes.lacking
