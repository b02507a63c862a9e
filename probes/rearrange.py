"""Values that are put elsewhere: a ``rows x cols`` matrix turned over, or rolled by one row and added to itself.

================ =========================================== ============ ================
op               kernel                                      flops        compulsory bytes
================ =========================================== ============ ================
``transpose``    t = x'                                      0            ``2 r c e``
``piecewise``    t = x + roll(x, c) / 4, of r c values       ``2 r c``    ``2 r c e``
================ =========================================== ============ ================

A roll puts two pieces together. Fused with arithmetic, which piece a value comes from is decided value by value, and on
CPUs a loop with such a choice is not vectorised: steps of stencils with periodic boundaries run so.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bayesperf.probe import Arrays, Config, Kernel, LoopExpectation, Work, element_bytes, repeated, uniform
from bayesperf.probes.shaped import ShapedOps

MOVES = {"transpose": ("transpose", "copy"), "piecewise": ("concatenate", "pad", "slice")}
SHARE = 0.25


class Rearrange(ShapedOps):
    """Sweep: ``ops``, ``shapes``, a list of ``[rows, cols]``; ``dtypes`` defaults to float32."""

    name = "rearrange"
    ops = ("transpose", "piecewise")
    keys = ("rows", "cols")
    caps = (48, 64)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        size, e = config["rows"] * config["cols"], element_bytes(config["dtype"])
        flops = 2.0 * size if config["op"] == "piecewise" else 0.0
        return Work(flops, 2 * size * e, 3 * size * e, 2 * size * e, size)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Values uniform in [0.5, 1.5)."""
        rows, cols, turned = config["rows"], config["cols"], config["op"] == "transpose"
        x = uniform(rng, (rows, cols) if turned else (rows * cols,), config["dtype"])
        y = uniform(rng, (cols, rows) if turned else (rows * cols,), config["dtype"])
        # The transposition itself may be a copy.
        expectation = LoopExpectation((MOVES[config["op"]],), copied_share=1.0 if turned else 0.02)
        return repeated(_turn if turned else partial(_roll, cols), x, y, (), expectation)

    def definition(self, config: Config, *arrays: np.ndarray) -> Arrays:
        """In NumPy."""
        (x,) = arrays
        return np.ascontiguousarray(x.T) if config["op"] == "transpose" else x + SHARE * np.roll(x, config["cols"])


def _turn(x: Any) -> Any:
    return x.T


def _roll(by: int, x: Any) -> Any:
    import jax.numpy as jnp

    return x + jnp.asarray(SHARE, x.dtype) * jnp.roll(x, by)


probe = Rearrange()
