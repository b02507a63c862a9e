"""What every target and every operation has of its own: written once for sampling and for predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayesperf.models.contention.physics import RESOURCES
from bayesperf.models.contention.priors import PRIORS

__all__ = ["LEVELS", "TAIL", "row_parameters", "scale_of"]

TAIL = 5.0
"""Degrees of freedom of the noise beside others: of its own, so that the posterior factorises."""

LEVELS: Mapping[str, tuple[tuple[float, float], float]] = {
    "turn_weight": (PRIORS.turn_weight, PRIORS.turn_weight_spread),
    "turn_capacity": (PRIORS.turn_capacity, PRIORS.turn_capacity_spread),
    "compute_room": (PRIORS.compute_room, PRIORS.room_spread),
    "memory_room": (PRIORS.memory_room, PRIORS.room_spread),
    "link_room": (PRIORS.link_room, PRIORS.room_spread),
    "compute_loss": (PRIORS.loss, PRIORS.loss_spread),
    "memory_loss": (PRIORS.loss, PRIORS.loss_spread),
    "link_loss": (PRIORS.loss, PRIORS.loss_spread),
    "private_bytes": (PRIORS.private_bytes, PRIORS.private_bytes_spread),
    "cache_taken": (PRIORS.cache_taken, PRIORS.cache_taken_spread),
    "pair_scale": (PRIORS.pair, PRIORS.scale_spread),
    "noise": (PRIORS.noise, PRIORS.scale_spread),
}
"""Parameters that each target has, on the scale on which they are normal: location and scale of what targets have in
common, and the spread between them."""


def row_parameters(xp: Any, p: Mapping[str, Any], target: Any, op: Any) -> dict[str, Any]:
    """Parameters of rows as `contend` takes them, from those of targets, (..., target), and operations, (..., op)."""
    of = {name: p[name][..., target] for name in LEVELS if name not in ("pair_scale", "noise")}
    capacity = {name: 1.0 + xp.exp(of[name]) for name in ("turn_capacity", *(f"{r}_room" for r in RESOURCES))}
    lost = {name: xp.exp(of[name]) for name in (f"{r}_loss" for r in RESOURCES)}
    corners = {name: 1.0 + xp.exp(p[name])[..., None] for name in ("corner", "turn_corner")}
    effects = {name: p[name][..., op] for name in ("demand_effect", "victim_effect")}
    return {**of, **capacity, **lost, **corners, **effects, "cache_taken": 1.0 / (1.0 + xp.exp(-of["cache_taken"]))}


def scale_of(xp: Any, p: Mapping[str, Any], name: str, slowdown: Any, target: Any) -> Any:
    """Scale of what the model gets wrong of a pair, or of noise between repeats: a floor, and more of a slowdown."""
    floor = xp.exp(p["pair_scale" if name == "pair" else name][..., target])
    return xp.sqrt(floor**2 + (p[f"{name}_slope"][..., None] * slowdown) ** 2)
