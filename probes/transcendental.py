"""Elementwise functions (``exp``, ``log``, ``tanh``, ``erf``, ``rsqrt``, ``sin``, ``power``) of an array in cache.

``power`` raises to the 1.37th power: no product or root of its argument gives that.

flops ``n``: each function value counts as one operation, whatever instructions it takes. The rate is therefore values
per second, and lies far below what the same units reach in multiply-adds. Compulsory bytes ``2 n e``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Probe, Work, element_bytes, reference_of, repeated, uniform
from bayesperf.probes.shaped import BLOCK, check_known, elements

OPCODES = {
    "exp": "exponential",
    "log": "log",
    "tanh": "tanh",
    "erf": "erf",
    "rsqrt": "rsqrt",
    "sin": "sine",
    "power": "power",
}
EXPONENT = 1.37
DTYPES = ("float32", "bfloat16", "float16", "float64")


class Transcendental(Probe):
    """Sweep: ``working_set_bytes`` of one device; ``ops`` defaults to all, ``dtypes`` to float32."""

    name = "transcendental"
    ops = tuple(OPCODES)

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per op, dtype and working set; arrays are whole multiples of 1024 elements."""
        check_known(self.name, "key", sweep, ("ops", "dtypes", "working_set_bytes"))
        ops, dtypes = sweep.get("ops", self.ops), sweep.get("dtypes", ["float32"])
        check_known(self.name, "op", ops, self.ops)
        check_known(self.name, "dtype", dtypes, DTYPES)
        return [
            {"op": op, "dtype": dtype, "elements": elements(self.name, size, 2, dtype)}
            for op in ops
            for dtype in dtypes
            for size in sweep["working_set_bytes"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        n, e = config["elements"], element_bytes(config["dtype"])
        return Work(float(n), 2 * n * e, 3 * n * e, 2 * n * e, n)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Arguments in [0.5, 1.5): no special values, no long range reduction."""
        from jax import lax

        x, y = (uniform(rng, (config["elements"],), config["dtype"]) for _ in range(2))
        expectation = LoopExpectation(((OPCODES[config["op"]], "custom-call"),))
        function: Any = _power if config["op"] == "power" else getattr(lax, config["op"])
        return repeated(function, x, y, (), expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """NumPy's function, and Python's for ``erf``."""
        ours = {"erf": np.vectorize(math.erf), "rsqrt": lambda x: 1.0 / np.sqrt(x), "power": lambda x: x**EXPONENT}
        function: Any = ours[config["op"]] if config["op"] in ours else getattr(np, config["op"])
        return reference_of(function, kernel, iterations)

    def small(self, config: Config) -> Config:
        """Four thousand elements."""
        return {**config, "elements": min(config["elements"], 4 * BLOCK)}


def _power(x: Any) -> Any:
    from jax import lax

    return lax.pow(x, lax.full_like(x, EXPONENT))


probe = Transcendental()
