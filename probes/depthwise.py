"""Two-dimensional depthwise convolution, NHWC, stride 1, SAME padding, ``k x k`` taps for each channel by itself.

flops ``2 B h w c k^2``, taps on the padding included; compulsory bytes ``(2 B h w c + k^2 c) e``. Nothing is summed
over channels, so that no library makes a matrix product of it: it runs on other code than `conv2d`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Arrays, Config, Kernel, LoopExpectation, Work, chained, element_bytes, uniform
from bayesperf.probes.shaped import ShapedFunction, weights


class Depthwise(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[batch, height, width, c_in, kernel_size]``."""

    name = "depthwise"
    ops = ("depthwise_conv2d",)
    keys = ("batch", "height", "width", "c_in", "kernel_size")
    caps = (1, 8, 8, 8, 3)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        batch, height, width, channels, size = (config[key] for key in self.keys)
        values, e = batch * height * width * channels, element_bytes(config["dtype"])
        traffic = (2 * values + size**2 * channels) * e
        return Work(2.0 * values * size**2, traffic, traffic + values * e, traffic, values)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Filters of either sign, scaled so that results stay of order one."""
        *shape, size = (config[key] for key in self.keys)
        x, y = (uniform(rng, tuple(shape), config["dtype"]) for _ in range(2))
        filters = weights(rng, (size, size, 1, shape[-1]), config["dtype"])
        return chained(_convolve, x, y, (filters,), LoopExpectation((("convolution", "custom-call", "dot"),)))

    def definition(self, config: Config, *arrays: np.ndarray) -> Arrays:
        """A sum over the taps."""
        x, filters = arrays
        size, (height, width) = filters.shape[0], x.shape[1:3]
        before, after = (size - 1) // 2, size // 2
        padded = np.pad(x, ((0, 0), (before, after), (before, after), (0, 0)))
        taps = [(i, j) for i in range(size) for j in range(size)]
        return np.asarray(sum(padded[:, i : i + height, j : j + width] * filters[i, j, 0] for i, j in taps))


def _convolve(x: Any, filters: Any) -> Any:
    from jax import lax

    return lax.conv_general_dilated(
        x, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=x.shape[-1],
        precision=lax.Precision.HIGHEST,
    )  # fmt: skip


probe = Depthwise()
