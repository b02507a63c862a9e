"""The STREAM kernels and a pure read over a swept working set: bandwidth of every level of the memory hierarchy.

Per element of e bytes, n elements an array:

=============== ================== ===== =============== ====================
op              kernel             flops compulsory      with write-allocate
=============== ================== ===== =============== ====================
``stream_copy``  t = b             0     2 n e           3 n e
``stream_scale`` t = s b           n     2 n e           3 n e
``stream_add``   t = b + c         n     3 n e           4 n e
``stream_triad`` t = b + s c       2 n   3 n e           4 n e
``stream_read``  t = B v           2 n   n e + small     n e + small
=============== ================== ===== =============== ====================

Copy and add read one array from an offset of 0 or 64 bytes that alternates with the iteration, scale and triad use a
scalar that depends on it: so nothing can be hoisted, and nothing is read or computed beside what the table says.
The read is a matrix times a short vector, the one reduction that XLA vectorises well on every backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.probe import (
    Config,
    Kernel,
    LoopExpectation,
    Probe,
    Work,
    chained,
    element_bytes,
    reference_of,
    uniform,
)
from bayesperf.probes.shaped import BLOCK, check_known, elements

ARRAYS = {"stream_copy": 2, "stream_scale": 2, "stream_add": 3, "stream_triad": 3, "stream_read": 1}
FLOPS = {"stream_copy": 0, "stream_scale": 1, "stream_add": 1, "stream_triad": 2, "stream_read": 2}
OFFSET = 16
COLS = BLOCK
DTYPES = ("float32", "float64", "bfloat16", "float16")


class Stream(Probe):
    """Sweep: ``ops``, and ``working_set_bytes`` of one device; ``dtypes`` defaults to float32."""

    name = "stream"
    ops = tuple(ARRAYS)

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per op, dtype and working set; arrays are whole multiples of 1024 elements."""
        check_known(self.name, "key", sweep, ("ops", "working_set_bytes", "dtypes"))
        check_known(self.name, "op", sweep["ops"], self.ops)
        dtypes = sweep.get("dtypes", ["float32"])
        check_known(self.name, "dtype", dtypes, DTYPES)
        return [
            {"op": op, "dtype": dtype, "elements": elements(self.name, size, ARRAYS[op], dtype)}
            for op in sweep["ops"]
            for dtype in dtypes
            for size in sweep["working_set_bytes"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        op, n, e = config["op"], config["elements"], element_bytes(config["dtype"])
        if op == "stream_read":
            small = (n // COLS + COLS) * e
            return Work(2.0 * n, n * e + small, n * e + small, n * e + small, n // COLS)
        traffic = ARRAYS[op] * n * e
        return Work(FLOPS[op] * n, traffic, traffic + n * e, traffic, n)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Operands are uniform in [0.5, 1.5)."""
        op, n, dtype = config["op"], config["elements"], config["dtype"]
        if op == "stream_read":
            v, y = uniform(rng, (COLS,), dtype), uniform(rng, (n // COLS,), dtype)
            matrix = uniform(rng, (n // COLS, COLS), dtype)
            return chained(_read, v, y, (matrix,), LoopExpectation((("dot", "custom-call", "reduce"),)))
        t = (uniform(rng, (n,), dtype),)
        b, c = uniform(rng, (n,), dtype), uniform(rng, (n,), dtype)
        wide = uniform(rng, (n + OFFSET,), dtype)
        if op == "stream_copy":
            return Kernel((wide,), t, _copy, LoopExpectation((("dynamic-slice",),)))
        if op == "stream_scale":
            return Kernel((b,), t, _scale, LoopExpectation((("multiply",),)))
        if op == "stream_add":
            return Kernel((b, wide), t, _add, LoopExpectation((("dynamic-slice",), ("add",))))
        return Kernel((b, c), t, _triad, LoopExpectation((("multiply",), ("add",))))

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The last iteration's result, or the chained product of the read."""
        op, n, last = config["op"], config["elements"], iterations - 1
        if op == "stream_read":
            return reference_of(_read_in_numpy, kernel, iterations)
        arrays = [np.asarray(o, dtype=np.float64) for o in kernel.operands]
        start = (last & 1) * OFFSET
        scalar = 3.0 + 1e-6 * last
        if op == "stream_copy":
            return (arrays[0][start : start + n],)
        if op == "stream_scale":
            return (scalar * arrays[0],)
        if op == "stream_add":
            return (arrays[0] + arrays[1][start : start + n],)
        return (arrays[0] + scalar * arrays[1],)

    def small(self, config: Config) -> Config:
        """Four thousand elements."""
        return {**config, "elements": min(config["elements"], 4 * COLS)}


def _scalar(i: Any, dtype: Any) -> Any:
    return (3.0 + 1e-6 * i.astype("float32")).astype(dtype)


def _shifted(i: Any, wide: Any, size: int) -> Any:
    from jax import lax

    return lax.dynamic_slice(wide, ((i & 1) * OFFSET,), (size,))


def _copy(i: Any, carry: tuple[Any], wide: Any) -> tuple[Any]:
    return (_shifted(i, wide, carry[0].shape[0]),)


def _scale(i: Any, carry: tuple[Any], b: Any) -> tuple[Any]:
    return (_scalar(i, b.dtype) * b,)


def _add(i: Any, carry: tuple[Any], b: Any, wide: Any) -> tuple[Any]:
    return (b + _shifted(i, wide, b.shape[0]),)


def _triad(i: Any, carry: tuple[Any], b: Any, c: Any) -> tuple[Any]:
    return (b + _scalar(i, b.dtype) * c,)


def _read(v: Any, matrix: Any) -> Any:
    from jax import lax

    return lax.dot(matrix, v, precision=lax.Precision.HIGHEST)


def _read_in_numpy(*vector_and_matrix: np.ndarray) -> np.ndarray:
    v, matrix = vector_and_matrix
    return np.asarray(matrix @ v)


probe = Stream()
