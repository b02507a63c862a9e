"""Parameters that a report names, from posterior or prior draws alike."""

from __future__ import annotations

import numpy as np

from bayesperf.model import Draws, Floats, Quantity
from bayesperf.models.common.labels import Index
from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.demand import LEAST
from bayesperf.models.contention.levels import LEVELS, row_parameters
from bayesperf.models.contention.physics import Mix, contend
from bayesperf.models.roofline import Roofline

__all__ = ["quantities"]

LARGE = 1e12
"""Working set of a stream that no cache holds, bytes."""


def quantities(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """See `bayesperf.model.PerformanceModel.quantities`."""
    found = Roofline().quantities(encoded.solo, draws)
    alone, beside = len(encoded.solo.log_time), encoded.beside
    for at, target in enumerate(encoded.targets):
        rows = alone + np.flatnonzero(beside.target == at)
        found += [*_slowdowns(draws, at, target, rows), *_parameters(encoded, draws, at, target, rows)]
    corner = 1.0 + np.exp(np.asarray(draws["corner"], dtype=float).reshape(-1))
    everything = alone + np.arange(len(beside.log_time))
    label = "sharpness at which a shared resource saturates"
    return [*found, Quantity("sharing_corner", "", label, "1", corner, everything)]


def _slowdowns(draws: Draws, at: int, target: str, rows: Index) -> list[Quantity]:
    """What two saturating kernels cost each other that need not take turns: 1 where nothing contends."""
    named = (
        ("contention_memory", "slowdown of a saturating stream beside another", (0.0, 1.0), (0.0, 1.0)),
        ("contention_compute", "slowdown of a compute-bound kernel beside another", (1.0, 0.0), (1.0, 0.0)),
        ("contention_mixed", "slowdown of a compute-bound kernel beside a saturating stream", (1.0, 0.0), (0.0, 1.0)),
    )
    found = []
    for name, label, victim, other in named:
        values = np.exp(_beside(draws, at, victim, other))
        found.append(Quantity(name, target, label, "1", values, rows))
    return found


def _beside(draws: Draws, at: int, victim: tuple[float, float], other: tuple[float, float]) -> Floats:
    """Log slowdown of a kernel of average demands beside one other, (draw,); shares of compute and memory of both."""
    use = np.maximum(np.array([[victim, other]]), LEAST)
    one = np.ones((1, 2))
    mix = Mix(
        one, use[..., 0], use[..., 1], LEAST * one, np.log(LARGE) * one, one, 2.0 * one, np.zeros((1, 2, 2)), 0.0 * one
    )
    p = {name: np.asarray(draws[name], dtype=float)[:, [at]] for name in LEVELS}
    size = len(p["turn_weight"])
    p |= {name: np.asarray(draws[name], dtype=float).reshape(size) for name in ("corner", "turn_corner")}
    p |= {name: np.zeros((size, 1)) for name in ("demand_effect", "victim_effect")}
    zeros = np.zeros((1, 2), dtype=np.intp)
    slowdown = contend(np, row_parameters(np, p, np.zeros(1, dtype=np.intp), zeros), mix)
    return np.asarray(slowdown.total[:, 0])


def _parameters(encoded: Encoded, draws: Draws, at: int, target: str, rows: Index) -> list[Quantity]:
    def of(name: str) -> Floats:
        return np.asarray(draws[name][:, at], dtype=float)

    share = 1.0 / (1.0 + np.exp(-of("cache_taken")))
    named = [
        ("shared_compute", "saturating kernels that compute holds", "1", 1.0 + np.exp(of("compute_room"))),
        ("shared_memory", "saturating streams that memory holds", "1", 1.0 + np.exp(of("memory_room"))),
        ("sharing_loss_compute", "compute lost per further sharer", "1", np.exp(of("compute_loss"))),
        ("sharing_loss_memory", "memory bandwidth lost per further sharer", "1", np.exp(of("memory_loss"))),
        ("shared_cache", "share of a cache that others' working sets take", "1", share),
        ("shared_beyond", "working set beyond which traffic is shared", "B", np.exp(of("private_bytes"))),
        ("sharing_turns", "load of another process beside one's own", "1", np.exp(of("turn_weight"))),
    ]
    if target not in encoded.placed:
        turns = 1.0 + np.exp(of("turn_capacity"))
        named.append(("sharing_processes", "processes that run without taking turns", "1", turns))
    return [Quantity(name, target, label, unit, values, rows) for name, label, unit, values in named]
