"""Interference watch: what others did on the machine's processors while a point was measured."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["Disturbance", "Reading", "disturbance", "read"]

PROC_STAT = Path("/proc/stat")
PROC_TASKS = Path("/proc/self/task")
TICK_S = 0.02
"""Two ticks of the system's accounting: one at each end of an interval."""


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
    waited_s
        Spent by this process's threads ready to run, waiting for a processor.
    processors
        Number of processors counted.
    """

    wall_s: float
    own_s: float
    busy_s: float | None
    steal_s: float | None
    waited_s: float | None
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
    waited
        Share that this process's threads spent waiting for a processor: fine-grained, but its own crowding counts too.
    threads
        Processor time of this process over wall time: how many threads really ran.
    wall_s
        Length of the interval.
    """

    others: float | None
    steal: float | None
    waited: float | None
    threads: float
    wall_s: float

    def disturbed(self, *, others: float = 0.05, steal: float = 0.02, waited: float = 0.03) -> bool:
        """Whether others or the hypervisor took more than a share of the processors.

        The system counts in ticks of 10 ms, so shares of others and of the hypervisor must exceed that resolution;
        waiting is exact, and counts where others were seen at all.
        """
        grain = TICK_S / self.wall_s if self.wall_s > 0 else 1.0
        seen = self.others or 0.0
        crowded = (self.waited or 0.0) > waited and seen > others
        return crowded or seen > others + grain or (self.steal or 0.0) > steal + grain

    @property
    def total(self) -> float:
        """Share lost in all, unknown parts counted as nothing."""
        return max(self.others or 0.0, self.waited or 0.0) + (self.steal or 0.0)


def read(path: Path = PROC_STAT, tasks: Path = PROC_TASKS, *, beside: Sequence[int] = ()) -> Reading:
    """Read the counters now; what processes `beside` use, our aggressors, is our own use."""
    used = os.times()
    own = used.user + used.system + sum(map(_used, beside))
    wall = time.perf_counter()
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return Reading(wall, own, None, None, _waited(tasks), os.cpu_count() or 1)
    fields = [float(field) for field in lines[0].split()[1:]]
    ticks = float(os.sysconf("SC_CLK_TCK"))
    # user nice system idle iowait irq softirq steal; guest time is counted in user already.
    busy = sum(fields[k] for k in (0, 1, 2, 5, 6)) / ticks
    steal = fields[7] / ticks if len(fields) > 7 else None
    processors = sum(1 for line in lines if line.startswith("cpu") and line[3:4].isdigit())
    return Reading(wall, own, busy, steal, _waited(tasks), max(1, processors))


def _used(pid: int) -> float:
    try:
        used = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0  # it has ended; its point fails for that
    return float(used.user + used.system)


def _waited(tasks: Path) -> float | None:
    """Run-queue delay of all threads in s; threads that have ended meanwhile are not in it."""
    waited, known = 0.0, False
    for path in tasks.glob("*/schedstat"):
        try:
            waited += float(path.read_text().split()[1]) / 1e9
            known = True
        except (OSError, IndexError, ValueError):
            continue  # the thread ended, or the kernel does not keep this
    return waited if known else None


def disturbance(before: Reading, after: Reading) -> Disturbance:
    """Compare two readings."""
    wall = max(after.wall_s - before.wall_s, 1e-9)
    own = after.own_s - before.own_s
    capacity = wall * after.processors
    others = steal = waited = None
    if before.busy_s is not None and after.busy_s is not None:
        others = max(0.0, after.busy_s - before.busy_s - own) / capacity
    if before.steal_s is not None and after.steal_s is not None:
        steal = max(0.0, after.steal_s - before.steal_s) / capacity
    if before.waited_s is not None and after.waited_s is not None:
        waited = max(0.0, after.waited_s - before.waited_s) / capacity
    return Disturbance(others, steal, waited, own / wall, wall)
