"""Two-dimensional convolution, NHWC, stride 1, SAME padding, ``k x k`` taps.

flops ``2 B h w c_in c_out k^2`` for a batch of B: taps that fall on the padding count too, as in every library's
figures; for odd k they are a share of about ``(k - 1 / k) (1 / h + 1 / w) / 4``. A library that transforms (Winograd,
FFT) multiplies less and may exceed the peak by this count. Compulsory bytes
``(B h w (c_in + c_out) + k^2 c_in c_out) e``.
"""

from __future__ import annotations

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, chained, element_bytes, uniform
from bayesperf.probes.convolution import convolve, convolve_in_numpy
from bayesperf.probes.shaped import ShapedFunction, weights


class Conv2d(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[batch, height, width, c_in, c_out, kernel_size]``."""

    name = "conv2d"
    ops = ("conv2d",)
    keys = ("batch", "height", "width", "c_in", "c_out", "kernel_size")
    caps = (2, 12, 12, 16, 16, 7)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        pixels, e = config["batch"] * config["height"] * config["width"], element_bytes(config["dtype"])
        c_in, c_out, taps = config["c_in"], config["c_out"], config["kernel_size"] ** 2
        written = pixels * c_out * e
        traffic = (pixels * c_in + taps * c_in * c_out) * e + written
        return Work(2.0 * pixels * c_in * c_out * taps, traffic, traffic + written, traffic, pixels * c_out)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Filters have either sign and are scaled so that results stay of order one."""
        batch, height, width, c_in, c_out, size = (config[key] for key in self.keys)
        dtype = config["dtype"]
        x = uniform(rng, (batch, height, width, c_in), dtype)
        y = uniform(rng, (batch, height, width, c_out), dtype)
        filters = weights(rng, (size, size, c_in, c_out), dtype)
        return chained(convolve, x, y, (filters,), LoopExpectation((("convolution", "custom-call", "dot"),)))

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """A sum of products over the taps."""
        return convolve_in_numpy(*arrays)


probe = Conv2d()
