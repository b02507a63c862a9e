"""From a suite to the points of one worker: sweeps resolved on a machine, victims with and without their aggressors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from bayesperf import plugins
from bayesperf.errors import InputError
from bayesperf.measure.machine import Machine
from bayesperf.measure.points import Beside, Corunner, Mode, Point, identity
from bayesperf.measure.suites import Condition, ContentionSweep, Kind, ProbeSweep, Scope, Suite
from bayesperf.probe import Config, Probe, Work

__all__ = ["lay_out", "worker_groups"]


def worker_groups(suite: Suite, machine: Machine) -> list[tuple[Scope, Mode]]:
    """Kinds of worker that each fresh process of a suite needs on a machine."""
    scopes = [scope for entry in suite.probe for scope in entry.scopes or suite.scopes]
    groups: list[tuple[Scope, Mode]] = [(scope, "plain") for scope in scopes]
    groups += [(scope, mode) for entry in suite.contention for scope in entry.scopes for mode in _modes(entry)]
    if machine.devices == 1:
        given = {scope for scope, _ in groups}
        only: Scope = "all" if "all" in given or len(given) > 1 else "one"
        groups = [(only, mode) for _, mode in groups]
    return list(dict.fromkeys(groups))


def lay_out(suite: Suite, machine: Machine, scope: Scope, mode: Mode, process: int) -> list[Point]:
    """All points of one worker, each once, in the suite's order.

    Parameters
    ----------
    suite
        As it is on the machine's platform.
    machine
        Where it will run.
    scope, mode
        Kind of the worker, of `worker_groups`.
    process
        Its ordinal.

    Raises
    ------
    UnknownNameError, InputError
        A probe that is not installed, or a sweep that it refuses.
    """
    layout = _Layout(suite, machine, scope, mode, process)
    points: dict[str, Point] = {}
    for point in (*layout.plain(), *layout.shared()):
        points.setdefault(point.id, point)
    return list(points.values())


def _modes(entry: ContentionSweep) -> list[Mode]:
    """Kinds of worker of a contention experiment; without a way to pin there is nothing to pin."""
    names: dict[str, Mode] = {"processes": "plain", "threads": "threads"}
    if hasattr(os, "sched_setaffinity"):
        names |= {"pinned": "pinned", "one-processor": "one-processor"}
    return list(dict.fromkeys(names.get(mode, "plain") for mode in entry.mode))


class _Layout:
    def __init__(self, suite: Suite, machine: Machine, scope: Scope, mode: Mode, process: int):
        self.suite, self.machine, self.scope, self.mode, self.process = suite, machine, scope, mode, process

    def plain(self) -> Iterator[Point]:
        if self.mode != "plain":
            return
        for entry in self.suite.probe:
            if self._belongs(entry.scopes or self.suite.scopes):
                probe: Probe = plugins.load("probe", entry.name)
                for config in self._configurations(probe, entry, self.scope):
                    for condition in entry.conditions if self._fits(probe.work(config)) else ():
                        point = self._point(probe, config, condition, entry.sentinel, None)
                        yield point if entry.role is None else point.model_copy(update={"role": entry.role})

    def shared(self) -> Iterator[Point]:
        for entry in self.suite.contention:
            if not self._belongs(entry.scopes) or self.mode not in _modes(entry):
                continue
            probe: Probe = plugins.load("probe", entry.victim.name)
            for config in self._configurations(probe, entry.victim, self.scope):
                for beside in self._companies(entry):
                    point = self._point(probe, config, "hot+burst", entry.sentinel, beside)
                    yield point if entry.role is None else point.model_copy(update={"role": entry.role})

    def _fits(self, work: Work) -> bool:
        """Whether the scope has as many devices as an iteration spans, in each of the processes that hold them."""
        each = self.machine.count(self.scope) // work.processes
        return work.ranks == 1 or work.ranks <= each * work.processes

    def _belongs(self, scopes: list[Scope]) -> bool:
        return self.machine.devices == 1 or self.scope in scopes

    def _companies(self, entry: ContentionSweep) -> Iterator[Beside | None]:
        kinds = [
            (kind.name, plugins.load("probe", kind.name), config)
            for kind in entry.aggressors
            for config in self._configurations(plugins.load("probe", kind.name), kind, "one")
        ]
        if not kinds:
            raise InputError("suite: contention: the aggressors' sweeps hold no configuration of one device")
        groups = [kinds] if entry.together else [[kind] for kind in kinds]
        for n in entry.n:
            if n == 0:
                yield None
                continue
            for group in groups:
                corunners = [
                    Corunner(probe=name, config=config, count=n, working_set_bytes=probe.work(config).working_set_bytes)
                    for name, probe, config in group
                ]
                how = "threads" if self.mode == "threads" else "processes"
                yield Beside.model_validate({"how": how, "place": entry.place, "corunners": corunners})

    def _configurations(self, probe: Probe, entry: ProbeSweep | Kind, scope: Scope) -> list[Config]:
        try:
            return probe.configurations(_per_device(entry.sweep, self.machine, scope))
        except KeyError as error:
            raise InputError(f"suite: probe {entry.name!r}: its sweep needs the key {error}") from error
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"suite: probe {entry.name!r}: its sweep is not understood: {error}") from error

    def _point(
        self, probe: Probe, config: Config, condition: Condition, sentinel: bool, beside: Beside | None
    ) -> Point:
        work = probe.work(config)
        count = work.ranks if work.ranks > 1 else self.machine.count(self.scope)
        content = [probe.name, config, self.scope, count, condition, self.process, 0]
        return Point(
            id=identity(content, mode=self.mode, beside=beside), probe=probe.name, config=config, role=probe.role,
            scope=self.scope, n_devices=count, condition=condition, process=self.process, sentinel=sentinel,
            working_set_bytes=work.working_set_bytes, mode=self.mode, beside=beside, n_processes=work.processes,
        )  # fmt: skip


def _per_device(sweep: dict[str, Any], machine: Machine, scope: str) -> dict[str, Any]:
    """A sweep with its ``total_<key>`` lists, sizes over all devices of the scope, added to ``<key>`` per device.

    The word ``"main"`` stands for a working set that no cache of the machine holds, ``"all"`` in the list ``n_devices``
    for all devices of the scope; numbers of devices that it does not have are left out.
    """
    resolved = {key: value for key, value in sweep.items() if not key.startswith("total_")}
    count = machine.count(scope)
    if "n_devices" in resolved:
        asked = [count if number == "all" else int(number) for number in resolved["n_devices"]]
        resolved["n_devices"] = [number for number in dict.fromkeys(asked) if 2 <= number <= count]
    for key in [key for key in sweep if key.startswith("total_")]:
        totals = [machine.main_memory_bytes(count) if total == "main" else float(total) for total in sweep[key]]
        name = key.removeprefix("total_")
        resolved[name] = [*resolved.get(name, []), *(total / count for total in totals)]
    return resolved
