"""Nothing is traced or compiled while it is timed, whatever the number of iterations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import pytest

from bayesperf import plugins
from bayesperf.errors import MeasurementError
from bayesperf.measure import attempt
from bayesperf.measure.attempt import Session
from bayesperf.measure.point import measure_point
from bayesperf.measure.points import Point
from bayesperf.measure.suites import Budget

CASES = [
    ("stream", {"op": "stream_triad", "dtype": "float32", "elements": 4096}, "hot+burst"),
    ("stream", {"op": "stream_triad", "dtype": "float32", "elements": 4096}, "hot+sustained"),
    ("stream", {"op": "stream_read", "dtype": "float32", "elements": 65536}, "cold+burst"),
    ("matmul", {"op": "matmul", "dtype": "bfloat16", "m": 64, "n": 64, "k": 64}, "hot+burst"),
    ("dispatch", {"op": "dispatch", "dtype": "float32"}, "hot+burst"),
    (
        "attention",
        {"op": "attention", "dtype": "float32", "batch": 1, "heads": 2, "sequence": 32, "head_dim": 16},
        "hot+burst",
    ),
]


@pytest.fixture
def events() -> Iterator[list[str]]:
    """Names of what JAX reports of tracing and compiling, as it happens."""
    seen: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if "/compile/" in event or "trace" in event:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize(("name", "config", "condition"), CASES)
def test_nothing_is_compiled_while_it_is_timed(
    name: str, config: dict[str, Any], condition: str, events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[int] = []
    for function in ("take_samples", "take_cold_samples"):
        real = getattr(attempt, function)

        def watched(*arguments: Any, real: Any = real, **options: Any) -> Any:
            first: list[int] = []
            timer = arguments[0]

            def noting(iterations: int) -> float:
                before = len(events)
                seconds = float(timer(iterations))
                # The first runs finish what is lazy; they are warm-up and in no fit.
                first.append(len(events) - before)
                return seconds

            samples = real(noting, *arguments[1:], **options)
            timed.append(sum(first[len(samples.warmup) :]))
            return samples

        monkeypatch.setattr(attempt, function, watched)
    probe = plugins.load("probe", name)
    point = Point(
        id="0123456789ab", probe=name, config=config, role=probe.role, scope="one", n_devices=1, condition=condition,
        process=0, working_set_bytes=probe.work(config).working_set_bytes,
    )  # fmt: skip
    budget = Budget(point_s=0.05, longest_share=0.1, sustained_s=0.1)
    session = Session(jax.local_devices()[:1], budget, None, True, flush_bytes=1e6)
    # On a machine that others use the samples may be refused; what was compiled meanwhile is known all the same.
    with contextlib.suppress(MeasurementError):
        measure_point(probe, point, session, check_large=False)
    assert events, "the listener heard nothing at all"
    assert timed
    assert set(timed) == {0}
