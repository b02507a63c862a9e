"""Reductions of a ``rows x cols`` matrix: sums along its rows (``reduce``) or down its columns (``reduce_columns``),
and where the largest value of each row stands (``arg_reduce``).

flops ``r c``, one per value that is taken in, of ``arg_reduce`` ``2 r c``: the choice of a value and of its position;
compulsory bytes ``(r c + r) e``, ``(r c + c) e`` and ``r c e + 4 r``. A sum along the rows ends in one value of a
vector register for each row; a sum down the columns adds whole rows to each other; two results at once are not
vectorised.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Probe, Work, element_bytes, reference_of, repeated, uniform
from bayesperf.probes.shaped import check_known, named

AXES = {"reduce": 1, "reduce_columns": 0, "arg_reduce": 1}
POSITION_BYTES = 4
KEYS = ("rows", "cols")
DTYPES = ("float32", "bfloat16", "float16", "float64")


class Reduction(Probe):
    """Sweep: ``ops``, ``shapes``, a list of ``[rows, cols]``; ``dtypes`` defaults to float32."""

    name = "reduction"
    ops = tuple(AXES)

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per op, dtype and shape."""
        check_known(self.name, "key", sweep, ("ops", "dtypes", "shapes"))
        ops, dtypes = sweep.get("ops", self.ops), sweep.get("dtypes", ["float32"])
        check_known(self.name, "op", ops, self.ops)
        check_known(self.name, "dtype", dtypes, DTYPES)
        return [
            {"op": op, "dtype": dtype, **named(self.name, KEYS, shape)}
            for op in ops
            for dtype in dtypes
            for shape in sweep["shapes"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        size, e = config["rows"] * config["cols"], element_bytes(config["dtype"])
        left = config[KEYS[1 - AXES[config["op"]]]]
        written = left * (POSITION_BYTES if config["op"] == "arg_reduce" else e)
        traffic = size * e + written
        flops = size * (2.0 if config["op"] == "arg_reduce" else 1.0)
        return Work(flops, traffic, traffic + written, traffic, left)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Values uniform in [0.5, 1.5)."""
        axis, dtype = AXES[config["op"]], config["dtype"]
        x = uniform(rng, (config["rows"], config["cols"]), dtype)
        where = config["op"] == "arg_reduce"
        y = uniform(rng, (config[KEYS[1 - axis]],), "int32" if where else dtype)
        function: Any = _where if where else partial(_sum, axis=axis)
        return repeated(function, x, y, (), LoopExpectation((("reduce", "custom-call"),)))

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """NumPy's sum, or its position of the largest value."""

        def total(x: np.ndarray) -> np.ndarray:
            return np.asarray(x.argmax(axis=1) if config["op"] == "arg_reduce" else x.sum(axis=AXES[config["op"]]))

        return reference_of(total, kernel, iterations)

    def small(self, config: Config) -> Config:
        """At most 64 x 256."""
        return {**config, "rows": min(config["rows"], 64), "cols": min(config["cols"], 256)}


def _sum(x: Any, axis: int) -> Any:
    return x.sum(axis=axis)


def _where(x: Any) -> Any:
    return x.argmax(axis=1).astype("int32")


probe = Reduction()
