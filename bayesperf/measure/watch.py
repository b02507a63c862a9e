"""Interference watch: what others did on the machine's processors while a point was measured."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Disturbance", "Reading", "disturbance", "read"]

PROC_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at one moment, in s of processor time; None where the system does not tell.

    Attributes
    ----------
    wall_s
        Clock.
    own_s
        Used by this process, all threads.
    busy_s
        Used by everybody, all processors.
    steal_s
        Taken by the hypervisor for other guests.
    processors
        Number of processors counted.
    """

    wall_s: float
    own_s: float
    busy_s: float | None
    steal_s: float | None
    processors: int


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happened between two readings, as shares of the processors' time; None where unknown.

    Attributes
    ----------
    others
        Share used by other processes.
    steal
        Share taken by the hypervisor.
    threads
        Processor time of this process over wall time: how many threads really ran.
    wall_s
        Length of the interval.
    """

    others: float | None
    steal: float | None
    threads: float
    wall_s: float

    def disturbed(self, *, others: float = 0.05, steal: float = 0.02, tick_s: float = 0.02) -> bool:
        """Whether others or the hypervisor took more than a share, beyond the counters' resolution of `tick_s`."""
        grain = tick_s / self.wall_s if self.wall_s > 0 else 1.0
        return (self.others or 0.0) > others + grain or (self.steal or 0.0) > steal + grain

    @property
    def total(self) -> float:
        """Share lost in all, unknown parts counted as nothing."""
        return (self.others or 0.0) + (self.steal or 0.0)


def read(path: Path = PROC_STAT) -> Reading:
    """Read the counters now."""
    used = os.times()
    own = used.user + used.system
    wall = time.perf_counter()
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return Reading(wall, own, None, None, os.cpu_count() or 1)
    fields = [float(field) for field in lines[0].split()[1:]]
    ticks = float(os.sysconf("SC_CLK_TCK"))
    # user nice system idle iowait irq softirq steal; guest time is counted in user already.
    busy = sum(fields[k] for k in (0, 1, 2, 5, 6)) / ticks
    steal = fields[7] / ticks if len(fields) > 7 else None
    processors = sum(1 for line in lines if line.startswith("cpu") and line[3:4].isdigit())
    return Reading(wall, own, busy, steal, max(1, processors))


def disturbance(before: Reading, after: Reading) -> Disturbance:
    """Compare two readings."""
    wall = max(after.wall_s - before.wall_s, 1e-9)
    own = after.own_s - before.own_s
    capacity = wall * after.processors
    others = steal = None
    if before.busy_s is not None and after.busy_s is not None:
        others = max(0.0, after.busy_s - before.busy_s - own) / capacity
    if before.steal_s is not None and after.steal_s is not None:
        steal = max(0.0, after.steal_s - before.steal_s) / capacity
    return Disturbance(others, steal, own / wall, wall)
