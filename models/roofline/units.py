"""Execution units: which operations run on matrix units and which on vector units, and typical rate ratios."""

from __future__ import annotations

import re

from bayesperf.models.roofline.priors import PRIORS

__all__ = ["LAUNCHES", "has_roofline", "typical_offset", "unit_of"]

LAUNCHES = frozenset({"dispatch", "allocation"})
"""Operations whose one execution is a launch from the host, however many of them were timed in a row."""

_NO_ROOFLINE = re.compile(r"^(pointer_chase|latency|compile_\w+|compilation)$")
"""Chains of dependent loads wait for latency, not for bandwidth; compiling is work of the host. As members of the
bandwidths or overheads they would be outliers by factors of hundreds, and teach every level a wrong spread."""

_MATRIX = re.compile(
    r"(^|_)(matmul|gemm|bmm|mm|linear|dense|dot|einsum|conv\w*|attention|attn|mlp\w*|moe|transformer|prefill|decode|qkv|proj\w*)(_|$)"
)

_FUNCTION = re.compile(
    r"^(exp|exp2|expm1|log|log2|log10|log1p|logistic|sigmoid|pow|power|sqrt|rsqrt|cbrt|erf|erfc|erf_inv"
    r"|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|lgamma|digamma)$"
)
"""Elementwise functions, of which each value counts as one FLOP, whatever instructions it takes."""

# log of the typical rate over the float32 matrix rate. Ratios of dense peaks on spec sheets of 2016-2025 devices;
# the prior around them is wide (`Priors.unit_spread`), and a known peak replaces them.
_MATRIX_OFFSET = {
    "float64": -0.9,
    "float32": 0.0,
    "tf32": 1.2,
    "bfloat16": 1.6,
    "float16": 1.6,
    "int8": 2.2,
    "float8": 2.2,
    "fp8": 2.2,
    "float4": 2.9,
    "int4": 2.9,
}
_VECTOR_OFFSET = -1.2


def unit_of(op: str, dtype: str) -> str:
    """Name the execution unit, ``matrix:<dtype>``, ``vector:<dtype>`` or ``function:<dtype>``, of an operation family.

    The family is judged by its name: products, convolutions, attention and blocks made of them use matrix units;
    elementwise functions such as ``exp`` a unit of their own, as their values are far fewer than multiply-adds.
    """
    name = op.lower()
    return f"{'matrix' if _MATRIX.search(name) else 'function' if _FUNCTION.match(name) else 'vector'}:{dtype}"


def has_roofline(op: str) -> bool:
    """Whether the time of an operation family follows from its flops, its bytes and the cost of a launch."""
    return not _NO_ROOFLINE.match(op.lower())


def typical_offset(unit: str) -> float:
    """Log of a unit's typical rate over the same target's float32 matrix rate."""
    kind, _, dtype = unit.partition(":")
    offset = next((v for k, v in _MATRIX_OFFSET.items() if dtype.startswith(k)), 0.0)
    if kind == "matrix":
        return offset
    # Vector units gain little from narrow types: they are often widened to float32 first.
    return _VECTOR_OFFSET + min(offset, 0.3) + (PRIORS.function_rate if kind == "function" else 0.0)
