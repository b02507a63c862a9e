"""What a kernel is called: the operation family that models and probes know it by, and its element type.

A kernel that touches no more than a cache line is ``scalar``: counters of loops and the like. Any other is named after
the operation in it that decides how it runs, the first of these that it holds:

1. ``attention``: a library call that is one, or two products with an exponential between them in one kernel
2. ``conv1d``, ``conv2d``, ``conv3d``: a convolution; of groups ``grouped_...`` and ``depthwise_...``, other code
3. ``matmul``: a product; ``matvec``: one with a vector
4. ``fft``, ``sort``, ``cholesky``, ``triangular_solve``
5. ``embedding``: a gather of pieces of at least a cache line, ``gather_random``: of smaller ones; ``scatter_rows`` and
   ``scatter_random`` likewise
6. ``softmax``: reductions by maximum and by sum and an exponential; ``layer_norm``: a sum and a reciprocal root
7. ``arg_reduce``: a reduction of several arrays at once, as of values with their positions; ``reduce_window``: over
   windows, as in pooling and cumulative sums; ``reduce``: any other along the dimension that lies together in memory;
   ``reduce_columns``: across it
8. ``piecewise``: values put together from pieces inside of a fusion (``concatenate``, or ``pad`` with arithmetic):
   which piece is decided value by value, and loops with such a choice are not vectorised; a frame alone is copied;
   ``elementwise``: any other arithmetic on values
9. ``strided_read``: values taken out of a strided slice; ``transpose``: moved so that others lie together in memory;
   ``stream_copy``: moved or converted in any other way

Library calls and operations that are none of these are called ``custom_call_<target>`` and ``<opcode>``; collectives as
in `bayesperf.collectives`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from bayesperf.hlo import Computation, Instruction, leaves
from bayesperf.workloads.attributes import dimensions, minor, window
from bayesperf.workloads.flops import ARITHMETIC, FUNCTIONS, LOGIC
from bayesperf.workloads.traffic import Content, is_strided

__all__ = ["dtype_of", "family_of", "slug"]

LINE_BYTES = 64.0

LONG_WINDOW = 16
"""Values from which windows that do not overlap are parts of a reduction; those of pooling are smaller."""

DTYPES: Mapping[str, str] = {
    "pred": "bool", "bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64",
    "c64": "float32", "c128": "float64", "s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16",
    "s32": "int32", "u32": "uint32", "s64": "int64", "u64": "uint64", "s4": "int4", "u4": "uint4",
}  # fmt: skip
"""Element types, named as in the table; complex values by their parts, whose arithmetic is done."""

NAMED = ("fft", "sort", "cholesky", "triangular-solve")


def dtype_of(kind: str) -> str:
    """The table's name of an HLO element type; all eight-bit floats are one."""
    if kind.startswith("f8"):
        return "float8"
    return DTYPES.get(kind, kind or "unknown")


def family_of(instruction: Instruction, body: Computation, content: Content) -> str:
    """Operation family of a kernel."""
    target = instruction.custom_call_target
    moved = sum(access.bytes for access in [*content.reads, *content.writes])
    if moved <= LINE_BYTES and not target and not content.unknown:
        return "scalar"
    found = _by_product(content) or _by_operation(body, content)
    if found:
        return found
    if target:
        return _library(target)
    if content.unknown:
        return slug(content.unknown[0])
    if content.opcodes.keys() & {"reduce", "reduce-window", "select-and-scatter", "map"}:
        return _by_reduction(body, content)
    pieces = "concatenate" in content.opcodes or ("pad" in content.opcodes and content.tally.flops > 0)
    if pieces and instruction.opcode == "fusion":
        return "piecewise"
    if content.tally.flops > 0 and content.opcodes.keys() & (ARITHMETIC | FUNCTIONS | LOGIC):
        return "elementwise"
    if any(map(is_strided, body.instructions.values())):
        return "strided_read"
    return "transpose" if any(_turns(body, i) for i in body.instructions.values()) else "stream_copy"


def _turns(body: Computation, instruction: Instruction) -> bool:
    """Whether an instruction puts other values beside each other than its operand has."""
    if instruction.opcode not in ("transpose", "copy") or instruction.elements <= 1:
        return False
    given = body.instructions.get(instruction.operands[0])
    if given is None:
        return False
    after, before = minor(instruction.shape), minor(given.shape)
    if instruction.opcode == "transpose" and after is not None:
        after = dimensions(instruction, "dimensions")[after]
    return after != before


def _by_product(content: Content) -> str | None:
    families = [product.family for product in content.products]
    if not families:
        return None
    if "attention" in families or (families.count("matmul") > 1 and "exponential" in content.opcodes):
        return "attention"
    largest = max(content.products, key=lambda product: product.flops)
    if largest.family == "matmul" and min(largest.shape["m"], largest.shape["n"]) <= 1:
        return "matvec"
    return largest.family


def _by_operation(body: Computation, content: Content) -> str | None:
    for opcode in NAMED:
        if opcode in content.opcodes:
            return opcode.replace("-", "_")
    scatters = [i for i in body.instructions.values() if i.opcode == "scatter"]
    if scatters:
        return "scatter_rows" if max(_window(body, i) for i in scatters) >= LINE_BYTES else "scatter_random"
    gathers = [i for i in body.instructions.values() if i.opcode == "gather"]
    if gathers and "reduce" not in content.opcodes:
        return "embedding" if max(map(_piece, gathers)) >= LINE_BYTES else "gather_random"
    return None


def _window(body: Computation, scatter: Instruction) -> float:
    """Bytes of one piece that a scatter puts somewhere."""
    updates = body.instructions.get(scatter.operands[-1])
    found = leaves(updates.shape) if updates is not None else []
    if not found:
        return 0.0
    return math.prod(found[0].dims[at] for at in dimensions(scatter, "update_window_dims")) * found[0].item_bytes


def _piece(gather: Instruction) -> float:
    """Bytes of one piece that a gather takes."""
    sizes, kinds = dimensions(gather, "slice_sizes"), leaves(gather.shape)
    count = 1.0
    for size in sizes:
        count *= size
    return count * (kinds[0].item_bytes if kinds else 0.0)


def _by_reduction(body: Computation, content: Content) -> str:
    if {"maximum", "add"} <= content.reducers and "exponential" in content.opcodes:
        return "softmax"
    if "add" in content.reducers and content.opcodes.keys() & {"rsqrt", "sqrt"}:
        return "layer_norm"
    reductions = [i for i in body.instructions.values() if i.opcode == "reduce"]
    if not reductions:
        windows = [i for i in body.instructions.values() if i.opcode == "reduce-window"]
        return "reduce" if windows and all(map(_tiles, windows)) else "reduce_window"
    if any(len(leaves(i.shape)) > 1 for i in reductions):
        return "arg_reduce"
    return "reduce" if _together(body, reductions) else "reduce_columns"


def _tiles(instruction: Instruction) -> bool:
    """Whether windows are many values wide and do not overlap: a step of a long sum, which XLA cuts into such."""
    dims = window(instruction)
    return math.prod(dim.size for dim in dims) >= LONG_WINDOW and all(dim.size <= dim.stride for dim in dims)


def _together(body: Computation, reductions: list[Instruction]) -> bool:
    """Whether the reduction that takes in most goes along the dimension that lies together in memory."""
    pairs = [(body.instructions[i.operands[0]], i) for i in reductions if i.operands[0] in body.instructions]
    given, largest = max(pairs, key=lambda pair: pair[0].elements)
    return minor(given.shape) in dimensions(largest, "dimensions")


def _library(target: str) -> str:
    for pattern, family in (
        (r"potrf|cholesky", "cholesky"),
        (r"getrf|lu_pivots", "lu"),
        (r"geqrf|gqr|householder", "qr"),
        (r"trsm|triangular", "triangular_solve"),
        (r"softmax", "softmax"),
        (r"layer_?norm|norm", "layer_norm"),
        (r"sort|topk|top_k", "sort"),
        (r"fft", "fft"),
    ):
        if re.search(pattern, target, re.IGNORECASE):
            return family
    return f"custom_call_{slug(target)}"


def slug(name: str) -> str:
    """A name in lower case, with underscores for all else."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
