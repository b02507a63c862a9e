"""Products: what a ``dot``, a ``convolution`` or a library call that stands for one computes.

A product of B matrices (m x k) (k x n) is ``2 B m n k`` FLOP, integers alike, four times as many where values are
complex. A convolution is the product it stands for: ``2 x output elements x taps x input channels of a group``. Taps on
the padding count, as they do in the probe `conv2d`; taps on the holes of a dilated input (the gradient of a strided
convolution) do not: no library computes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bayesperf.hlo import Instruction, Leaf, leaves
from bayesperf.workloads.attributes import (
    ConvLabels,
    WindowDim,
    backend_config,
    conv_labels,
    dimensions,
    minor,
    number,
    window,
)

__all__ = ["Product", "product_of"]

COMPLEX = 4
"""Real products in a complex one."""


@dataclass(frozen=True)
class Product:
    """A product that one instruction computes.

    Parameters
    ----------
    family
        ``matmul``, ``attention``, or ``conv1d``, ``conv2d``, ``conv3d``, of groups with ``grouped_`` or ``depthwise_``.
    flops
        FLOP, by the formulas of the module's head.
    kind
        HLO element type of its operands.
    shape
        The table's shape columns.
    xla_flops
        FLOP as XLA's cost analysis counts them; None: it does not know this instruction.
    precision
        Operand precision or algorithm, as the text names it, in lower case; empty where it does not.
    across
        Whether the first operand's values that are summed lie apart in memory, as in ``x.T @ y``: libraries that take
        other products may leave these to the compiler.
    """

    family: str
    flops: float
    kind: str
    shape: Mapping[str, float] = field(default_factory=dict)
    xla_flops: float | None = None
    precision: str = ""
    across: bool = False


def product_of(instruction: Instruction, operands: Sequence[str]) -> Product | None:
    """The product an instruction computes, or None.

    Parameters
    ----------
    instruction
        Any instruction.
    operands
        Result types of its operands, as text.
    """
    given = [leaf for shape in operands for leaf in leaves(shape)[:1]]
    if instruction.opcode in ("dot", "ragged-dot", "scaled-dot"):
        found = _dot(instruction, given)
        inner = minor(operands[0])
        return replace(found, across=inner is not None and inner not in dimensions(instruction, "lhs_contracting_dims"))
    if instruction.opcode == "convolution":
        return _convolution(instruction, given)
    target = instruction.custom_call_target or ""
    if len(given) < 2:
        return None
    if re.search(r"fmha|flash|attention", target, re.IGNORECASE):
        return _attention(target, given)
    if re.search(r"conv", target, re.IGNORECASE) and conv_labels(instruction) is not None:
        return _library_convolution(instruction, target, given)
    if re.search(r"gemm|matmul|dot", target, re.IGNORECASE):
        return _library_matmul(instruction, given)
    return None


def _factor(kind: str) -> int:
    return COMPLEX if kind in ("c64", "c128") else 1


def _pick(dims: Sequence[int], at: Sequence[int]) -> float:
    return float(math.prod(dims[i] for i in at))


def _matmul(lhs: Leaf, rhs: Leaf, contract: tuple[Sequence[int], Sequence[int]], batch: Sequence[int]) -> Product:
    """A product from its operands: contracted dimensions of both, batch dimensions of the left."""
    k, b = _pick(lhs.dims, contract[0]), _pick(lhs.dims, batch)
    m, n = lhs.elements / max(k * b, 1.0), rhs.elements / max(k * b, 1.0)
    plain = 2.0 * b * m * n * k
    shape = {"m": m, "n": n, "k": k, **({"batch": b} if b > 1 else {})}
    # XLA counts a complex product as if it were a real one.
    return Product("matmul", plain * _factor(lhs.kind), lhs.kind, shape, plain)


def _dot(instruction: Instruction, given: Sequence[Leaf]) -> Product:
    lhs, rhs = given[0], given[1]
    contract = dimensions(instruction, "lhs_contracting_dims"), dimensions(instruction, "rhs_contracting_dims")
    found = _matmul(lhs, rhs, contract, dimensions(instruction, "lhs_batch_dims"))
    if instruction.opcode == "ragged-dot":
        # Every row of the left is multiplied by the matrix of its group, whichever that is.
        groups = rhs.dims[0] if len(rhs.dims) > 2 else 1
        found = _resized(found, n=found.shape["n"] / groups)
    return Product(**{**_fields(found), "precision": _precision(instruction)})


def _fields(product: Product) -> dict[str, Any]:
    return {name: getattr(product, name) for name in Product.__dataclass_fields__}


def _resized(product: Product, **sizes: float) -> Product:
    shape = {**product.shape, **sizes}
    plain = 2.0 * shape.get("batch", 1.0) * shape["m"] * shape["n"] * shape["k"]
    return Product(product.family, plain * _factor(product.kind), product.kind, shape, plain, product.precision)


def _precision(instruction: Instruction) -> str:
    found = re.search(r"\b(?:algorithm=(\w+)|operand_precision=\{(\w+))", instruction.attributes)
    return (found[1] or found[2]).lower() if found else ""


def _holes(dim: WindowDim, positions: int) -> tuple[float, float]:
    """Pairs of output position and tap that meet a value, padding included, and those that lie inside of the input."""
    pairs = 0
    for position in range(positions):
        for tap in range(dim.size):
            at = position * dim.stride + tap * dim.window_dilation - dim.pad_low
            pairs += at % dim.base_dilation == 0
    return float(pairs), float(positions * dim.size)


def _inside(dim: WindowDim, positions: int, extent: int) -> float:
    """Pairs of output position and tap that lie on a value of the input: what XLA's analysis counts."""
    last = (extent - 1) * dim.base_dilation
    pairs = 0
    for tap in range(dim.size):
        offset = tap * dim.window_dilation - dim.pad_low
        if dim.base_dilation == 1 and dim.stride > 0:
            low, high = math.ceil(-offset / dim.stride), math.floor((last - offset) / dim.stride)
            pairs += max(0, min(high, positions - 1) - max(low, 0) + 1)
            continue
        ats = (position * dim.stride + offset for position in range(positions))
        pairs += sum(0 <= at <= last and at % dim.base_dilation == 0 for at in ats)
    return float(pairs)


def _convolution(instruction: Instruction, given: Sequence[Leaf]) -> Product | None:
    labels, out = conv_labels(instruction), leaves(instruction.shape)[0]
    if labels is None:
        return None
    lhs, rhs = given[0], given[1]
    spatial = labels.spatial(labels.out)
    dims = window(instruction) or [WindowDim(1) for _ in spatial]
    positions = [out.dims[at] for at in spatial]
    pairs = inside = 1.0
    for dim, count, at in zip(dims, positions, labels.spatial(labels.lhs), strict=True):
        pairs *= count * dim.size if dim.base_dilation == 1 else _holes(dim, count)[0]
        inside *= _inside(dim, count, lhs.dims[at])
    channels = rhs.dims[labels.rhs["i"]]
    if not spatial:
        # Some backends write every product as a convolution.
        found = _matmul(lhs, rhs, ([labels.lhs["f"]], [labels.rhs["i"]]), [])
        return Product(**{**_fields(found), "precision": _precision(instruction)})
    each = 2.0 * out.dims[labels.out["b"]] * out.dims[labels.out["f"]] * channels
    shape = _conv_shape(labels, lhs, rhs, out, number(instruction, "feature_group_count"))
    family, precision = _family(len(spatial), shape), _precision(instruction)
    return Product(family, each * pairs * _factor(lhs.kind), lhs.kind, shape, each * inside, precision)


def _conv_shape(labels: ConvLabels, lhs: Leaf, rhs: Leaf, out: Leaf, groups: int) -> dict[str, float]:
    spatial = labels.spatial(labels.out)
    shape = {
        "batch": out.dims[labels.out["b"]],
        "c_in": lhs.dims[labels.lhs["f"]],
        "c_out": out.dims[labels.out["f"]],
        **({"groups": groups} if groups > 1 else {}),
    }
    if len(spatial) == 2:
        shape |= {"height": out.dims[spatial[0]], "width": out.dims[spatial[1]]}
    sizes = {rhs.dims[at] for at in labels.spatial(labels.rhs)}
    return {k: float(v) for k, v in {**shape, **({"kernel_size": sizes.pop()} if len(sizes) == 1 else {})}.items()}


def _family(dimensions: int, shape: Mapping[str, float]) -> str:
    groups = shape.get("groups", 1.0)
    kind = "depthwise_" if 1 < groups == shape["c_in"] else "grouped_" if groups > 1 else ""
    return f"{kind}conv{dimensions}d"


def _library_convolution(instruction: Instruction, target: str, given: Sequence[Leaf]) -> Product | None:
    """A convolution or a gradient of one: all three multiply as often as the forward one does."""
    labels, result = conv_labels(instruction), leaves(instruction.shape)[0]
    assert labels is not None
    if "BackwardFilter" in target:
        image, filters, out = given[0], result, given[1]
    elif "BackwardInput" in target:
        image, filters, out = result, given[1], given[0]
    else:
        image, filters, out = given[0], given[1], result
    taps = filters.elements / filters.dims[labels.rhs["o"]]
    flops = 2.0 * out.elements * taps * _factor(filters.kind)
    shape = _conv_shape(labels, image, filters, out, number(instruction, "feature_group_count"))
    return Product(_family(len(labels.spatial(labels.out)), shape), flops, given[0].kind, shape)


def _library_matmul(instruction: Instruction, given: Sequence[Leaf]) -> Product:
    lhs, rhs, out = given[0], given[1], leaves(instruction.shape)[0]
    config = backend_config(instruction)
    config = config.get("gemm_backend_config", config)
    numbers = config.get("dot_dimension_numbers", {})
    precision = config.get("precision_config", {})
    algorithm = str(precision.get("algorithm", "")).lower()
    named = (
        algorithm if algorithm not in ("", "alg_unset") else str(precision.get("operand_precision", [""])[0]).lower()
    )
    if "lhs_contracting_dimensions" in numbers:
        contract = tuple([int(d) for d in numbers[f"{side}_contracting_dimensions"]] for side in ("lhs", "rhs"))
        batch = [int(d) for d in numbers.get("lhs_batch_dimensions", [])]
        found = _matmul(lhs, rhs, (contract[0], contract[1]), batch)
    else:
        # Without dimension numbers the leading dimensions are batches, and (b m k)(b k n) = b k^2 (b m n).
        b = _pick(out.dims, range(max(len(out.dims) - 2, 0))) if len(rhs.dims) == len(out.dims) else 1.0
        k = math.sqrt(lhs.elements * rhs.elements / (out.elements * b))
        m, n = lhs.elements / (k * b), rhs.elements / (k * b)
        flops = 2.0 * b * m * n * k * _factor(lhs.kind)
        found = Product("matmul", flops, lhs.kind, {"m": m, "n": n, "k": k, **({"batch": b} if b > 1 else {})})
    return Product(found.family, found.flops, found.kind, found.shape, None, named)


def _attention(target: str, given: Sequence[Leaf]) -> Product:
    """Attention in one call, over (batch, heads, sequence, head_dim) in any order of the first three.

    As the probe `attention`: two products and 5 per score; a gradient has five products.
    """
    q, k = given[0], given[1]
    d = q.dims[-1]
    # Batches and heads are the dimensions that both share; what is left over are the two sequences.
    shared = [a for a, b in zip(q.dims[:-1], k.dims[:-1], strict=False) if a == b]
    groups = float(math.prod(shared[:2])) if len(shared) >= 2 else float(math.prod(q.dims[:-2]))
    scores = groups * (q.elements / d / groups) * (k.elements / d / groups)
    products = 5 if re.search(r"backward|bwd", target, re.IGNORECASE) else 2
    return Product("attention", 2.0 * products * scores * d + 5.0 * scores, q.kind, {"head_dim": float(d)})
