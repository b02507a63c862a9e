"""What the supervisor knows without asking JAX, and how it names what went wrong."""

from __future__ import annotations

import sys

import pytest

from bayesperf.errors import MeasurementError
from bayesperf.measure import supervise
from bayesperf.measure.worker import _reason


def test_cpu_is_known_without_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setattr(supervise, "Worker", None)
    assert supervise.describe()["platform"] == "cpu"


def test_other_platforms_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    assert not supervise._only_cpu()


def test_no_backend_says_what_jax_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "no-such-platform")
    with pytest.raises(MeasurementError, match="no-such-platform"):
        supervise.describe()


def test_workers_that_never_start_end_in_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    from bayesperf.measure.machine import Machine
    from bayesperf.measure.plan import make_plan
    from bayesperf.measure.suites import load_suite

    monkeypatch.setattr(sys, "executable", "/bin/false")
    plan = make_plan(load_suite("tiny"), Machine("cpu", "test", 1, 1e9, "jax"), 0)
    points = plan.batches()[0].points
    outcomes = list(supervise.run_points(points, {}, {}, 5.0))
    assert [o.content["reason"] for o in outcomes] == ["no-worker"] * len(points)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "out-of-memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"), "out-of-memory"),
        (NotImplementedError("float8"), "unsupported"),
        (RuntimeError("UNIMPLEMENTED: dot of f8e4m3fn"), "unsupported"),
        (ValueError("my mistake"), "probe-error"),
    ],
)
def test_reasons(error: Exception, reason: str) -> None:
    assert _reason(error) == reason
