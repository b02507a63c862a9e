"""Row-wise softmax of a ``rows x cols`` matrix.

flops ``5 r c`` (maximum, subtraction, exponential, sum, division: one each); compulsory bytes ``2 r c e``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, element_bytes, repeated, uniform
from bayesperf.probes.shaped import ShapedFunction
from bayesperf.probes.workloads.layers import softmax_in_numpy


class Softmax(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, cols]``."""

    name = "softmax"
    ops = ("softmax",)
    role = "heldout"
    keys = ("rows", "cols")
    caps = (16, 256)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        size, e = config["rows"] * config["cols"], element_bytes(config["dtype"])
        return Work(5.0 * size, 2 * size * e, 3 * size * e, 2 * size * e, size)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """``jax.nn.softmax``."""
        shape, dtype = (config["rows"], config["cols"]), config["dtype"]
        expectation = LoopExpectation((("exponential", "custom-call"), ("reduce", "custom-call")))
        return repeated(_softmax, uniform(rng, shape, dtype), uniform(rng, shape, dtype), (), expectation)

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """Softmax of the last axis."""
        return softmax_in_numpy(*arrays)


def _softmax(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x, axis=-1)


probe = Softmax()
