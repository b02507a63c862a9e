"""Sorts each row of a ``rows x cols`` matrix, ascending.

No flops: comparisons are none. Compulsory bytes ``2 r c e``, one pass that reads and writes everything. Algorithms pass
over their data several times, a merge sort ``log2 c`` times, a radix sort once per digit; how often is the library's
choice, and is left to be found by measuring.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, element_bytes, repeated, uniform
from bayesperf.probes.shaped import ShapedFunction

COPIES = 0.6
"""Where XLA sorts in place it copies first: that copy is the sort's reading of its input."""


class Sort(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, cols]``."""

    name = "sort"
    ops = ("sort",)
    role = "heldout"
    keys = ("rows", "cols")
    caps = (4, 256)
    dtypes = ("float32", "int32", "float64")

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        size, e = config["rows"] * config["cols"], element_bytes(config["dtype"])
        return Work(0.0, 2 * size * e, 3 * size * e, 2 * size * e, size)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """The same unsorted input every time."""
        shape, dtype = (config["rows"], config["cols"]), config["dtype"]
        x, y = uniform(rng, shape, dtype), uniform(rng, shape, dtype)
        return repeated(_sort, x, y, (), LoopExpectation((("sort", "custom-call"),), copied_share=COPIES))

    def tolerance(self, config: Config) -> float:
        """Nothing is computed."""
        return 0.0

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """NumPy's sort."""
        (x,) = arrays
        return np.sort(x, axis=-1)


def _sort(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sort(x, axis=-1)


probe = Sort()
