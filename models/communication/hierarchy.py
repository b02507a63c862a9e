"""Where each level's parameters lie given the level above: written once for sampling and for new members.

Every function takes the array namespace and a mapping of parameters (PyTensor variables, or draws with a leading axis)
and returns locations, (..., member). `Members` says which parents each member has, and what its formulas need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesperf.model import Floats
from bayesperf.models.communication.coded import Codes, Index, Labels
from bayesperf.models.communication.physics import log_factor, log_kept, log_passes, log_steps, walks

__all__ = ["LEAST_RANKS", "TERMS", "Members", "byte_location", "latency_location", "members_of", "row_terms"]

TERMS = ("overhead", "communication")
"""Limits, in the order of a campaign's vector effect: latency, and bytes on their way."""

LEAST_RANKS = 1.0 + 1e-6
"""Ranks of a communicator of one, whose steps and bytes on the wire are then next to nothing, but have a logarithm."""


@dataclass(frozen=True)
class Members:
    """Parents of every labelled member, as codes, and numbers of every cell, (cell,) each.

    `anchor` is the log number of ranks at which a target's link is stated, `log_steps_fixed` marks the cells whose
    messages are one step whatever the number of ranks.
    """

    pair_target: Index
    pair_op: Index
    cell_pair: Index
    cell_target: Index
    cell_op: Index
    log_ranks: Floats
    log_factor: Floats
    log_kept: Floats
    log_passes: Floats
    walks: Floats
    anchor: Floats


def members_of(labels: Labels, anchor: Floats) -> Members:
    """Read the parents off the labels; targets behind those of `anchor` state their links for two ranks."""
    cells = labels.of("cell")
    ops = [op.partition("@")[0] for _, op, _, _ in cells]
    ranks = [float(n) for *_, n in cells]
    known = np.full(len(labels.of("target")), np.log(2.0))
    known[: len(anchor)] = anchor
    return Members(
        pair_target=labels.parents("pair", "target", slice(0, 1)),
        pair_op=labels.parents("pair", "op", slice(1, 2)),
        cell_pair=labels.parents("cell", "pair", slice(0, 3)),
        cell_target=labels.parents("cell", "target", slice(0, 1)),
        cell_op=labels.parents("cell", "op", slice(1, 2)),
        log_ranks=np.log(np.maximum(ranks, LEAST_RANKS)),
        log_factor=np.array([log_factor(op, n) for op, n in zip(ops, ranks, strict=True)], dtype=float),
        log_kept=np.array([log_kept(op, n) for op, n in zip(ops, ranks, strict=True)], dtype=float),
        log_passes=np.array([log_passes(op) for op in ops], dtype=float),
        walks=np.array([walks(op) for op in ops], dtype=float),
        anchor=known,
    )


def latency_location(xp: Any, p: Mapping[str, Any], m: Members) -> Any:
    """Location of each cell's log latency, (..., cell)."""
    steps = log_steps(xp, p["exponent"][..., m.cell_op], m.log_ranks) * m.walks
    walking = p["step"][..., m.cell_target] + p["step_operation"][..., m.cell_op] + m.log_passes + steps
    return xp.logaddexp(p["start"][..., m.cell_target], walking) + p["latency_pair"][..., m.cell_pair]


def byte_location(xp: Any, p: Mapping[str, Any], m: Members) -> Any:
    """Location of each cell's log time of a byte, (..., cell)."""
    link = p["link"][..., m.cell_target]
    grown = p["growth"][..., m.cell_target] * (m.log_ranks - m.anchor[m.cell_target])
    wire = link + grown + p["link_operation"][..., m.cell_op] + m.log_factor
    kept = link + p["own"][..., m.cell_target] + m.log_kept
    return xp.logaddexp(wire, kept) + p["byte_pair"][..., m.cell_pair]


def row_terms(p: Mapping[str, Any], codes: Codes) -> tuple[Any, Any, Any, Any]:
    """Latency, time of all bytes, handshake and flags of each row, in logs, (..., row) each; campaign vector in it."""
    latency, transfer = p["latency"][..., codes.cell], p["byte"][..., codes.cell] + codes.log_message
    if "campaign_vector" in p:
        shift = p["campaign_vector"][..., codes.campaign, :]
        latency, transfer = latency + shift[..., 0], transfer + shift[..., 1]
    return latency, transfer, p["handshake"][..., codes.pair], p["flags"][..., codes.pair]
