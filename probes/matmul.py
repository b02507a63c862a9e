"""Dense matrix product ``c[m, n] = a[m, k] @ b[k, n]``: compute throughput by dtype, size and aspect ratio.

flops ``2 m n k``; compulsory bytes ``(m k + k n + m n) e`` with e bytes per element.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.errors import InputError
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

DTYPES = ("float32", "bfloat16", "float16", "float64")


class Matmul(Probe):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[m, n, k]`` or of one number for a square."""

    name = "matmul"
    ops = ("matmul",)

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per dtype and shape."""
        shapes = [(s, s, s) if isinstance(s, int) else tuple(s) for s in sweep["shapes"]]
        for dtype in sweep["dtypes"]:
            if dtype not in DTYPES:
                raise InputError(f"matmul: dtype {dtype!r} is not supported; choose from: {', '.join(DTYPES)}")
        return [
            {"op": "matmul", "dtype": dtype, "m": m, "n": n, "k": k} for dtype in sweep["dtypes"] for m, n, k in shapes
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head; the result is written without having been read."""
        m, n, k, e = config["m"], config["n"], config["k"], element_bytes(config["dtype"])
        traffic = (m * k + k * n + m * n) * e
        return Work(2.0 * m * n * k, traffic, traffic + m * n * e, traffic, m * n)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Float32 asks for full float32 products; tf32 would be a dtype of its own."""
        m, n, k, dtype = config["m"], config["n"], config["k"], config["dtype"]
        a, b, c = (uniform(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        return chained(_product, a, c, (b,), LoopExpectation((("dot", "custom-call"),)))

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """NumPy's product in float64."""
        return reference_of(np.matmul, kernel, iterations)

    def small(self, config: Config) -> Config:
        """At most 96 in each dimension."""
        return {**config, **{key: min(config[key], 96) for key in "mnk"}}


def _product(a: Any, b: Any) -> Any:
    from jax import lax

    return lax.dot(a, b, precision=lax.Precision.HIGHEST)


probe = Matmul()
