"""Measures one point inside a worker: refuse what is too large, build, check the result, sample."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from bayesperf.errors import MeasurementError
from bayesperf.measure.attempt import Session, Task, attempts
from bayesperf.measure.chain import AnyProgram, build
from bayesperf.measure.points import CONDITION, Point
from bayesperf.probe import Probe

__all__ = ["Session", "check_result", "measure_point", "refuse_too_large"]

AFFORDABLE_FLOPS, AFFORDABLE_BYTES = 3e8, 4e6
"""Work whose NumPy reference costs little beside the point itself."""


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
        JSON-able: the fit, every raw sample, the hash of the program, what the watch saw. Of several processes that
        measure together, only the first has one; those of the others are empty.

    Raises
    ------
    MeasurementError
        With the reason for the failures table.
    """
    refuse_too_large(point, session)
    rng = np.random.default_rng(point.seed)
    setup = session.clock()
    if session.cluster is not None and point.condition != CONDITION:
        raise MeasurementError("unsupported", f"several processes together measure under {CONDITION} alone")
    program: AnyProgram = session.agreed(lambda: build(probe, point.config, session.devices_of(point), rng))
    try:
        setup = session.clock() - setup
        session.agreed(lambda: _self_check(probe, point, session, program, check_large))
        if session.cluster is not None and not session.cluster.leads:
            session.cluster.follow(program)
            return {}
        with session.gather(point) as together, session.cluster.leading() if session.cluster else nullcontext():
            record = attempts(Task(program, point, session, together, rng))
    finally:
        program.release()
    return {**record, "setup_s": setup}


def refuse_too_large(point: Point, session: Session) -> None:
    """Refuse a point that needs more than the suite's share of memory.

    Raises
    ------
    MeasurementError
        ``too-large``.
    """
    if session.memory_bytes is None:
        return
    needed = point.bytes_needed(shared=session.shared_memory)
    allowed = session.budget.memory_share * session.memory_bytes
    if needed > allowed:
        raise MeasurementError(
            "too-large",
            f"it needs {needed:.3g} bytes, {allowed:.3g} are allowed: {session.budget.memory_share:.0%} of memory",
        )


def check_result(probe: Probe, config: dict[str, Any], program: AnyProgram, *, iterations: int = 2) -> float:
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
    expected = program.own(probe.reference(config, program.kernel, iterations))
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
    exact = np.complex128 if np.iscomplexobj(found) else np.float64
    return float(np.max(np.abs(np.asarray(found, dtype=exact) - expected))) / scale


def _self_check(probe: Probe, point: Point, session: Session, program: AnyProgram, check_large: bool) -> None:
    """Check the very program that will be timed where NumPy can afford it, else a small one, once per op and dtype."""
    work, config = probe.work(point.config), point.config
    if work.flops <= AFFORDABLE_FLOPS and work.working_set_bytes <= AFFORDABLE_BYTES:
        check_result(probe, config, program)
        return
    key = (probe.name, str(config["op"]), str(config.get("dtype")))
    if key not in session.checked and check_large:
        small = build(probe, probe.small(config), session.devices_of(point), np.random.default_rng(0))
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
