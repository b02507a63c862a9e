"""FLOP of one instruction, by formula, as the probes count theirs.

One for each value of an elementwise operation, whichever it is: an arithmetic one, a function such as ``exp`` (as in
the probe `transcendental`, whatever instructions it takes; counted apart as well), a choice between two values
(``maximum``, ``select``), integers alike. None for what only moves, converts or compares values: copies, slices,
``convert``, ``compare`` (as in the probe `sort`). A reduction takes one per value that it takes in. Complex values take
2 for a sum and 6 for a product. A Fourier transform of length n takes ``5 n log2 n``, of real values half (as in the
probe `fft`); factorisations what LAPACK's working note 41 counts. Products: see `bayesperf.workloads.products`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bayesperf.hlo import Computation, Instruction, Leaf, Module, leaves
from bayesperf.workloads.attributes import dimensions, window, word
from bayesperf.workloads.products import product_of

__all__ = ["ELEMENTWISE", "FREE", "FUNCTIONS", "ROOTS", "Tally", "tally"]

FUNCTIONS = frozenset(
    {
        *("exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "erf", "power"),
        *("sqrt", "rsqrt", "cbrt", "sine", "cosine", "tan", "atan2"),
        *("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"),
    }
)
"""Functions of real values, each of which counts as one operation."""

ROOTS = frozenset({"sqrt", "rsqrt"})
"""Functions for which processors have an instruction, as they have for a division; others take some ten or more."""

ARITHMETIC = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "negate", "abs", "sign"),
        *("floor", "ceil", "round-nearest-afz", "round-nearest-even", "clamp", "select"),
        *("shift-left", "shift-right-arithmetic", "shift-right-logical", "popcnt", "count-leading-zeros", "mulhi"),
    }
)

LOGIC = frozenset({"and", "or", "xor", "not"})
"""Arithmetic on integers, none on truth values."""

ELEMENTWISE = FUNCTIONS | ARITHMETIC | LOGIC

UNCOUNTED = frozenset(
    {"compare", "convert", "bitcast-convert", "is-finite", "real", "imag", "complex", "reduce-precision"}
)
"""Elementwise operations that XLA's analysis counts and we do not."""

FREE = UNCOUNTED | frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "reshape", "broadcast"),
        *("iota", "transpose", "copy", "copy-start", "copy-done", "slice", "dynamic-slice", "dynamic-update-slice"),
        *("gather", "concatenate", "pad", "reverse", "sort", "topk", "optimization-barrier", "partition-id"),
        *("replica-id", "after-all", "get-dimension-size", "set-dimension-size", "add-dependency", "domain"),
        *("rng-get-and-update-state", "stochastic-convert"),
    }
)
"""Operations that take no FLOP."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What an instruction computes.

    Parameters
    ----------
    flops
        FLOP.
    functions
        Values of functions (``exp``, ``tanh``, ...) among them.
    xla
        FLOP and function values as XLA's cost analysis counts them.
    known
        False where no formula applies, so that `flops` says nothing.
    """

    flops: float = 0.0
    functions: float = 0.0
    xla: float = 0.0
    known: bool = True

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.flops + other.flops,
            self.functions + other.functions,
            self.xla + other.xla,
            self.known and other.known,
        )

    def times(self, count: float) -> Tally:
        """As often as that."""
        return Tally(self.flops * count, self.functions * count, self.xla * count, self.known)


def tally(module: Module, instruction: Instruction, operands: Sequence[str], elements: float | None = None) -> Tally:
    """Count one instruction; fusions and calls are taken apart elsewhere.

    Parameters
    ----------
    module
        Where its reducers are.
    instruction
        The instruction.
    operands
        Result types of its operands, as text.
    elements
        How many of its values are needed; all when None.
    """
    results = leaves(instruction.shape)
    every = instruction.elements
    needed = every if elements is None else elements
    kind = results[0].kind if results else ""
    opcode = instruction.opcode
    if opcode in ELEMENTWISE:
        return _elementwise(opcode, kind, needed)
    if opcode in UNCOUNTED:
        return Tally(xla=needed)
    found = product_of(instruction, operands)
    if found is not None:
        share = needed / every if every else 1.0
        return Tally(found.flops * share, 0.0, (found.xla_flops or 0.0) * share)
    if opcode == "sort":
        sorted_ = sum(leaf.elements for shape in operands[:1] for leaf in leaves(shape))
        return Tally(xla=sorted_ * math.ceil(math.log2(max(sorted_, 2.0))))
    if opcode in FREE:
        return Tally()
    given = [leaf for shape in operands for leaf in leaves(shape)]
    if opcode in ("reduce", "reduce-window", "select-and-scatter", "scatter", "map"):
        return _combined(module, instruction, given, needed / every if every else 1.0)
    return _special(instruction, given)


def _elementwise(opcode: str, kind: str, count: float) -> Tally:
    if opcode in LOGIC and kind == "pred":
        return Tally(xla=count)
    weight = 1.0
    if kind in ("c64", "c128"):
        weight = {"add": 2.0, "subtract": 2.0, "multiply": 6.0, "divide": 11.0, "negate": 2.0, "select": 2.0}.get(
            opcode, 1.0
        )
    return Tally(weight * count, count if opcode in FUNCTIONS else 0.0, count)


def _reducer(module: Module, instruction: Instruction, role: str = "to_apply") -> tuple[float, float]:
    """FLOP of one application of an instruction's scalar computation, ours and XLA's."""
    name = word(instruction, role) or dict(instruction.called).get(role)
    computation = module.computations.get(name.lstrip("%")) if name else None
    if computation is None:
        found = re.search(rf"\b{role}=%?([\w.\-]+)", instruction.attributes)
        computation = module.computations.get(found[1]) if found else None
    if computation is None:
        return 1.0, 1.0
    total = Tally()
    for inner in computation.instructions.values():
        total += tally(module, inner, _shapes(computation, inner))
    return total.flops, total.xla


def _shapes(computation: Computation, instruction: Instruction) -> list[str]:
    known = computation.instructions
    return [known[name].shape for name in instruction.operands if name in known]


def _combined(module: Module, instruction: Instruction, given: Sequence[Leaf], share: float) -> Tally:
    """Operations that apply a scalar computation many times."""
    results = leaves(instruction.shape)
    out = results[0].elements
    opcode = instruction.opcode
    if opcode == "select-and-scatter":
        taps = math.prod(dim.size for dim in window(instruction))
        each, ours = _reducer(module, instruction, "scatter")
        source = given[1].elements
        return Tally(source * (taps + each), xla=source * (taps - 1 + ours))
    each, xla = _reducer(module, instruction)
    if opcode == "reduce":
        taken = given[0].elements
        # An arg-reduction decides at least once for each value, however its reducer is written.
        return Tally(taken * max(each, 1.0), xla=(taken - out) * xla).times(share)
    if opcode == "reduce-window":
        taps = math.prod(dim.size for dim in window(instruction))
        return Tally(out * taps * max(each, 1.0), xla=out * (taps - 1) * xla).times(share)
    if opcode == "scatter":
        updates = given[-len(results)].elements
        return Tally(updates * each, xla=updates * xla)
    return Tally(out * each, xla=out * xla).times(share)


def _special(instruction: Instruction, given: Sequence[Leaf]) -> Tally:
    """Transforms and factorisations; anything else is unknown."""
    opcode, target = instruction.opcode, (instruction.custom_call_target or "").lower()
    if opcode == "fft":
        lengths = dimensions(instruction, "fft_length") or (1,)
        n = float(math.prod(lengths))
        # Real transforms are stated on their real side: length n whichever of the two is smaller.
        real = word(instruction, "fft_type") in ("RFFT", "IRFFT")
        elements = max(leaf.elements for leaf in (given[0], leaves(instruction.shape)[0]))
        depth = math.log2(n) if n > 1 else 0.0
        # XLA multiplies the depths of several dimensions, and takes the operand's elements, real or complex.
        depths = math.prod(math.log2(length) for length in lengths)
        return Tally((2.5 if real else 5.0) * elements * depth, xla=8.0 * given[0].elements * depths)
    if re.search(r"sort|topk", target):
        return Tally()
    if not given:
        return Tally(known=False)
    rows, columns = given[0].dims[-2:] if len(given[0].dims) >= 2 else (0, 0)
    batch = given[0].elements / max(rows * columns, 1)
    small, large = float(min(rows, columns)), float(max(rows, columns))
    if opcode == "cholesky" or "potrf" in target:
        return Tally(batch * rows**3 / 3.0)
    if opcode == "triangular-solve" or "trsm" in target:
        sides = given[1].elements / max(batch * rows, 1.0)
        return Tally(batch * rows**2 * sides)
    if re.search(r"getrf|geqrf|(or|un)gqr", target):
        factor = 1.0 if "getrf" in target else 2.0
        return Tally(batch * factor * small**2 * (large - small / 3.0))
    return Tally(known=False)
