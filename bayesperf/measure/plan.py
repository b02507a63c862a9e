"""The plan: every point that will be measured, in its order, decided before anything runs.

A plan is saved with the measurements; the same plan can be resumed after a crash and repeated on another day.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.measure.layout import lay_out, worker_groups
from bayesperf.measure.machine import Machine
from bayesperf.measure.points import Batch, Point, most_beside
from bayesperf.measure.suites import Budget, Suite

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Batch", "Plan", "Point", "make_plan"]

PLAN_VERSION = 1
WORKER_START_S = 2.5
"""Starting a worker: Python, JAX, its backend (measured on the 2-core machine the suites were sized on)."""
SETUP_S = 0.2
"""Placing data and compiling one point, likewise."""
FLUSH_S = 0.1
"""Emptying the caches once, likewise."""


class Plan(BaseModel):
    """A saved, re-runnable plan.

    Attributes
    ----------
    suite
        The suite as it is on this platform.
    seed
        Of all randomisation.
    platform, device, n_devices, stack
        What it was made for.
    points
        Everything to measure, in order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int = PLAN_VERSION
    suite: Suite
    seed: int
    platform: str
    device: str
    n_devices: int
    stack: str
    points: list[Point]

    @property
    def id(self) -> str:
        """Content id of suite, seed, platform and points; 16 hexadecimal digits."""
        content = self.model_dump(mode="json", exclude={"stack"})
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def batches(self, skip: Iterable[str] = ()) -> list[Batch]:
        """Points by fresh process, in order, without those whose ids are in `skip`."""
        done = set(skip)
        groups: dict[str, list[Point]] = {}
        for point in sorted(self.points, key=lambda p: p.order):
            groups.setdefault(point.worker, []).append(point)
        batches = [self._batch(points, done) for points in groups.values()]
        return [batch for batch in batches if batch.points]

    def _batch(self, points: list[Point], done: set[str]) -> Batch:
        first = points[0]
        return Batch(
            scope=first.scope, n_devices=1 if first.scope == "one" else self.n_devices, process=first.process,
            mode=first.mode, n_processes=first.n_processes, threads_beside=most_beside(points, "threads"),
            processes_beside=most_beside(points, "processes"), points=[p for p in points if p.id not in done],
        )  # fmt: skip

    def seconds(self) -> float:
        """Estimated duration in s, without repeats of disturbed points."""
        points = sum(_point_seconds(point, self.suite.budget, self.platform) for point in self.points)
        return points + WORKER_START_S * sum(batch.n_processes + batch.processes_beside for batch in self.batches())

    def describe(self) -> pd.DataFrame:
        """One row per point: what it is, estimated seconds, memory and disk in byte."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "order": p.order, "id": p.id, "probe": p.probe, "op": p.config["op"],
                    "dtype": p.config.get("dtype"), "role": p.role, "scope": p.scope, "n_devices": p.n_devices,
                    "condition": p.condition, "corunners": p.beside.label if p.beside else None, "mode": p.mode,
                    "process": p.worker,
                    "shape": " ".join(f"{k}={v}" for k, v in p.config.items() if k not in ("op", "dtype")),
                    "seconds": _point_seconds(p, self.suite.budget, self.platform),
                    "memory_bytes": p.bytes_needed(shared=self.platform == "cpu"),
                    "disk_bytes": 1500 + 24 * 3 * self.suite.budget.least_rounds,
                }
                for p in sorted(self.points, key=lambda p: p.order)
            ]
        )  # fmt: skip

    @classmethod
    def from_json(cls, content: Any, *, source: str) -> Plan:
        """Validate a saved plan, as JSON text or as what that text says.

        Raises
        ------
        UnsupportedFileError
            It is no plan, or a newer version's.
        """
        if isinstance(content, str):
            try:
                content = json.loads(content)
            except ValueError as error:
                raise UnsupportedFileError(f"{source}: its plan is damaged: {error}") from error
        if isinstance(content, dict) and content.get("version", 0) > PLAN_VERSION:
            raise UnsupportedFileError(f"{source}: its plan was written by a newer bayesperf; upgrade")
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UnsupportedFileError(f"{source}: its plan is damaged: {where}: {first['msg']}") from error


def make_plan(suite: Suite, machine: Machine, seed: int) -> Plan:
    """Lay out a suite on a machine: every point, in randomised order, interleaved across configurations.

    Processes come one after the other, and the order of scopes within each is random too; inside one process all
    points of its scope are shuffled, so that no sweep runs in the order of its sizes.

    Raises
    ------
    UnknownNameError, InputError
        A probe that is not installed, or a sweep that it refuses; nothing that this machine's devices can do.
    """
    suite = suite.on(machine.platform)
    rng = np.random.default_rng(seed)
    points: list[Point] = []
    groups = worker_groups(suite, machine)
    for process in range(suite.processes):
        for scope, mode in [groups[k] for k in rng.permutation(len(groups))]:
            batch = lay_out(suite, machine, scope, mode, process)
            points += [batch[k] for k in rng.permutation(len(batch))]
    if not points:
        raise InputError(
            f"suite {suite.name}: nothing of it can be measured with {machine.devices} {machine.platform} device(s); "
            "choose another suite, or a sweep with fewer devices"
        )
    ordered = [point.model_copy(update={"order": order}) for order, point in enumerate(points)]
    return Plan(
        suite=suite, seed=seed, platform=machine.platform, device=machine.device,
        n_devices=machine.devices, stack=machine.stack, points=ordered,
    )  # fmt: skip


def _point_seconds(point: Point, budget: Budget, platform: str) -> float:
    # Large data: placed at about 1 GB/s, then at least three rounds of 1 + 2 + 3 iterations at the memory's rate.
    total = point.working_set_bytes * point.n_devices
    rate = 1e10 if platform == "cpu" else 1e12
    beside = point.beside.corunners if point.beside is not None else []
    others = sum(c.count * (SETUP_S + c.working_set_bytes / 1e9) for c in beside)
    sustained = budget.sustained_s if "sustained" in point.condition else 0.0
    flushes = budget.least_rounds * FLUSH_S if "cold" in point.condition else 0.0
    # What runs beside others is also measured alone, before and after.
    samples = (2.0 if beside else 1.0) * max(budget.point_s, 18 * total / rate)
    return SETUP_S + total / 1e9 + others + sustained + flushes + samples
