"""The feed-forward block of a transformer: ``x + gelu(x w1) w2``, x of ``rows x hidden``, w1 of ``hidden x cols``.

flops ``4 r h c + 10 r c + r h`` (two products, ten per GELU by its tanh form, the residual); compulsory bytes
``(2 r h + 2 h c) e``: the activations between the products need not leave the chip. They count in the working set.
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


class MlpBlock(Probe):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, hidden]`` or ``[rows, hidden, cols]`` (default 4 hidden)."""

    name = "mlp_block"
    ops = ("mlp_block",)
    role = "heldout"

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per dtype and shape."""
        return [
            {"op": "mlp_block", "dtype": dtype, "rows": s[0], "hidden": s[1], "cols": s[2] if len(s) > 2 else 4 * s[1]}
            for dtype in sweep["dtypes"]
            for s in sweep["shapes"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        r, h, c, e = config["rows"], config["hidden"], config["cols"], element_bytes(config["dtype"])
        traffic = (2 * r * h + 2 * h * c) * e
        return Work(4.0 * r * h * c + 10 * r * c + r * h, traffic, traffic + r * h * e, traffic + r * c * e, r * h)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Weights have either sign and are scaled so that activations stay of order one."""
        r, h, c, dtype = config["rows"], config["hidden"], config["cols"], config["dtype"]
        weights = (_weights(rng, (h, c), dtype), _weights(rng, (c, h), dtype))
        x, y = uniform(rng, (r, h), dtype), uniform(rng, (r, h), dtype)
        expectation = LoopExpectation((("dot", "custom-call"), ("tanh", "custom-call")))
        return chained(_mlp_block, x, y, weights, expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The definition in float64."""

        def mlp_block(x: np.ndarray, w1: np.ndarray, w2: np.ndarray) -> np.ndarray:
            y = x @ w1
            gelu = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
            return np.asarray(x + gelu @ w2)

        return reference_of(mlp_block, kernel, iterations)

    def small(self, config: Config) -> Config:
        """At most 16 x 64 x 128."""
        caps = {"rows": 16, "hidden": 64, "cols": 128}
        return {**config, **{key: min(config[key], cap) for key, cap in caps.items()}}


def _weights(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    centred = uniform(rng, shape).astype(np.float32) - np.float32(1.0)
    return np.asarray(centred * np.float32(2.0 / np.sqrt(shape[0]))).astype(uniform(rng, (1,), dtype).dtype)


def _mlp_block(x: Any, w1: Any, w2: Any) -> Any:
    import jax
    from jax import lax

    hidden = jax.nn.gelu(lax.dot(x, w1, precision=lax.Precision.HIGHEST), approximate=True)
    return x + lax.dot(hidden, w2, precision=lax.Precision.HIGHEST)


probe = MlpBlock()
