"""Simulated targets on which work contends, written independently of the model: a fluid in which progress is fair.

Kernels need seconds of compute, of memory and of a link, per execution; alone the longest counts. Beside each other all
progress rises alike until a resource is full; those that need it stop there, the others go on (progressive filling). A
resource of `sharers` members holds ``capacity / (1 + loss (sharers - 1))``. On a target that takes turns, a kernel
takes as many times as long as there are processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.schema import validate, with_ids
from bayesperf.store import concat

__all__ = ["KERNELS", "TRANSFERS", "Kernel", "Target", "pairs", "small_model", "table"]

RATE, BANDWIDTH, LINK = 2e11, 2e10, 5e9
SIZES = {"small": 0.5, "large": 2.0}


@dataclass(frozen=True)
class Kernel:
    """Shares of compute, of memory and of the link that a kernel uses alone."""

    op: str
    compute: float
    memory: float
    link: float = 0.0

    def row(self, size: str) -> dict[str, Any]:
        """Work and time alone of one size; the time is a millisecond times the size."""
        seconds = 1e-3 * SIZES[size]
        moved = self.link * seconds * LINK if self.link else self.memory * seconds * BANDWIDTH
        return {
            "op": self.op, "dtype": "float32", "flops": self.compute * seconds * RATE, "bytes": moved,
            "working_set_bytes": 2e9, "elements": int(1000 * SIZES[size]), "time_s": seconds,
        }  # fmt: skip


KERNELS = (
    Kernel("matmul", 1.0, 0.1),
    Kernel("stream_triad", 0.02, 1.0),
    Kernel("layer_norm", 0.3, 0.8),
    Kernel("fma_chain", 1.0, 0.01),
    Kernel("softmax", 0.75, 0.5),
    Kernel("stencil", 0.5, 0.7),
)
TRANSFERS = (Kernel("copy_h2d", 0.0, 0.05, 1.0), Kernel("copy_d2h", 0.0, 0.05, 1.0), KERNELS[0], KERNELS[1])


@dataclass(frozen=True)
class Target:
    """Capacities of each resource, in units of what one saturating kernel takes, and losses per further sharer."""

    name: str
    capacity: Mapping[str, float] = field(default_factory=lambda: {"compute": 1.0, "memory": 1.0, "link": 1.0})
    loss: float = 0.05
    turns: bool = False

    def slowdown(self, mix: Sequence[Kernel]) -> float:
        """Of the first of a mix."""
        if self.turns:
            return float(len(mix))
        use = {name: np.array([getattr(kernel, name) for kernel in mix]) for name in self.capacity}
        free = {name: self.capacity[name] / (1 + self.loss * max(u.sum() / max(u.max(), 1e-9) - 1, 0))
                for name, u in use.items()}  # fmt: skip
        progress, running = np.zeros(len(mix)), np.ones(len(mix), dtype=bool)
        while running.any():
            rates = {name: u[running].sum() for name, u in use.items()}
            step = min([1.0 - progress[running].max(), *(free[n] / r for n, r in rates.items() if r > 1e-12)])
            progress[running] += step
            for name, rate in rates.items():
                free[name] -= step * rate
            full = np.zeros(len(mix), dtype=bool)
            for name, u in use.items():
                if free[name] <= 1e-9:
                    full |= u > 1e-3
            running &= ~full & (progress < 1.0 - 1e-9)
        return float(1.0 / max(progress[0], 1e-3))


def pairs(kernels: Sequence[Kernel]) -> Iterator[tuple[Kernel, ...]]:
    """Every kernel beside every kernel, itself included."""
    yield from itertools.product(kernels, repeat=2)


def table(
    target: Target, mixes: Sequence[tuple[Kernel, ...]], seed: int, *, noise: float = 0.03, campaigns: int = 2,
    heldout: Sequence[tuple[Kernel, ...]] = (),
) -> pd.DataFrame:  # fmt: skip
    """Measure kernels alone at both sizes, the mixes beside victims of the small size, held-out ones of the large.

    Parameters
    ----------
    target
        Where.
    mixes, heldout
        Victim first.
    seed
        Of the noise.
    noise
        Standard deviation of log time.
    campaigns
        How many; all is measured in each.
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []

    def add(row: Mapping[str, Any], campaign: int, role: str) -> None:
        time = row["time_s"] * np.exp(noise * rng.standard_normal())
        rows.append({**row, "time_s": time, "target": target.name, "campaign": f"day {campaign}", "role": role})

    kernels = list(dict.fromkeys(kernel for mix in (*mixes, *heldout) for kernel in mix))
    for campaign in range(campaigns):
        for kernel, size in itertools.product(kernels, SIZES):
            add(kernel.row(size), campaign, "fit")
        for role, chosen, size in (("fit", mixes, "small"), ("heldout", heldout, "large")):
            for mix in chosen:
                alone = mix[0].row(size)
                others = [kernel.op for kernel in mix[1:]]
                label = "+".join(f"{op}:{others.count(op)}" for op in sorted(set(others)))
                add({**alone, "time_s": alone["time_s"] * target.slowdown(mix), "corunners": label}, campaign, role)
    return with_ids(validate(pd.DataFrame(rows)), source="simulated")


def small_model() -> Any:
    """The contention part of the model for two targets with six mixes each, its data replaceable: for calibration."""
    from bayesperf.models.contention.build import build_contention
    from bayesperf.models.contention.encode import encode

    mixes = [*pairs(KERNELS[:2]), (KERNELS[0], KERNELS[1], KERNELS[1]), (KERNELS[2], KERNELS[1])]
    return build_contention(encode(concat([table(Target(name), mixes, seed) for seed, name in enumerate("ab")]), None))
