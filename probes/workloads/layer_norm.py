"""Layer normalisation of a ``rows x cols`` matrix over its columns, with scale and shift.

flops ``7 r c`` (mean, difference, square, its sum, two products, one sum: one each); compulsory bytes
``2 r c e + 2 c e``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, element_bytes, repeated, uniform
from bayesperf.probes.shaped import ShapedFunction

EPSILON = 1e-5


class LayerNorm(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, cols]``."""

    name = "layer_norm"
    ops = ("layer_norm",)
    role = "heldout"
    keys = ("rows", "cols")
    caps = (16, 256)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        rows, cols, e = config["rows"], config["cols"], element_bytes(config["dtype"])
        traffic = (2 * rows * cols + 2 * cols) * e
        return Work(7.0 * rows * cols, traffic, traffic + rows * cols * e, traffic, rows * cols)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Statistics in float32, as models do."""
        shape, dtype = (config["rows"], config["cols"]), config["dtype"]
        x, y = uniform(rng, shape, dtype), uniform(rng, shape, dtype)
        scale_shift = (uniform(rng, shape[1:], dtype), uniform(rng, shape[1:], dtype))
        expectation = LoopExpectation((("rsqrt", "custom-call"), ("reduce", "custom-call")))
        return repeated(_layer_norm, x, y, scale_shift, expectation)

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """Of input, scale and shift."""
        x, scale, shift = arrays
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        return np.asarray(centred / np.sqrt(variance + EPSILON) * scale + shift)


def _layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    wide = x.astype(jnp.float32)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    inverse = lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
    return (centred * inverse).astype(x.dtype) * scale + shift


probe = LayerNorm()
