"""Aggressors: probes that keep a resource busy beside a victim, in threads of its process or in processes of their own.

Everybody is built before anybody runs; nothing is timed before every aggressor has finished a first launch, and none
stops before the victim's last timed launch has ended. An aggressor launches its program over and over, each launch
about `LAUNCH_S` long (`SHORT_LAUNCH_S` on accelerators), and notes when each began and ended.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import numpy as np

from bayesperf import plugins
from bayesperf.errors import MeasurementError
from bayesperf.measure import environment
from bayesperf.measure.chain import AnyProgram, build
from bayesperf.measure.overlap import Launches, Span, check_overlap, iterations_within
from bayesperf.measure.points import Beside, Corunner, Point
from bayesperf.measure.sampling import choose_counts
from bayesperf.probe import Probe

__all__ = ["Aggressor", "Company", "Runner", "ThreadAggressor", "Together"]

LAUNCH_S = {"cpu": 0.08}
"""On CPU: long beside what lies between two launches, where starved threads pause for a scheduler's slice or two, each
several milliseconds long where three share a processor."""
SHORT_LAUNCH_S = 0.002
"""On accelerators, which run launches of one process one after the other: short beside the victim's."""
TOO_SLOW_S = 3.0
"""An aggressor whose iteration takes longer could not be stopped in time."""
WAIT_S = 60.0
"""Longest wait for an aggressor to begin or to end."""


class Aggressor(Protocol):
    """One of those beside."""

    pid: int | None
    """Its process, where that is not the victim's."""
    cpus: list[int] | None
    """Processors it may use; None where the system does not tell."""

    def start(self) -> None:
        """Begin; returns at once."""

    def await_running(self) -> None:
        """Return when its first launch has ended."""

    def stop(self) -> Launches:
        """End, and tell what was done."""

    def release(self) -> None:
        """Give its memory back."""


class Runner:
    """Launches a program over and over in a thread of its own."""

    def __init__(self, program: AnyProgram, launch_s: float):
        self._program, self._spans = program, list[Span]()
        self._stop, self._begun = threading.Event(), threading.Event()
        self._error: BaseException | None = None
        counts, _ = choose_counts(self._timed, launch_s, too_slow_s=TOO_SLOW_S)
        self._iterations = counts[-1]
        self._program.prepare(self._iterations)

    def start(self) -> None:
        """Begin; returns at once."""
        self._spans, self._error = [], None
        self._stop.clear()
        self._begun.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def await_running(self) -> None:
        """Return when its first launch has ended.

        Raises
        ------
        MeasurementError
            ``corunner-failed``.
        """
        if not self._begun.wait(WAIT_S):
            raise MeasurementError("corunner-failed", f"an aggressor did not begin within {WAIT_S:.0f} s")
        self._check()

    def stop(self) -> Launches:
        """End, and tell what was done.

        Raises
        ------
        MeasurementError
            ``corunner-failed``.
        """
        self._stop.set()
        self._thread.join(WAIT_S)
        if self._thread.is_alive():
            raise MeasurementError("corunner-failed", f"an aggressor did not end within {WAIT_S:.0f} s")
        self._check()
        return Launches(tuple(self._spans), self._iterations)

    def _check(self) -> None:
        if self._error is not None:
            raise MeasurementError("corunner-failed", f"{type(self._error).__name__}: {self._error}")

    def _timed(self, iterations: int) -> float:
        self._program.prepare(iterations)
        begun = time.perf_counter()
        self._program.run(iterations)
        return time.perf_counter() - begun

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                begun = time.perf_counter()
                self._program.run(self._iterations)
                self._spans.append((begun, time.perf_counter()))
                self._begun.set()
        # Whatever it raises belongs to the point, whose thread asks for it.
        except Exception as error:  # noqa: BLE001
            self._error = error
        finally:
            self._begun.set()


class ThreadAggressor:
    """An aggressor in a thread of the victim's process."""

    pid: int | None = None

    def __init__(self, corunner: Corunner, device: jax.Device, seed: int):
        self.cpus = environment.affinity()
        probe: Probe = plugins.load("probe", corunner.probe)
        self._program = build(probe, corunner.config, [device], np.random.default_rng(seed))
        try:
            runner = Runner(self._program, LAUNCH_S.get(device.platform, SHORT_LAUNCH_S))
        except BaseException:
            self._program.release()
            raise
        self.start, self.await_running, self.stop = runner.start, runner.await_running, runner.stop

    def release(self) -> None:
        """Give its memory back."""
        self._program.release()


@dataclass
class Together:
    """A victim's company at one point; empty where it is alone.

    Attributes
    ----------
    aggressors
        Those beside, built and at rest, and what each of them is.
    launches
        What each did, once `at_work` has ended.
    """

    aggressors: list[tuple[Corunner, Aggressor]] = field(default_factory=list)
    launches: list[Launches] = field(default_factory=list)

    @property
    def pids(self) -> list[int]:
        """Processes of those that are not in the victim's: what they use is not others' doing."""
        return [a.pid for _, a in self.aggressors if a.pid is not None]

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Everybody runs from before the block begins until after it ends.

        Raises
        ------
        MeasurementError
            An aggressor failed, for its reason; the others are stopped all the same.
        """
        members = [aggressor for _, aggressor in self.aggressors]
        errors: list[MeasurementError] = []

        def each(act: Callable[[Aggressor], Any]) -> list[Any]:
            results = []
            for member in members:
                try:
                    results.append(act(member))
                except MeasurementError as error:
                    errors.append(error)
            return results

        try:
            each(lambda member: member.start())
            each(lambda member: member.await_running())
            if not errors:
                yield
        finally:
            self.launches = each(lambda member: member.stop())
        if errors:
            raise errors[0]

    def seen(self, victim: Sequence[Span]) -> dict[str, Any]:
        """What a record says of them: overlap, and what they did per second of the victim's timed region.

        Raises
        ------
        MeasurementError
            ``no-overlap``.
        """
        if not self.aggressors:
            return {}
        share = check_overlap(victim, self.launches)
        begin, end = victim[0][0], victim[-1][1]
        flops = moved = 0.0
        for (corunner, _), launches in zip(self.aggressors, self.launches, strict=True):
            work = plugins.load("probe", corunner.probe).work(corunner.config)
            rate = iterations_within(launches, begin, end) / (end - begin)
            flops, moved = flops + rate * work.flops, moved + rate * work.bytes
        cpus = [aggressor.cpus for _, aggressor in self.aggressors]
        return {
            "overlap": share, "corunner_flops_per_s": flops, "corunner_bytes_per_s": moved, "corunner_cpus": cpus,
        }  # fmt: skip


class Company:
    """Gathers aggressors for the points of one worker; helper processes live as long as it does.

    Parameters
    ----------
    devices, spare
        The victim's devices, and those that threads may use.
    platform
        Of the devices.
    cpus
        Processors for helper processes, one each in turn; None: as the system likes.
    """

    def __init__(
        self, devices: Sequence[jax.Device], spare: Sequence[jax.Device], platform: str, cpus: list[int] | None
    ):
        from bayesperf.measure.helpers import Helpers

        self._devices, self._spare, self._platform = devices, spare, platform
        self._helpers = Helpers(platform, cpus)

    @contextlib.contextmanager
    def gather(self, point: Point) -> Iterator[Together]:
        """Build a point's aggressors; they are released afterwards.

        Raises
        ------
        MeasurementError
            An aggressor cannot be built, for its reason; ``corunner-failed`` if its process died.
        """
        together = Together()
        try:
            if point.beside is not None:
                each = [c for c in point.beside.corunners for _ in range(c.count)]
                for at, corunner in enumerate(each):
                    together.aggressors.append((corunner, self._aggressor(point, point.beside, corunner, at)))
            yield together
        finally:
            for _, aggressor in together.aggressors:
                aggressor.release()

    def _aggressor(self, point: Point, beside: Beside, corunner: Corunner, at: int) -> Aggressor:
        seed = point.seed + 1 + at
        if beside.how == "processes":
            offset = point.n_devices if beside.place == "next" and self._platform != "cpu" else 0
            return self._helpers.aggressor(at, corunner, device=offset + at if offset else 0, seed=seed)
        others = self._spare if self._spare and (beside.place == "next" or self._platform == "cpu") else self._devices
        return ThreadAggressor(corunner, others[at % len(others)], seed)
