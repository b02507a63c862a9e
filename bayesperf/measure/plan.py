"""The plan: every point that will be measured, in its order, decided before anything runs.

A plan is saved with the measurements; the same plan can be resumed after a crash and repeated on another day.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from bayesperf import plugins
from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.measure.machine import Machine
from bayesperf.measure.suites import Budget, ProbeSweep, Suite

if TYPE_CHECKING:
    import pandas as pd

    from bayesperf.probe import Probe

__all__ = ["Batch", "Plan", "Point", "make_plan"]

PLAN_VERSION = 1
CONDITION = "hot+burst"
WORKER_START_S = 2.5
"""Starting a worker: Python, JAX, its backend (measured on the 2-core machine the suites were sized on)."""
SETUP_S = 0.2
"""Placing data and compiling one point, likewise."""


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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
    """

    id: str
    probe: str
    config: dict[str, Any]
    role: Literal["fit", "heldout"]
    scope: Literal["one", "all"]
    n_devices: int
    condition: str = CONDITION
    process: int
    repetition: int = 0
    order: int = 0
    sentinel: bool = False
    working_set_bytes: float

    @property
    def seed(self) -> int:
        """Seed of its data and of the order of its rounds."""
        return int(self.id, 16)


class Batch(_Frozen):
    """Points that one fresh process measures, in order."""

    scope: Literal["one", "all"]
    n_devices: int
    process: int
    points: list[Point]


class Plan(_Frozen):
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
        groups: dict[tuple[int, str], list[Point]] = {}
        for point in sorted(self.points, key=lambda p: p.order):
            if point.id not in done:
                groups.setdefault((point.process, point.scope), []).append(point)
        return [
            Batch(scope=points[0].scope, n_devices=points[0].n_devices, process=points[0].process, points=points)
            for points in groups.values()
        ]

    def seconds(self) -> float:
        """Estimated duration in s, without repeats of disturbed points."""
        points = sum(_point_seconds(point, self.suite.budget, self.platform) for point in self.points)
        return points + WORKER_START_S * len(self.batches())

    def describe(self) -> pd.DataFrame:
        """One row per point: what it is, estimated seconds, memory and disk in byte."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "order": p.order, "id": p.id, "probe": p.probe, "op": p.config["op"],
                    "dtype": p.config.get("dtype"), "role": p.role, "scope": p.scope, "n_devices": p.n_devices,
                    "condition": p.condition, "process": p.process,
                    "shape": " ".join(f"{k}={v}" for k, v in p.config.items() if k not in ("op", "dtype")),
                    "seconds": _point_seconds(p, self.suite.budget, self.platform),
                    "memory_bytes": _memory_bytes(p),
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
        A probe that is not installed, or a sweep that it refuses.
    """
    suite = suite.on(machine.platform)
    rng = np.random.default_rng(seed)
    points: list[Point] = []
    for process in range(suite.processes):
        scopes = list(dict.fromkeys(scope for entry in suite.probe for scope in entry.scopes or suite.scopes))
        if machine.devices == 1 and len(scopes) > 1:
            scopes = ["all"] if "all" in scopes else scopes[:1]
        for scope in [scopes[k] for k in rng.permutation(len(scopes))]:
            batch = _batch(suite, machine, scope, process)
            points += [batch[k] for k in rng.permutation(len(batch))]
    ordered = [point.model_copy(update={"order": order}) for order, point in enumerate(points)]
    return Plan(
        suite=suite, seed=seed, platform=machine.platform, device=machine.device,
        n_devices=machine.devices, stack=machine.stack, points=ordered,
    )  # fmt: skip


def _batch(suite: Suite, machine: Machine, scope: Any, process: int) -> list[Point]:
    points: dict[str, Point] = {}
    single = machine.devices == 1
    for entry in suite.probe:
        if single or scope in (entry.scopes or suite.scopes):
            probe: Probe = plugins.load("probe", entry.name)
            for config in _configurations(probe, entry, machine, scope):
                point = _point(probe, config, entry, scope, machine.count(scope), process)
                points.setdefault(point.id, point)
    return list(points.values())


def _configurations(probe: Probe, entry: ProbeSweep, machine: Machine, scope: str) -> list[dict[str, Any]]:
    try:
        return probe.configurations(_per_device(entry.sweep, machine, scope))
    except KeyError as error:
        raise InputError(f"suite: probe {entry.name!r}: its sweep needs the key {error}") from error
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"suite: probe {entry.name!r}: its sweep is not understood: {error}") from error


def _per_device(sweep: dict[str, Any], machine: Machine, scope: str) -> dict[str, Any]:
    """A sweep with its ``total_<key>`` lists, sizes over all devices of the scope, added to ``<key>`` per device.

    The word ``"main"`` stands for a working set that no cache of the machine holds.
    """
    resolved = {key: value for key, value in sweep.items() if not key.startswith("total_")}
    count = machine.count(scope)
    for key in [key for key in sweep if key.startswith("total_")]:
        totals = [machine.main_memory_bytes(count) if total == "main" else float(total) for total in sweep[key]]
        name = key.removeprefix("total_")
        resolved[name] = [*resolved.get(name, []), *(total / count for total in totals)]
    return resolved


def _point(probe: Probe, config: dict[str, Any], entry: ProbeSweep, scope: Any, count: int, process: int) -> Point:
    content = [probe.name, config, scope, count, CONDITION, process, 0]
    identity = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    return Point(
        id=identity, probe=probe.name, config=config, role=probe.role, scope=scope, n_devices=count,
        process=process, sentinel=entry.sentinel, working_set_bytes=probe.work(config).working_set_bytes,
    )  # fmt: skip


def _memory_bytes(point: Point) -> float:
    # The host's copy of the data beside the device's.
    return 2 * point.working_set_bytes * point.n_devices


def _point_seconds(point: Point, budget: Budget, platform: str) -> float:
    # Large data: placed at about 1 GB/s, then at least three rounds of 1 + 2 + 3 iterations at the memory's rate.
    total = point.working_set_bytes * point.n_devices
    rate = 1e10 if platform == "cpu" else 1e12
    return SETUP_S + total / 1e9 + max(budget.point_s, 18 * total / rate)
