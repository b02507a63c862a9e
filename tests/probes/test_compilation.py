"""Every iteration compiles a program that no cache knows, and the step that is timed is the op's alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from bayesperf import plugins
from bayesperf.measure.chain import build

EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "compile_trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "compile_lower",
    "/jax/core/compile/backend_compile_duration": "compile_backend",
}


@pytest.fixture
def seen() -> Iterator[Counter[str]]:
    counts: Counter[str] = Counter()

    def listen(event: str, duration_secs: float, **unused: Any) -> None:
        if event in EVENTS:
            counts[EVENTS[event]] += 1

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield counts
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize("op", ["compile_trace", "compile_lower", "compile_backend"])
def test_each_iteration_is_one_step_and_that_step_only(op: str, seen: Counter[str]) -> None:
    probe = plugins.load("probe", "compilation")
    (config,) = probe.configurations({"ops": [op], "layers": [2]})
    program = build(probe, config, jax.local_devices()[:1], np.random.default_rng(0))
    program.prepare(3)
    seen.clear()
    program.run(3)
    counted = seen[op]
    others = set(seen) - {op}
    # Functions inside the program (matmul, where they are jitted themselves) may be traced once more within it.
    assert counted == 3 if op != "compile_trace" else counted >= 3
    assert not others
