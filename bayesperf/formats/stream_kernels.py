"""STREAM-like kernels: names, compulsory traffic, write-allocate traffic, FLOP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from bayesperf.formats.units import DTYPE_BYTES, BadValueError

__all__ = ["KERNELS", "Kernel", "elements_of", "kernel_of", "workload"]


class Kernel(NamedTuple):
    """Per element: arrays read, arrays written, FLOP."""

    op: str
    reads: int
    writes: int
    flops: int


KERNELS: Mapping[str, Kernel] = {
    "copy": Kernel("stream_copy", 1, 1, 0),
    "mul": Kernel("stream_scale", 1, 1, 1),
    "scale": Kernel("stream_scale", 1, 1, 1),
    "add": Kernel("stream_add", 2, 1, 1),
    "triad": Kernel("stream_triad", 2, 1, 2),
    "dot": Kernel("stream_dot", 2, 0, 2),
    "nstream": Kernel("stream_nstream", 3, 1, 3),
}
"""By the tools' labels; BabelStream's Mul is STREAM's Scale."""


def kernel_of(label: str) -> Kernel | None:
    """The kernel a table's label names, or None."""
    return KERNELS.get(label.strip().rstrip(":").strip().lower())


def workload(kernel: Kernel, elements: int, dtype: str) -> dict[str, Any]:
    """Contract columns of one kernel over arrays of `elements`.

    ``bytes`` counts what the tools count, each array once (compulsory traffic); ``write_allocate_bytes`` adds the
    read of every written line that caches without streaming stores perform. The working set is the three arrays that
    all kernels of the run share.
    """
    size = DTYPE_BYTES[dtype]
    return {
        "op": kernel.op,
        "dtype": dtype,
        "flops": float(kernel.flops * elements),
        "bytes": float((kernel.reads + kernel.writes) * elements * size),
        "write_allocate_bytes": float((kernel.reads + 2 * kernel.writes) * elements * size),
        "byte_convention": "compulsory",
        "working_set_bytes": float(3 * elements * size),
        "elements": float(elements),
        "parallelism": float(elements),
    }


def elements_of(array_bytes: float, step: float, dtype: str) -> tuple[int, bool]:
    """Elements of an array whose size is printed rounded to `step`; also whether they are exact.

    The only power of two that rounds to the printed size is taken (the tools' defaults are powers of two); else the
    printed size is, with its rounding error.
    """
    size = DTYPE_BYTES[dtype]
    low, high = (array_bytes - 0.5 * step) / size, (array_bytes + 0.5 * step) / size
    if not (math.isfinite(high) and 1 <= high < 2**53):
        raise BadValueError(f"an array of {array_bytes:g} bytes")
    power = 2 ** math.floor(math.log2(high))
    if low <= power <= high and power >= 1:
        return power, True
    if step == 0 and array_bytes % size == 0:
        return int(array_bytes // size), True
    return max(round(array_bytes / size), 1), False
