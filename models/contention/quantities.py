"""Parameters that a report names, from posterior or prior draws alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesperf.model import Draws, Floats, Quantity
from bayesperf.models.common.labels import Index
from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.demand import LEAST
from bayesperf.models.contention.levels import LEVELS, row_parameters
from bayesperf.models.contention.physics import Mix, contend
from bayesperf.models.roofline import Roofline

__all__ = ["of_contention", "quantities"]

LARGE = 1e12
"""Working set of a stream that no cache holds, bytes."""

SATURATES = 0.5
"""Share of a resource that the most demanding kernel measured beside others must use alone to stand for saturation."""


def quantities(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """See `bayesperf.model.PerformanceModel.quantities`."""
    return [*Roofline().quantities(encoded.solo, draws), *of_contention(encoded, draws)]


def of_contention(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """Those beside the roofline's, from draws of contention's part alone."""
    found = list[Quantity]()
    alone, beside = len(encoded.solo.log_time), encoded.beside
    for at, target in enumerate(encoded.targets):
        rows = alone + np.flatnonzero(beside.target == at)
        found += [*_slowdowns(encoded, draws, at, rows), *_parameters(encoded, draws, at, target, rows)]
    corner = 1.0 + np.exp(np.asarray(draws["corner"], dtype=float).reshape(-1))
    everything = alone + np.arange(len(beside.log_time))
    label = "sharpness at which a shared resource saturates"
    return [*found, Quantity("sharing_corner", "", label, "1", corner, everything)]


def _slowdowns(encoded: Encoded, draws: Draws, at: int, rows: Index) -> list[Quantity]:
    """What two saturating kernels cost each other that need not take turns: 1 where nothing contends.

    They are the most demanding ones that were measured there: what the posterior knows is their demands and the
    resource together, and of a kernel twice as demanding that nobody ran it would know little.
    """
    memory, compute = (_most_demanding(encoded, at, name) for name in ("memory", "compute"))
    named = (
        ("contention_memory", "slowdown of a saturating stream beside another", memory, memory),
        ("contention_compute", "slowdown of a compute-bound kernel beside another", compute, compute),
        ("contention_mixed", "slowdown of a compute-bound kernel beside a saturating stream", compute, memory),
    )
    return [
        Quantity(name, encoded.targets[at], label, "1", np.exp(_beside(draws, at, victim, other)), rows)
        for name, label, victim, other in named
    ]


@dataclass(frozen=True)
class _Demand:
    """What a kernel uses alone, its log working set, and the code of its operation; -1 of an average one."""

    compute: float
    memory: float
    log_bytes: float
    op: int


def _most_demanding(encoded: Encoded, at: int, resource: str) -> _Demand:
    """The member of a target's mixes that uses most of a resource; a saturating average one where none uses much.

    A kernel's demand is its mean over mixes.
    """
    mix, mine = encoded.beside.mix, encoded.beside.target == at
    there = mix.count[mine] > 0
    flat = {name: getattr(mix, name)[mine][there] for name in ("compute", "memory", "log_bytes")}
    table = pd.DataFrame({**flat, "op": encoded.beside.op[mine][there]}).assign(size=lambda t: t["log_bytes"].round(3))
    kernels = table.groupby(["op", "size"], as_index=False)[["compute", "memory", "log_bytes"]].mean()
    strong = kernels[kernels[resource] >= SATURATES]
    if not len(strong):
        return _Demand(1.0, 0.0, np.log(LARGE), -1) if resource == "compute" else _Demand(0.0, 1.0, np.log(LARGE), -1)
    # A stream in a private cache saturates that, and nothing that is shared.
    ranked = strong.sort_values("log_bytes" if resource == "memory" else resource)
    compute, memory, size, op = (ranked[name].to_numpy()[-1] for name in ("compute", "memory", "log_bytes", "op"))
    return _Demand(float(compute), float(memory), float(size), int(op))


def _beside(draws: Draws, at: int, victim: _Demand, other: _Demand) -> Floats:
    """Log slowdown of a kernel beside one other with which it need not take turns, (draw,)."""
    both, one = (victim, other), np.ones((1, 2))
    compute, memory, size = (
        np.array([[getattr(kernel, name) for kernel in both]]) for name in ("compute", "memory", "log_bytes")
    )
    mix = Mix(
        one, np.maximum(compute, LEAST), np.maximum(memory, LEAST), LEAST * one, size, one, 2.0 * one,
        np.zeros((1, 2, 2)), 0.0 * one,
    )  # fmt: skip
    p = {name: np.asarray(draws[name], dtype=float)[:, [at]] for name in LEVELS}
    n = len(p["turn_weight"])
    p |= {name: np.asarray(draws[name], dtype=float).reshape(n) for name in ("corner", "turn_corner")}
    # Behind the operations measured, an average one.
    p |= {
        name: np.concatenate([np.asarray(draws[name], dtype=float), np.zeros((n, 1))], axis=1)
        for name in ("demand_effect", "victim_effect")
    }
    ops = np.array([[kernel.op for kernel in both]], dtype=np.intp)
    slowdown = contend(np, row_parameters(np, p, np.zeros(1, dtype=np.intp), ops), mix)
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
