"""Row-wise softmax of a ``rows x cols`` matrix.

flops ``5 r c`` (maximum, subtraction, exponential, sum, division: one each); compulsory bytes ``2 r c e``.
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
    element_bytes,
    reference_of,
    repeated,
    uniform,
)


class Softmax(Probe):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, cols]``."""

    name = "softmax"
    ops = ("softmax",)
    role = "heldout"

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per dtype and shape."""
        return [
            {"op": "softmax", "dtype": dtype, "rows": rows, "cols": cols}
            for dtype in sweep["dtypes"]
            for rows, cols in sweep["shapes"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        size, e = config["rows"] * config["cols"], element_bytes(config["dtype"])
        return Work(5.0 * size, 2 * size * e, 3 * size * e, 2 * size * e, size)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """``jax.nn.softmax``."""
        shape, dtype = (config["rows"], config["cols"]), config["dtype"]
        expectation = LoopExpectation((("exponential", "custom-call"), ("reduce", "custom-call")))
        return repeated(_softmax, uniform(rng, shape, dtype), uniform(rng, shape, dtype), (), expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The definition in float64."""

        def softmax(x: np.ndarray) -> np.ndarray:
            weights = np.exp(x - x.max(axis=-1, keepdims=True))
            return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

        return reference_of(softmax, kernel, iterations)

    def small(self, config: Config) -> Config:
        """At most 16 x 256."""
        return {**config, "rows": min(config["rows"], 16), "cols": min(config["cols"], 256)}


def _softmax(x: Any) -> Any:
    import jax

    return jax.nn.softmax(x, axis=-1)


probe = Softmax()
