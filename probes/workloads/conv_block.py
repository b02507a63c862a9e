"""The basic block of a residual network, NHWC: ``relu(x + norm(conv(relu(norm(conv(x))))))`` with 3 x 3 filters.

The norms are those of inference, a scale and a shift per channel. With B images of h x w and c channels: flops
``36 B h w c^2 + 7 B h w c`` (two convolutions, taps on the padding counted; scale, shift and ReLU twice, the residual).
Compulsory bytes ``(2 B h w c + 18 c^2 + 4 c) e``; what lies between the convolutions counts in the working set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, element_bytes, repeated, uniform
from bayesperf.probes.convolution import convolve, convolve_in_numpy
from bayesperf.probes.shaped import ShapedFunction, weights


class ConvBlock(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[batch, height, width, channels]``."""

    name = "conv_block"
    ops = ("conv_block",)
    role = "heldout"
    keys = ("batch", "height", "width", "channels")
    caps = (1, 10, 10, 16)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        batch, height, width, c = (config[key] for key in self.keys)
        pixels, e = batch * height * width, element_bytes(config["dtype"])
        traffic = (2 * pixels * c + 18 * c * c + 4 * c) * e
        flops = 36.0 * pixels * c * c + 7 * pixels * c
        return Work(flops, traffic, traffic + pixels * c * e, traffic + pixels * c * e, pixels * c)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Filters have either sign and are scaled so that results stay of order one."""
        shape, dtype = tuple(config[key] for key in self.keys), config["dtype"]
        c = config["channels"]
        x, y = uniform(rng, shape, dtype), uniform(rng, shape, dtype)
        filters = (weights(rng, (3, 3, c, c), dtype) for _ in range(2))
        scales_shifts = [(uniform(rng, (c,), dtype), uniform(rng, (c,), dtype)) for _ in range(2)]
        operands = tuple(a for f, (s, t) in zip(filters, scales_shifts, strict=True) for a in (f, s, t))
        return repeated(_block, x, y, operands, LoopExpectation((("convolution", "custom-call", "dot"), ("maximum",))))

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """Of images and, twice, filters, scale and shift."""
        x, f1, s1, t1, f2, s2, t2 = arrays
        y = np.maximum(convolve_in_numpy(x, f1) * s1 + t1, 0.0)
        return np.asarray(np.maximum(x + convolve_in_numpy(y, f2) * s2 + t2, 0.0))


def _block(x: Any, f1: Any, s1: Any, t1: Any, f2: Any, s2: Any, t2: Any) -> Any:
    import jax

    y = jax.nn.relu(convolve(x, f1) * s1 + t1)
    return jax.nn.relu(x + convolve(y, f2) * s2 + t2)


probe = ConvBlock()
