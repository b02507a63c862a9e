"""Kernels that XLA folds, hoists or copies are refused by their optimised HLO; honest ones pass."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from bayesperf.errors import MeasurementError
from bayesperf.measure.check import check_launch, check_loop
from bayesperf.probe import LoopExpectation

N = 4096
MULTIPLY_ADD = LoopExpectation((("multiply",), ("add",)))


def compile_loop(step: Any, carry: Any, *operands: Any) -> str:
    """Optimised text of a plain chained loop, without what the engine does to protect it."""

    def looped(count: Any, carry: Any, *operands: Any) -> Any:
        return lax.fori_loop(0, count, lambda i, c: step(i, c, *operands), carry)

    return str(jax.jit(looped, donate_argnums=1).lower(jnp.int32(3), carry, *operands).compile().as_text())


def array(seed: int, size: int = N) -> Any:
    return jnp.asarray(np.random.default_rng(seed).random(size, dtype=np.float32))


def refused(text: str, expectation: LoopExpectation, carries: int, operands: int, work_bytes: float) -> str:
    with pytest.raises(MeasurementError) as caught:
        check_loop(text, expectation, carries=carries, operands=operands, work_bytes=work_bytes)
    return caught.value.reason


def test_honest_triad_passes() -> None:
    text = compile_loop(lambda i, t, b, c: b + (3.0 + 1e-6 * i) * c, array(0), array(1), array(2))
    check_loop(text, MULTIPLY_ADD, carries=1, operands=2, work_bytes=12.0 * N)


def test_hoisted_triad_is_refused() -> None:
    # The very form that once measured more than the memory has: b + 3 c does not change, so it left the loop.
    text = compile_loop(lambda i, t, b, c: b + 3.0 * c + t * 1e-30, array(0), array(1), array(2))
    assert refused(text, MULTIPLY_ADD, 1, 2, 16.0 * N) == "hoisted"


def test_hoisted_conversion_is_refused() -> None:
    text = compile_loop(lambda i, t, b: t * 0.5 + b.astype(jnp.float32) ** 2, array(0), array(1).astype(jnp.bfloat16))
    assert refused(text, LoopExpectation((("add",),)), 1, 1, 6.0 * N) == "hoisted"


def test_folded_constant_kernel_is_refused() -> None:
    constant = np.ones((64, 64), dtype=np.float32)
    text = compile_loop(lambda i, t: jnp.asarray(constant @ constant), jnp.ones((64, 64)))
    assert refused(text, LoopExpectation((("dot", "custom-call"),)), 1, 0, 3 * 4.0 * 64 * 64) == "folded"


def test_operand_closed_over_as_a_constant_is_refused() -> None:
    b = array(1)
    text = compile_loop(lambda i, t: b + (3.0 + 1e-6 * i) * b, array(0))
    assert refused(text, MULTIPLY_ADD, 1, 1, 8.0 * N) == "folded"


def test_operand_that_is_never_read_is_refused() -> None:
    text = compile_loop(lambda i, t, b, c: (3.0 + 1e-6 * i) * b + t * 0.5, array(0), array(1), array(2))
    assert refused(text, MULTIPLY_ADD, 1, 2, 12.0 * N) in ("hoisted", "folded")


def test_inserted_copies_are_refused() -> None:
    # Rotating buffers: XLA cannot swap them in place and copies both in every iteration.
    def rotate(i: Any, carry: tuple[Any, Any], b: Any) -> tuple[Any, Any]:
        x, y = carry
        return y, x * (1.0 + 1e-6 * i) + b

    text = compile_loop(rotate, (array(0), array(1)), array(2))
    assert refused(text, MULTIPLY_ADD, 2, 1, 12.0 * N) == "copied"


def test_an_operand_of_an_inner_loop_is_read() -> None:
    def rows(i: Any, t: Any, b: Any) -> Any:
        return lax.fori_loop(0, 64, lambda j, t: jnp.sin(t) + b[(i + j) % 64, :64] * t, t)

    text = compile_loop(rows, array(0, 64), array(1).reshape(64, 64))
    check_loop(text, MULTIPLY_ADD, carries=1, operands=1, work_bytes=4.0 * N)


def test_too_few_operations_are_refused() -> None:
    text = compile_loop(lambda i, t, b: b * (0.5 + 1e-6 * i) + 0.25, array(0), array(1))
    chain = LoopExpectation((("multiply",),), {"multiply": 16})
    assert refused(text, chain, 1, 1, 8.0 * N) == "folded"


def test_launch_whose_work_was_folded_is_refused() -> None:
    text = str(jax.jit(lambda x: jnp.ones(4) * 2.0).lower(jnp.ones(4)).compile().as_text())
    with pytest.raises(MeasurementError, match="folded"):
        check_launch(text, LoopExpectation((("multiply",),)))


FUSED = """
%fused (p0: f32[4096], p1: f32[4096]) -> f32[4096] {{
  %p0 = f32[4096]{{0}} parameter(0)
  %p1 = f32[4096]{{0}} parameter(1)
{inside}
}}

%body (arg: (s32[], f32[4096], f32[4096])) -> (s32[], f32[4096], f32[4096]) {{
  %arg = (s32[], f32[4096]{{0}}, f32[4096]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%arg), index=0
  %t = f32[4096]{{0}} get-tuple-element(%arg), index=1
  %b = f32[4096]{{0}} get-tuple-element(%arg), index=2
  %f = f32[4096]{{0}} fusion(%t, %b), kind=kLoop, calls=%fused
  ROOT %next = (s32[], f32[4096]{{0}}, f32[4096]{{0}}) tuple(%i, %f, %b)
}}

ENTRY %main (n: s32[], t0: f32[4096], b0: f32[4096]) -> f32[4096] {{
  %n = s32[] parameter(0)
  %t0 = f32[4096]{{0}} parameter(1)
  %b0 = f32[4096]{{0}} parameter(2)
  %start = (s32[], f32[4096]{{0}}, f32[4096]{{0}}) tuple(%n, %t0, %b0)
  %loop = (s32[], f32[4096]{{0}}, f32[4096]{{0}}) while(%start), condition=%going, body=%body
  ROOT %result = f32[4096]{{0}} get-tuple-element(%loop), index=1
}}
"""


def test_copy_inside_a_fusion_is_a_read_and_its_result_a_copy() -> None:
    """Only the result of a fusion is written to memory."""
    read = "  %c = f32[4096]{0} copy(%p0)\n  ROOT %a = f32[4096]{0} add(%c, %p1)"
    check_loop(FUSED.format(inside=read), LoopExpectation((("add",),)), carries=1, operands=1, work_bytes=12.0 * N)
    added = "  %a = f32[4096]{0} add(%p0, %p1)\n"
    for result in (
        "  ROOT %c = f32[4096]{0} copy(%a)",
        "  %c = f32[4096]{0} copy(%a)\n  ROOT %d = f32[4096]{0} bitcast(%c)",
    ):
        assert refused(FUSED.format(inside=added + result), LoopExpectation((("add",),)), 1, 1, 12.0 * N) == "copied"


def test_operands_widened_beforehand_are_no_support_of_their_type() -> None:
    narrow = "  ROOT %a = f32[4096]{0} add(%p0, %p1)"
    check_loop(
        FUSED.format(inside=narrow), LoopExpectation((("add",),), operand_type="f32"),
        carries=1, operands=1, work_bytes=12.0 * N,
    )  # fmt: skip
    wanted = LoopExpectation((("add",),), operand_type="f8e4m3fn")
    assert refused(FUSED.format(inside=narrow), wanted, 1, 1, 12.0 * N) == "unsupported-dtype"
