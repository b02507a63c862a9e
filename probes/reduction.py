"""Sums of a ``rows x cols`` matrix: along its rows (``reduce``), or down its columns (``reduce_columns``).

flops ``r c``, one per value that is taken in; compulsory bytes ``(r c + r) e`` and ``(r c + c) e``. A sum along the
rows ends in one value of a vector register for each row; a sum down the columns adds whole rows to each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Probe, Work, element_bytes, reference_of, repeated, uniform
from bayesperf.probes.shaped import check_known, named

AXES = {"reduce": 1, "reduce_columns": 0}
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
        traffic = (size + left) * e
        return Work(float(size), traffic, traffic + left * e, traffic, left)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Values uniform in [0.5, 1.5)."""
        axis, dtype = AXES[config["op"]], config["dtype"]
        x = uniform(rng, (config["rows"], config["cols"]), dtype)
        y = uniform(rng, (config[KEYS[1 - axis]],), dtype)
        return repeated(partial(_sum, axis=axis), x, y, (), LoopExpectation((("reduce", "custom-call"),)))

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """NumPy's sum."""

        def total(x: np.ndarray) -> np.ndarray:
            return np.asarray(x.sum(axis=AXES[config["op"]]))

        return reference_of(total, kernel, iterations)

    def small(self, config: Config) -> Config:
        """At most 64 x 256."""
        return {**config, "rows": min(config["rows"], 64), "cols": min(config["cols"], 256)}


def _sum(x: Any, axis: int) -> Any:
    return x.sum(axis=axis)


probe = Reduction()
