"""What a plan is made of: points, who runs beside them, and the batches that one fresh process measures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bayesperf.measure.suites import Condition, Scope

__all__ = ["CONDITION", "Batch", "Beside", "Corunner", "Mode", "Point", "identity", "most_beside"]

CONDITION: Condition = "hot+burst"

Mode = Literal["plain", "threads", "pinned", "one-processor"]
"""How a point's worker is started: as always, with devices to spare for threads beside, on processors of its own, or on
processors that those beside use too."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Corunner(_Frozen):
    """An aggressor: a probe's configuration on one device, and how many of it run."""

    probe: str
    config: dict[str, Any]
    count: int = Field(ge=1)
    working_set_bytes: float


class Beside(_Frozen):
    """What runs beside a point, from before its first timed launch until after its last.

    Attributes
    ----------
    how
        In ``threads`` of the victim's process, or in ``processes`` of their own.
    place
        Accelerators only: on the ``same`` device as the victim, or on the ``next`` ones. On CPU, where a device is
        a queue, each aggressor has one of its own.
    corunners
        Who.
    """

    how: Literal["threads", "processes"]
    place: Literal["same", "next"] = "same"
    corunners: list[Corunner] = Field(min_length=1)

    @property
    def count(self) -> int:
        """Aggressors in all."""
        return sum(c.count for c in self.corunners)

    @property
    def label(self) -> str:
        """``op:count`` joined by ``+``, sorted: the table's column."""
        counts: dict[str, int] = {}
        for corunner in self.corunners:
            op = str(corunner.config["op"])
            counts[op] = counts.get(op, 0) + corunner.count
        return "+".join(f"{op}:{count}" for op, count in sorted(counts.items()))

    @property
    def shapes(self) -> str:
        """What the label leaves out: dtype and shape of each."""
        return "; ".join(" ".join(f"{k}={v}" for k, v in c.config.items()) for c in self.corunners)


class Point(_Frozen):
    """One configuration under one condition in one process.

    Attributes
    ----------
    id
        Content id: of everything here but `order`.
    probe, config, role
        What is run.
    scope, n_devices
        On which devices.
    condition
        As in the table.
    process, repetition
        Which fresh process of the scope, and which repetition inside it.
    order
        Position in the whole run.
    sentinel
        Whether it is repeated in every campaign.
    working_set_bytes
        Footprint on one device.
    mode
        How its worker is started.
    beside
        What runs beside it; None: it is alone.
    n_processes
        Processes that hold its devices, as many each.
    """

    id: str
    probe: str
    config: dict[str, Any]
    role: Literal["fit", "heldout"]
    scope: Scope
    n_devices: int
    condition: str = CONDITION
    process: int
    repetition: int = 0
    order: int = 0
    sentinel: bool = False
    working_set_bytes: float
    mode: Mode = "plain"
    beside: Beside | None = None
    n_processes: int = 1

    @property
    def seed(self) -> int:
        """Seed of its data and of the order of its rounds."""
        return int(self.id, 16)

    @property
    def sharing(self) -> str:
        """How its worker is started, or how many processes hold its devices: part of the target where not ``plain``."""
        return self.mode if self.n_processes == 1 else f"{self.n_processes}-processes"

    @property
    def worker(self) -> str:
        """Which fresh process measures it, as in the table."""
        return "-".join([self.scope, *([] if self.sharing == "plain" else [self.sharing]), str(self.process)])

    def bytes_needed(self, *, shared: bool) -> float:
        """Memory in byte: of one device, or (`shared`: the devices' and the host's is one) in all.

        Where memory is shared, the host's copy of the data lives beside the device's.
        """
        others = 0.0
        if self.beside is not None:
            others = sum(c.working_set_bytes * c.count for c in self.beside.corunners)
            others = 0.0 if self.beside.place == "next" and not shared else others
        return 2 * (self.working_set_bytes * self.n_devices + others) if shared else self.working_set_bytes + others


class Batch(_Frozen):
    """Points that one fresh process measures, in order; or several processes together, where they share the devices.

    Attributes
    ----------
    scope, n_devices, process, mode, n_processes
        As of its points.
    threads_beside, processes_beside
        Most aggressors at a time, in threads of the worker and in processes of their own, over all points of the plan
        that this worker has: a resumed run starts it as the first one did.
    """

    scope: Scope
    n_devices: int
    process: int
    mode: Mode = "plain"
    n_processes: int = 1
    threads_beside: int = 0
    processes_beside: int = 0
    points: list[Point]


def most_beside(points: Iterable[Point], how: str) -> int:
    """Most aggressors of any point that run in ``threads`` or in ``processes``."""
    return max((p.beside.count for p in points if p.beside is not None and p.beside.how == how), default=0)


def identity(content: list[Any], *, mode: Mode, beside: Beside | None) -> str:
    """Content id of a point; what is alone in a plain worker has the id it had before there were others."""
    extra: list[Mapping[str, Any] | str] = []
    if mode != "plain" or beside is not None:
        extra = [mode, beside.model_dump(mode="json") if beside is not None else {}]
    return hashlib.sha256(json.dumps([*content, *extra], sort_keys=True).encode()).hexdigest()[:12]
