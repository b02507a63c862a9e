"""How much of a target's compute and memory a kernel uses when it runs alone: its rates over the best ones seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesperf.model import Floats
from bayesperf.models.roofline.priors import PRIORS as ROOFLINE
from bayesperf.models.roofline.units import typical_offset, unit_of

__all__ = ["LEAST", "Kernel", "Rates", "is_transfer", "rates_of"]

LEAST = 1e-4
"""Least share of a resource: below it nothing shows, and logs of zero are avoided."""


HALF = float(np.log(0.5))
"""Log share of the best bandwidth from which a row says little of a compute rate."""

_TRANSFER = re.compile(r"^(copy_(h2d|d2h|d2d|p2p)|memcpy|send|recv|all_|reduce|broadcast|ppermute|allreduce)", re.I)


def is_transfer(op: str) -> bool:
    """Whether an operation moves data over a link between devices, or between a device and its host."""
    return _TRANSFER.match(op) is not None


@dataclass(frozen=True)
class Kernel:
    """What one execution does, and how long it takes alone.

    Parameters
    ----------
    op, dtype
        As in the table.
    flops, bytes, working_set
        FLOP, byte, byte.
    log_time
        Log seconds alone; NaN where nobody measured it.
    threads
        Processors it keeps busy; 1 where nobody knows.
    """

    op: str
    dtype: str
    flops: float
    bytes: float
    working_set: float
    log_time: float = float("nan")
    threads: float = 1.0


@dataclass(frozen=True)
class Rates:
    """Best rates seen of every target.

    Parameters
    ----------
    compute
        Log FLOP/s by target and unit.
    bandwidth
        By target, ascending log working sets and the best log B/s at a working set at least as large.
    link
        Log B/s by target and operation, of those that move data over a link.
    """

    compute: Mapping[tuple[str, str], float]
    bandwidth: Mapping[str, tuple[Floats, Floats]]
    link: Mapping[tuple[str, str], float]

    def shares(self, target: str, kernel: Kernel) -> tuple[float, float, float]:
        """Shares of the best compute rate, bandwidth and link rate that a kernel uses alone, `LEAST` to 1 each.

        One that was not measured is taken to run at the best rates.
        """
        compute, memory = self._seconds(target, kernel)
        log_time = kernel.log_time if np.isfinite(kernel.log_time) else max(compute, memory)
        link = -np.inf
        if is_transfer(kernel.op) and kernel.bytes > 0:
            link = np.log(kernel.bytes) - log_time - self.link.get((target, kernel.op), -np.inf)
        return self._share(compute - log_time), self._share(memory - log_time), self._share(link)

    def pressure(self, target: str, working_set: float, others: float) -> float:
        """Log by which traffic slows down if `others` bytes were added to a working set."""
        before, after = (self.log_bandwidth(target, size) for size in (working_set, working_set + others))
        return max(0.0, before - after) if np.isfinite(before - after) else 0.0

    def _seconds(self, target: str, kernel: Kernel) -> tuple[float, float]:
        """Log times of the kernel's work at the best rates; -inf where there is no work or no rate."""
        rate = self.compute.get((target, unit_of(kernel.op, kernel.dtype)), np.nan)
        speed = self.log_bandwidth(target, kernel.working_set)
        found = []
        for work, log_rate in ((kernel.flops, rate), (kernel.bytes, speed)):
            if work <= 0:
                found.append(-np.inf)
            elif np.isfinite(log_rate):
                found.append(float(np.log(work) - log_rate))
            else:
                # Of a unit that was never seen, this kernel is the best.
                found.append(kernel.log_time if np.isfinite(kernel.log_time) else 0.0)
        return found[0], found[1]

    def log_bandwidth(self, target: str, working_set: float) -> float:
        """Best log B/s at a working set, bytes; NaN of a target that moved none."""
        if target not in self.bandwidth:
            return float("nan")
        sizes, best = self.bandwidth[target]
        return float(np.interp(np.log(max(working_set, 1.0)), sizes, best))

    @staticmethod
    def _share(log_share: float) -> float:
        return float(np.clip(np.exp(min(log_share, 0.0)), LEAST, 1.0))


def rates_of(table: pd.DataFrame, log_time: Floats, log_working_set: Floats) -> Rates:
    """Best rates of configurations that ran alone.

    Parameters
    ----------
    table
        One row per configuration.
    log_time, log_working_set
        Of each, (configuration,).
    """
    flops, moved = (np.log(np.maximum(table[name].to_numpy(float), 1e-30)) for name in ("flops", "bytes"))
    target, op = table["target"].to_numpy(dtype=object), table["op"].tolist()
    dtype = table["dtype"].tolist() if "dtype" in table else [""] * len(table)
    bandwidth = {name: _bandwidth(moved - log_time, log_working_set, target == name) for name in dict.fromkeys(target)}
    rates = Rates({}, {name: curve for name, curve in bandwidth.items() if len(curve[0])}, {})
    seen: dict[tuple[str, str], int] = {}
    link: dict[tuple[str, str], float] = {}
    for at, (name, kind) in enumerate(zip(target, op, strict=True)):
        unit = name, unit_of(kind, str(dtype[at]))
        speed = flops - log_time
        if flops[at] > 0 and (unit not in seen or speed[at] > speed[seen[unit]]):
            seen[unit] = at
        if is_transfer(kind) and moved[at] > 0:
            link[name, kind] = max(link.get((name, kind), -np.inf), float(moved[at] - log_time[at]))
    sizes = np.exp(log_working_set)
    waits = {
        unit: moved[at] - log_time[at] - rates.log_bandwidth(unit[0], float(sizes[at])) > HALF
        for unit, at in seen.items()
    }
    best = {unit: float(flops[at] - log_time[at]) for unit, at in seen.items()}
    compute = {
        unit: max(rate, _expected(unit, best, waits, rates)) if waits[unit] else rate for unit, rate in best.items()
    }
    return Rates(compute, rates.bandwidth, link)


def _bandwidth(speed: Floats, log_working_set: Floats, mine: np.ndarray) -> tuple[Floats, Floats]:
    """Log working sets, ascending, and the best log bandwidth at one at least as large."""
    rows = np.flatnonzero(mine & (speed > -50.0))
    rows = rows[np.argsort(log_working_set[rows], kind="stable")]
    best = np.maximum.accumulate(speed[rows][::-1])[::-1]
    # Of equal sizes the first one has the best of all.
    sizes, first = np.unique(log_working_set[rows], return_index=True)
    return sizes, best[first]


def _expected(
    unit: tuple[str, str], best: Mapping[tuple[str, str], float], waits: Mapping[tuple[str, str], bool], rates: Rates
) -> float:
    """Rate of a unit of which every row waits for memory: typical beside the target's other units and its memory."""
    target, name = unit
    others = [rate - typical_offset(other) for (where, other), rate in best.items() if where == target
              and not waits[where, other]]  # fmt: skip
    expected = [max(others) + typical_offset(name)] if others else []
    if target in rates.bandwidth:
        expected.append(float(rates.bandwidth[target][1][-1]) + ROOFLINE.vector_balance)
    return max(expected, default=-np.inf)
