"""Samples a built program under a point's condition, watched and with its company, and again if it was disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from bayesperf.errors import MeasurementError
from bayesperf.hlo import text_hash
from bayesperf.measure import environment, watch
from bayesperf.measure.chain import AnyProgram
from bayesperf.measure.cluster import Cluster
from bayesperf.measure.cold import Flush, fit_cold, take_cold_samples
from bayesperf.measure.company import Company, Together
from bayesperf.measure.overlap import Span
from bayesperf.measure.points import Point
from bayesperf.measure.sampling import Samples, Timer, take_samples
from bayesperf.measure.slope import SlopeFit, fit_slope
from bayesperf.measure.stopping import StandardRule
from bayesperf.measure.suites import Budget

__all__ = ["Session", "Task", "attempts"]

HALF = 0.5
"""Share of a point's time for its victim alone before the others begin, and again after they ended."""

REPEATABLE = frozenset({"nonlinear", "drift", "does-not-grow", "no-overlap", "unresolved"})
"""Refusals that a disturbance can cause, so that another try is fair."""


@dataclass
class Session:
    """What points of one worker share.

    Attributes
    ----------
    devices
        Devices of the scope.
    budget
        From the suite.
    memory_bytes
        Memory of one device, shared by all on CPU; None if unknown.
    shared_memory
        Whether the devices share it.
    company
        Gathers aggressors; None where no point has any.
    flush_bytes
        What no cache of the devices holds, over all of them; None: cold points are failures.
    cluster
        The processes that measure together; None: this one is alone.
    companions
        Process ids of the others of them.
    retry_s
        Seconds left for repeats; every point adds its share, so that the first points do not use it up.
    clock
        Seconds, monotone.
    checked
        Outcome of the self-check by probe, op and dtype.
    """

    devices: Sequence[jax.Device]
    budget: Budget
    memory_bytes: float | None
    shared_memory: bool
    company: Company | None = None
    flush_bytes: float | None = None
    cluster: Cluster | None = None
    companions: Sequence[int] = ()
    retry_s: float = 0.0
    clock: Callable[[], float] = time.perf_counter
    checked: dict[tuple[str, str, str], MeasurementError | None] = field(default_factory=dict)

    def devices_of(self, point: Point) -> Sequence[jax.Device]:
        """As many devices as the point takes, of all processes that measure it."""
        return self.devices[: point.n_devices] if self.cluster is None else self.cluster.devices(point.n_devices)

    def agreed(self, act: Callable[[], Any]) -> Any:
        """What `act` returns, where it succeeds in every process that measures together."""
        return act() if self.cluster is None else self.cluster.agree(act)

    @contextmanager
    def gather(self, point: Point) -> Iterator[Together]:
        """A point's aggressors, built and at rest; none where it is alone."""
        if point.beside is None:
            yield Together()
            return
        if self.company is None:
            raise MeasurementError("unsupported", "this worker was started without company")
        with self.company.gather(point) as together:
            yield together


@dataclass(frozen=True, slots=True)
class Task:
    """A built program and what its point asks for."""

    program: AnyProgram
    point: Point
    session: Session
    together: Together
    rng: np.random.Generator


@dataclass(frozen=True, slots=True)
class _Attempt:
    samples: Samples
    fit: SlopeFit
    seen: watch.Disturbance
    beside: dict[str, Any]
    alone: dict[str, Any]
    state: dict[str, Any]

    @property
    def disturbed(self) -> bool:
        return self.seen.disturbed()


def attempts(task: Task) -> dict[str, Any]:
    """The record of the least disturbed of up to 1 + retries attempts; which is kept never depends on its time.

    A refused point is always tried again, a disturbed one while there is time left for repeats.

    Raises
    ------
    MeasurementError
        The last refusal, where every attempt was refused.
    """
    session, budget = task.session, task.session.budget
    best: _Attempt | None = None
    refused: MeasurementError | None = None
    tries = 0
    session.retry_s += budget.retry_share * budget.point_s
    with _sampler(task) as sample:
        while tries <= budget.retries and (best is None or session.retry_s >= budget.point_s):
            started = session.clock()
            try:
                attempt = _attempt(task, sample)
                if best is None or attempt.seen.total < best.seen.total:
                    best = attempt
            except MeasurementError as error:
                if error.reason not in REPEATABLE:
                    raise
                refused = error
            if tries:
                session.retry_s -= session.clock() - started
            tries += 1
            if best is not None and not best.disturbed:
                break
    if best is None:
        assert refused is not None
        raise refused
    return _record(best, tries, task)


_Sample = Callable[[Timer, float], tuple[Samples, Callable[[Samples], SlopeFit]]]
"""Takes samples for a share of the point's time, and says what fits them."""


@contextmanager
def _sampler(task: Task) -> Iterator[_Sample]:
    """How the point's condition wants its samples taken, and what fits them."""
    session, condition = task.session, task.point.condition.split("+")
    budget, clock = session.budget, session.clock

    def rule(share: float) -> StandardRule:
        return StandardRule(budget.target_relative_error, budget.least_rounds, share * budget.point_s)

    def hot(timer: Timer, share: float) -> tuple[Samples, Callable[[Samples], SlopeFit]]:
        longest = budget.longest_share * budget.point_s
        samples = take_samples(timer, rule(share), task.rng, clock, longest_s=longest, too_slow_s=budget.too_slow_s)
        return samples, lambda samples: fit_slope(samples.rounds)

    if "cold" not in condition:
        if "sustained" in condition:
            _settle(task.program, budget.sustained_s, clock)
        yield hot
        return
    if getattr(task.program, "launched", True) or session.flush_bytes is None:
        raise MeasurementError("unsupported", "a cold point needs a chained kernel and caches whose size is bounded")
    flush = Flush(session.devices, session.flush_bytes)

    def cold(timer: Timer, share: float) -> tuple[Samples, Callable[[Samples], SlopeFit]]:
        samples = take_cold_samples(timer, flush, rule(share), clock, too_slow_s=budget.too_slow_s)
        return samples, lambda samples: fit_cold(samples.rounds)

    try:
        yield cold
    finally:
        flush.release()


def _settle(program: AnyProgram, seconds: float, clock: Callable[[], float]) -> None:
    """Run without pause until the device's clock and temperature have followed."""
    count, began = 1, clock()
    while (before := clock()) - began < seconds:
        program.prepare(count)
        program.run(count)
        if clock() - before < 0.1:
            count = min(2 * count, 2**30)


def _attempt(task: Task, sample: _Sample) -> _Attempt:
    clock, together, launches = task.session.clock, task.together, list[Span]()

    cluster = task.session.cluster
    pids = [*together.pids, *task.session.companions]

    def timer(iterations: int) -> float:
        task.program.prepare(iterations)
        if cluster is not None:
            cluster.announce(iterations)
        started = clock()
        task.program.run(iterations)
        launches.append((started, clock()))
        return launches[-1][1] - started

    # Machines drift by more than many mixes cost: what a slowdown is relative to is measured at the same time.
    paired = bool(together.aggressors) and cluster is None
    around = [sample(timer, HALF)] if paired else []
    with together.at_work():
        before = watch.read(beside=pids)
        samples, fit = sample(timer, 1.0)
        seen = watch.disturbance(before, watch.read(beside=pids))
        timed = launches[-sum(len(r.seconds) for r in samples.rounds) :]
    beside = together.seen(timed)
    around += [sample(timer, HALF)] if paired else []
    state = environment.device_state(task.session.devices[0].platform)
    return _Attempt(samples, fit(samples), seen, beside, _alone(around), state)


def _alone(around: Sequence[tuple[Samples, Callable[[Samples], SlopeFit]]]) -> dict[str, Any]:
    """What a record says of the victim alone, from its samples before and after; nothing without them.

    Where both differ by more than their standard errors, the machine drifted meanwhile, and half of that is the error
    of their mean.
    """
    if not around:
        return {}
    before, after = (fit(samples) for samples, fit in around)
    rounds = [r for samples, _ in around for r in samples.rounds]
    error = max(np.hypot(before.slope_se_s, after.slope_se_s), abs(before.slope_s - after.slope_s)) / 2.0
    return {
        "alone_s": (before.slope_s + after.slope_s) / 2.0,
        "alone_se_s": float(error),
        "alone_samples_s": [t for r in rounds for t in r.seconds],
        "alone_samples_iterations": [n for r in rounds for n in r.iterations],
    }


def _record(best: _Attempt, tries: int, task: Task) -> dict[str, Any]:
    fit, samples, seen, program = best.fit, best.samples, best.seen, task.program
    return {
        "slope_s": fit.slope_s,
        "slope_se_s": fit.slope_se_s,
        "intercept_s": fit.intercept_s,
        "intercept_se_s": fit.intercept_se_s,
        "rounds": fit.rounds,
        "outliers": fit.outliers,
        "samples_s": [t for r in samples.rounds for t in r.seconds],
        "samples_iterations": [n for r in samples.rounds for n in r.iterations],
        "warmup_s": [t for _, t in samples.warmup],
        "warmup_iterations": [n for n, _ in samples.warmup],
        "stop_reason": samples.stop_reason,
        "compile_s": program.compile_s,
        "hlo_hash": text_hash(program.text) if program.text else None,
        "form": program.kernel.form,
        "cpu_threads": seen.threads,
        "others_share": seen.others,
        "steal_share": seen.steal,
        "waited_share": seen.waited,
        "disturbed": best.disturbed,
        "attempts": tries,
        "state": best.state,
        "cpus": environment.affinity(),
        **best.beside,
        **best.alone,
    }
