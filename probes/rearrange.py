"""Values that are put elsewhere: a ``rows x cols`` matrix turned over, or framed by a border of ones.

================ ========================= ========================================
op               kernel                    compulsory bytes
================ ========================= ========================================
``transpose``    t = x'                    ``2 r c e``
``piecewise``    t = x within a border     ``(r c + (r + 2) (c + 2)) e``
================ ========================= ========================================

flops 0. Of a framed matrix, which piece a value comes from is decided value by value, and on CPUs a loop with such a
choice is not vectorised: padding, concatenation and stencils with periodic boundaries run so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Arrays, Config, Kernel, LoopExpectation, Work, element_bytes, repeated, uniform
from bayesperf.probes.shaped import ShapedOps

MOVES = {"transpose": ("transpose", "copy"), "piecewise": ("pad",)}


class Rearrange(ShapedOps):
    """Sweep: ``ops``, ``shapes``, a list of ``[rows, cols]``; ``dtypes`` defaults to float32."""

    name = "rearrange"
    ops = ("transpose", "piecewise")
    keys = ("rows", "cols")
    caps = (48, 64)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        rows, cols, e = config["rows"], config["cols"], element_bytes(config["dtype"])
        written = rows * cols if config["op"] == "transpose" else (rows + 2) * (cols + 2)
        traffic = (rows * cols + written) * e
        return Work(0.0, traffic, traffic + written * e, traffic, written)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Values uniform in [0.5, 1.5)."""
        rows, cols, turned = config["rows"], config["cols"], config["op"] == "transpose"
        x = uniform(rng, (rows, cols), config["dtype"])
        y = uniform(rng, (cols, rows) if turned else (rows + 2, cols + 2), config["dtype"])
        # The transposition itself may be a copy.
        expectation = LoopExpectation((MOVES[config["op"]],), copied_share=1.0 if turned else 0.02)
        return repeated(_turn if turned else _frame, x, y, (), expectation)

    def tolerance(self, config: Config) -> float:
        """Nothing is computed."""
        return 0.0

    def definition(self, config: Config, *arrays: np.ndarray) -> Arrays:
        """In NumPy."""
        (x,) = arrays
        return np.ascontiguousarray(x.T) if config["op"] == "transpose" else np.pad(x, 1, constant_values=1.0)


def _turn(x: Any) -> Any:
    return x.T


def _frame(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.pad(x, 1, constant_values=1.0)


probe = Rearrange()
