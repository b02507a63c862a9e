"""The feed-forward block of a transformer: ``x + gelu(x w1) w2``, x of ``rows x hidden``, w1 of ``hidden x cols``.

flops ``4 r h c + 10 r c + r h`` (two products, ten per GELU by its tanh form, the residual); compulsory bytes
``(2 r h + 2 h c) e``: the activations between the products need not leave the chip. They count in the working set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, chained, element_bytes, uniform
from bayesperf.probes.shaped import ShapedFunction, weights
from bayesperf.probes.workloads.layers import gelu_in_numpy


class MlpBlock(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, hidden]`` or ``[rows, hidden, cols]`` (default 4 hidden)."""

    name = "mlp_block"
    ops = ("mlp_block",)
    role = "heldout"
    keys = ("rows", "hidden", "cols")
    caps = (16, 64, 128)

    def shape(self, entry: Sequence[int]) -> dict[str, int]:
        """Four times as many columns as hidden where an entry does not say."""
        return super().shape([*entry, 4 * entry[1]] if len(entry) == 2 else entry)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        r, h, c, e = config["rows"], config["hidden"], config["cols"], element_bytes(config["dtype"])
        traffic = (2 * r * h + 2 * h * c) * e
        return Work(4.0 * r * h * c + 10 * r * c + r * h, traffic, traffic + r * h * e, traffic + r * c * e, r * h)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Weights have either sign and are scaled so that activations stay of order one."""
        r, h, c, dtype = config["rows"], config["hidden"], config["cols"], config["dtype"]
        matrices = (weights(rng, (h, c), dtype), weights(rng, (c, h), dtype))
        x, y = uniform(rng, (r, h), dtype), uniform(rng, (r, h), dtype)
        expectation = LoopExpectation((("dot", "custom-call"), ("tanh", "custom-call")))
        return chained(_mlp_block, x, y, matrices, expectation)

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """Of input and the two weight matrices."""
        x, w1, w2 = arrays
        return np.asarray(x + gelu_in_numpy(x @ w1) @ w2)


def _mlp_block(x: Any, w1: Any, w2: Any) -> Any:
    import jax
    from jax import lax

    hidden = jax.nn.gelu(lax.dot(x, w1, precision=lax.Precision.HIGHEST), approximate=True)
    return x + lax.dot(hidden, w2, precision=lax.Precision.HIGHEST)


probe = MlpBlock()
