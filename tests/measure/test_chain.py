"""The engine's loop: fallback forms, no shared buffers, fresh data on every device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from bayesperf.errors import MeasurementError
from bayesperf.measure.chain import build
from bayesperf.probe import Kernel, LoopExpectation, Work, uniform

MULTIPLY = LoopExpectation((("multiply",),))


def honest(rng: np.random.Generator) -> Kernel:
    b, t = uniform(rng, (2048,)), uniform(rng, (2048,))
    return Kernel((b,), (t,), lambda i, c, b: (b * (3.0 + 1e-6 * i),), MULTIPLY, "honest")


def never_reads(rng: np.random.Generator) -> Kernel:
    return replace(honest(rng), step=lambda i, c, b: (c[0] * (1.0 + 1e-6 * i),), form="never-reads")


class OneKernel:
    """A probe around a kernel."""

    mode = "chained"

    def __init__(self, kernel: Kernel):
        self._kernel = kernel

    def kernel(self, config: Any, rng: np.random.Generator) -> Kernel:
        return self._kernel

    def work(self, config: Any) -> Work:
        return Work(2048, 8 * 2048, 12 * 2048, 8 * 2048, 2048)


def build_one(kernel: Kernel) -> Any:
    probe: Any = OneKernel(kernel)
    return build(probe, {}, jax.local_devices()[:1], np.random.default_rng(0))


def test_a_form_that_the_compiler_spoils_falls_back() -> None:
    rng = np.random.default_rng(0)
    program = build_one(replace(never_reads(rng), fallback=honest(rng)))
    assert program.kernel.form == "honest"
    program.run(3)


def test_without_an_honest_form_it_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(MeasurementError) as caught:
        build_one(replace(never_reads(rng), fallback=never_reads(rng)))
    assert caught.value.reason in ("hoisted", "folded")


def at_offset(size: int, offset: int) -> np.ndarray:
    """An array whose address is `offset` bytes past a multiple of 64."""
    raw = np.zeros(4 * size + 128, dtype=np.uint8)
    start = (offset - raw.ctypes.data) % 64
    array = raw[start : start + 4 * size].view(np.float32)
    array[:] = np.linspace(1.0, 2.0, size)
    return array


@pytest.mark.parametrize("offset", [0, 16, 32])
def test_host_data_are_not_the_device_s(offset: int) -> None:
    # JAX's CPU backend takes over aligned NumPy memory: the devices of a scope would share one buffer, and its cache.
    kernel = replace(honest(np.random.default_rng(0)), operands=(at_offset(2048, offset),))
    before = kernel.operands[0].copy()
    program = build_one(kernel)
    kernel.operands[0][:] = 0
    program.run(1)
    np.testing.assert_allclose(program.carry()[0], before * 3.0, rtol=1e-6)


def test_released_programs_hold_no_memory() -> None:
    program = build_one(honest(np.random.default_rng(0)))
    arrays = [*program._operands, *program._carry]
    program.release()
    assert all(array.is_deleted() for array in arrays)
