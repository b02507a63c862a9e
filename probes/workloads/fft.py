"""`rows` complex Fourier transforms of length `cols`.

flops ``5 r n log2 n`` with n = cols, the field's convention, whatever the algorithm; compulsory bytes ``2 r n 2 e``:
complex numbers are two parts of e bytes each, and dtype names the parts, since it is their arithmetic that is done.
"""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, chained, element_bytes, uniform
from bayesperf.probes.shaped import ShapedFunction


class Fft(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, cols]``."""

    name = "fft"
    ops = ("fft",)
    role = "heldout"
    keys = ("rows", "cols")
    caps = (4, 256)
    dtypes = ("float32", "float64")

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        rows, n, e = config["rows"], config["cols"], 2 * element_bytes(config["dtype"])
        traffic = 2 * rows * n * e
        return Work(5.0 * rows * n * log2(n), traffic, traffic + rows * n * e, traffic, rows * n)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """``jax.numpy.fft.fft`` of the last axis."""
        shape, dtype = (config["rows"], config["cols"]), config["dtype"]
        x, y = (uniform(rng, shape, dtype) + 1j * uniform(rng, shape, dtype) for _ in range(2))
        kind = np.complex64 if dtype == "float32" else np.complex128
        return chained(_fft, x.astype(kind), y.astype(kind), (), LoopExpectation((("fft", "custom-call"),)))

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """NumPy's transform."""
        (x,) = arrays
        return np.fft.fft(x, axis=-1)


def _fft(x: Any) -> Any:
    import jax.numpy as jnp

    return jnp.fft.fft(x, axis=-1)


probe = Fft()
