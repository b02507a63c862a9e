"""Measures one point inside a worker: build, check, sample, fit, watch, and again if it was disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from bayesperf.errors import MeasurementError
from bayesperf.hlo import text_hash
from bayesperf.measure import watch
from bayesperf.measure.chain import Program, build
from bayesperf.measure.plan import Point
from bayesperf.measure.sampling import Samples, take_samples
from bayesperf.measure.slope import SlopeFit, fit_slope
from bayesperf.measure.stopping import StandardRule
from bayesperf.measure.suites import Budget
from bayesperf.probe import Probe

__all__ = ["Session", "check_result", "measure_point", "refuse_too_large"]

AFFORDABLE_FLOPS, AFFORDABLE_BYTES = 3e8, 4e6
"""Work whose NumPy reference costs little beside the point itself."""

REPEATABLE = frozenset({"nonlinear", "drift", "does-not-grow"})
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
    retry_s: float = 0.0
    clock: Callable[[], float] = time.perf_counter
    checked: dict[tuple[str, str, str], MeasurementError | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Attempt:
    samples: Samples
    fit: SlopeFit
    seen: watch.Disturbance
    disturbed: bool


def measure_point(probe: Probe, point: Point, session: Session, *, check_large: bool) -> dict[str, Any]:
    """Measure a point.

    Parameters
    ----------
    probe, point, session
        What to measure, and where.
    check_large
        Whether a point that is too large for NumPy is checked by a small program of its kind.

    Returns
    -------
    dict
        JSON-able: the fit, every raw sample, the hash of the program, what the watch saw.

    Raises
    ------
    MeasurementError
        With the reason for the failures table.
    """
    refuse_too_large(point, session)
    rng = np.random.default_rng(point.seed)
    setup = session.clock()
    program = build(probe, point.config, session.devices, rng)
    try:
        setup = session.clock() - setup
        _self_check(probe, point, session, program, check_large)
        best, attempts = _attempts(program, session, rng)
    finally:
        program.release()
    return _record(best, attempts, setup, program)


def refuse_too_large(point: Point, session: Session) -> None:
    """Refuse a point that needs more than the suite's share of memory.

    Raises
    ------
    MeasurementError
        ``too-large``.
    """
    if session.memory_bytes is None:
        return
    # On CPU the host's copy and the devices' live in one memory.
    needed = point.working_set_bytes * (2 * len(session.devices) if session.shared_memory else 1)
    allowed = session.budget.memory_share * session.memory_bytes
    if needed > allowed:
        raise MeasurementError(
            "too-large",
            f"it needs {needed:.3g} bytes, {allowed:.3g} are allowed: {session.budget.memory_share:.0%} of memory",
        )


def check_result(probe: Probe, config: dict[str, Any], program: Program, *, iterations: int = 2) -> float:
    """Run a fresh program and compare its carry with the probe's NumPy reference.

    Returns
    -------
    float
        Largest error, relative to the largest magnitude of each array.

    Raises
    ------
    MeasurementError
        ``wrong-result``: the error exceeds the probe's tolerance, as when float32 silently became tf32.
    """
    program.run(iterations)
    expected = probe.reference(config, program.kernel, iterations)
    worst = max(_relative_error(a, b) for a, b in zip(program.carry(), expected, strict=True))
    allowed = probe.tolerance(config)
    if not worst <= allowed:
        raise MeasurementError(
            "wrong-result",
            f"{config['op']} in {config.get('dtype')} differs from its reference by {worst:.2g}, more than "
            f"{allowed:.2g}: the compiler lowered its precision, or the kernel is wrong",
        )
    return worst


def _relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    scale = float(np.max(np.abs(expected))) or 1.0
    return float(np.max(np.abs(np.asarray(found, dtype=np.float64) - expected))) / scale


def _self_check(probe: Probe, point: Point, session: Session, program: Program, check_large: bool) -> None:
    """Check the very program that will be timed where NumPy can afford it, else a small one, once per op and dtype."""
    work, config = probe.work(point.config), point.config
    if work.flops <= AFFORDABLE_FLOPS and work.working_set_bytes <= AFFORDABLE_BYTES:
        check_result(probe, config, program)
        return
    key = (probe.name, str(config["op"]), str(config.get("dtype")))
    if key not in session.checked and check_large:
        small = build(probe, probe.small(config), session.devices, np.random.default_rng(0))
        try:
            check_result(probe, probe.small(config), small)
            session.checked[key] = None
        except MeasurementError as error:
            session.checked[key] = error
        finally:
            small.release()
    failed = session.checked.get(key)
    if failed is not None:
        raise failed


def _attempts(program: Program, session: Session, rng: np.random.Generator) -> tuple[_Attempt, int]:
    """The least disturbed of up to 1 + retries attempts; which one is kept never depends on its time.

    A refused point is always tried again, a disturbed one while there is time left for repeats.
    """
    best: _Attempt | None = None
    refused: MeasurementError | None = None
    tries = 0
    session.retry_s += session.budget.retry_share * session.budget.point_s
    while tries <= session.budget.retries and (best is None or session.retry_s >= session.budget.point_s):
        started = session.clock()
        try:
            attempt = _attempt(program, session, rng)
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
    return best, tries


def _attempt(program: Program, session: Session, rng: np.random.Generator) -> _Attempt:
    budget, clock = session.budget, session.clock

    def timer(iterations: int) -> float:
        program.prepare(iterations)
        started = clock()
        program.run(iterations)
        return clock() - started

    rule = StandardRule(budget.target_relative_error, budget.least_rounds, budget.point_s)
    longest = budget.longest_share * budget.point_s
    before = watch.read()
    samples = take_samples(timer, rule, rng, clock, longest_s=longest, too_slow_s=budget.too_slow_s)
    seen = watch.disturbance(before, watch.read())
    return _Attempt(samples, fit_slope(samples.rounds), seen, seen.disturbed())


def _record(best: _Attempt, attempts: int, setup_s: float, program: Program) -> dict[str, Any]:
    fit, samples, seen = best.fit, best.samples, best.seen
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
        "setup_s": setup_s,
        "hlo_hash": text_hash(program.text),
        "form": program.kernel.form,
        "cpu_threads": seen.threads,
        "others_share": seen.others,
        "steal_share": seen.steal,
        "waited_share": seen.waited,
        "disturbed": best.disturbed,
        "attempts": attempts,
    }
