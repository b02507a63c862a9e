"""Our counts beside XLA's own cost analysis: the ratio, and what makes the difference.

XLA's analysis counts the body of a loop once, comparisons, conversions and all-reduces as operations, no taps on
padding, complex values as if they were real, one less per reduction, ``8 n log2 n`` for a transform, and nothing (or
-1) for library calls. All of that is counted here a second time by its rules; what is left between that count and what
XLA reports is unexplained, and said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bayesperf.workloads.flops import Tally
from bayesperf.workloads.schedule import Kernel, Loop

__all__ = ["CrossCheck", "cross_check"]

TOLERANCE = 0.02
"""Share by which the count by XLA's rules may miss what XLA reports: its rules change a little between versions."""

NEGLIGIBLE = 0.005
"""Share of the total below which a reason is not worth a sentence."""


@dataclass(frozen=True)
class CrossCheck:
    """Agreement of a program's counts with XLA's cost analysis, per device.

    Parameters
    ----------
    flops, bytes
        Ours, over the whole run.
    xla_flops, xla_bytes
        XLA's (function values are among its FLOP here); None where it does not say.
    flops_ratio, bytes_ratio
        Ours over XLA's; None where it does not say, or says 0.
    by_their_rules
        FLOP as we count them by XLA's rules.
    explained
        Whether `by_their_rules` meets `xla_flops`; None where XLA does not say.
    reasons
        What makes the difference, largest first.
    """

    flops: float
    bytes: float
    xla_flops: float | None
    xla_bytes: float | None
    flops_ratio: float | None
    bytes_ratio: float | None
    by_their_rules: float
    explained: bool | None
    reasons: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def cross_check(program: Loop, analysis: Mapping[str, float] | None) -> CrossCheck:
    """Compare a program's kernels with the cost analysis of its executable.

    Parameters
    ----------
    program
        Its kernels.
    analysis
        What ``compiled.cost_analysis()`` returned, or None.
    """
    kernels = list(program.kernels())
    ours = sum(_count(kernel) * _tally(kernel).flops for kernel in kernels)
    moved = sum(_count(kernel) * _bytes(kernel) for kernel in kernels)
    theirs = sum(_tally(kernel).xla for kernel in kernels)
    stated = _stated(analysis, "flops")
    if stated is not None:
        stated += _stated(analysis, "transcendentals") or 0.0
    xla_bytes = _stated(analysis, "bytes accessed")
    explained = None if stated is None else abs(theirs - stated) <= TOLERANCE * max(stated, theirs) + 1.0
    reasons = [] if stated is None else _reasons(kernels, ours, theirs, stated)
    if stated is None:
        reasons.append("XLA's cost analysis does not state its flops for this program")
    return CrossCheck(
        ours, moved, stated, xla_bytes, ours / stated if stated else None, moved / xla_bytes if xla_bytes else None,
        theirs, explained, reasons,
    )  # fmt: skip


def _stated(analysis: Mapping[str, float] | None, name: str) -> float | None:
    """A number of the analysis; one that is negative or absent means unknown, never 0."""
    value = (analysis or {}).get(name)
    return None if value is None or not math.isfinite(value) or value < 0 else float(value)


def _count(kernel: Kernel) -> float:
    return kernel.count if math.isfinite(kernel.count) else 1.0


def _tally(kernel: Kernel) -> Tally:
    if kernel.content is not None:
        return kernel.content.tally
    message = kernel.message
    # XLA counts the additions of an all-reduce, and of no other collective.
    return Tally(xla=message.elements if message is not None and message.op == "all_reduce" else 0.0)


def _bytes(kernel: Kernel) -> float:
    content = kernel.content
    if kernel.message is not None:
        return kernel.message.bytes
    return sum(access.bytes for access in [*content.reads, *content.writes]) if content else 0.0


def _reasons(kernels: list[Kernel], ours: float, theirs: float, stated: float) -> list[str]:
    looped = library = rules = 0.0
    for kernel in kernels:
        tally, products = _tally(kernel), kernel.content.products if kernel.content else []
        looped += (_count(kernel) - 1.0) * tally.flops
        hidden = sum(product.flops for product in products if product.xla_flops is None)
        library += hidden
        rules += tally.flops - hidden - tally.xla
    parts = (
        (looped, "loops: ours are multiplied by their trip counts, XLA counts a body once"),
        (library, "library calls: ours are counted by their dimensions, XLA does not count them"),
        (rules, "conventions: comparisons, conversions, padding, complex values, reductions, transforms, LAPACK"),
        (theirs - stated, "unexplained: our count by XLA's rules less what it reports"),
    )
    scale = max(ours, stated, 1.0)
    told = [(amount, text) for amount, text in parts if abs(amount) > NEGLIGIBLE * scale]
    return [f"{text} ({amount:+.4g} flops)" for amount, text in sorted(told, key=lambda part: -abs(part[0]))]
