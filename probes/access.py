"""Access patterns over a swept working set: gather and scatter, by random or sequential indices, and strided reads.

n elements of e bytes are used in every iteration; int32 indices. A line of the cache has L bytes (`line_bytes`).

====================== =================== ============================ =============================
op                     kernel              compulsory bytes             what lines carry
====================== =================== ============================ =============================
``gather_random``      t[j] = b[index[j]]  4 n + n e read, n e written  4 n + n L + 2 n e
``gather_sequential``  the same            the same                     4 n + 3 n e
``scatter_random``     t[index[j]] = b[j]  4 n + n e read, n e written  4 n + n e + 2 n L
``scatter_sequential`` the same            the same                     4 n + 3 n e
``strided_read``       t[j] = b[j stride]  n e read, n e written        n min(stride e, L) + 2 n e
====================== =================== ============================ =============================

flops 0. ``bytes`` are the useful, compulsory ones; the column ``bytes_lines`` holds what lines carry where no cache
holds the working set, allocation and write-back included. Random indices are a permutation, sequential ones 0..n-1.
XLA's scatter on CPU is a loop over the indices, one after the other: what is measured is what a program pays there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.errors import InputError
from bayesperf.probe import (
    Config,
    Kernel,
    LoopExpectation,
    Probe,
    Work,
    element_bytes,
    repeated,
    uniform,
)

INDEX_BYTES = 4


class Access(Probe):
    """Sweep: ``ops``, ``working_set_bytes`` of one device, ``stride`` in elements for strided reads.

    ``dtypes`` defaults to float32, ``line_bytes`` to 64.
    """

    name = "access"
    ops = ("gather_random", "gather_sequential", "scatter_random", "scatter_sequential", "strided_read")

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per op, dtype, working set and stride."""
        unknown = [op for op in sweep["ops"] if op not in self.ops]
        if unknown:
            raise InputError(f"access: no op named {unknown[0]!r}; there are: {', '.join(self.ops)}")
        configurations: list[Config] = []
        for op in sweep["ops"]:
            for dtype in sweep.get("dtypes", ["float32"]):
                for size in sweep["working_set_bytes"]:
                    configurations += _variants(op, dtype, size, sweep)
        return configurations

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        n, e, line = config["elements"], element_bytes(config["dtype"]), config["line_bytes"]
        if config["op"] == "strided_read":
            stride = config["stride"]
            span = (n - 1) * stride + 1
            lines = n * min(stride * e, line) + 2 * n * e
            return Work(0.0, 2 * n * e, 3 * n * e, span * e + n * e, n, line_bytes=lines)
        traffic = (INDEX_BYTES + 2 * e) * n
        allocated = traffic + n * e
        if config["op"].endswith("sequential"):
            lines = allocated
        elif config["op"] == "gather_random":
            lines = (INDEX_BYTES + line + 2 * e) * n
        else:
            lines = (INDEX_BYTES + e + 2 * line) * n
        return Work(0.0, traffic, allocated, traffic, n, line_bytes=lines)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Values uniform in [0.5, 1.5); nothing is written twice in an iteration."""
        op, n, dtype = config["op"], config["elements"], config["dtype"]
        t = uniform(rng, (n,), dtype)
        if op == "strided_read":
            b = uniform(rng, ((n - 1) * config["stride"] + 1,), dtype)
            return repeated(_stride_by(config["stride"]), b, t, (), LoopExpectation((("slice", "gather"),)))
        b = uniform(rng, (n,), dtype)
        index = np.arange(n, dtype=np.int32)
        if op.endswith("random"):
            index = rng.permutation(index)
        if op.startswith("gather"):
            return repeated(_gather, b, t, (index,), LoopExpectation((("gather", "dynamic-slice"),)))
        expectation = LoopExpectation((("scatter", "dynamic-update-slice", "custom-call"),))
        return Kernel((b, index), (t,), _scatter, expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """NumPy's indexing; every iteration gives the same."""
        b = np.asarray(kernel.operands[0], dtype=np.float64)
        if config["op"] == "strided_read":
            return (b[:: config["stride"]],)
        index = kernel.operands[1]
        if config["op"].startswith("gather"):
            return (b[index],)
        t = np.empty_like(b)
        t[index] = b
        return (t,)

    def small(self, config: Config) -> Config:
        """At most two thousand elements."""
        return {**config, "elements": min(config["elements"], 2048)}


def _variants(op: str, dtype: str, size: float, sweep: Mapping[str, Any]) -> list[Config]:
    e, line = element_bytes(dtype), int(sweep.get("line_bytes", 64))
    base = {"op": op, "dtype": dtype, "line_bytes": line}
    if op == "strided_read":
        if min(sweep["stride"]) < 2:
            raise InputError("access: a stride is at least 2 elements; stream_copy reads with a stride of 1")
        return [
            {**base, "elements": max(256, round(size / e / (stride + 1))), "stride": int(stride)}
            for stride in sweep["stride"]
        ]
    return [{**base, "elements": max(256, round(size / (2 * e + INDEX_BYTES)))}]


def _gather(b: Any, index: Any) -> Any:
    return b.at[index].get(mode="promise_in_bounds")


def _scatter(i: Any, carry: tuple[Any], b: Any, index: Any) -> tuple[Any]:
    (t,) = carry
    return (t.at[index].set(b, unique_indices=True, mode="promise_in_bounds"),)


def _stride_by(stride: int) -> Any:
    def strided(b: Any) -> Any:
        from jax import lax

        return lax.slice(b, (0,), b.shape, (stride,))

    return strided


probe = Access()
