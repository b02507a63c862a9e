"""Elementwise chains of fused multiply-adds, their length swept across the ridge of the roofline.

``t = f(f(...f(b)))`` with ``f(x) = x s + 0.25``, `chain` times; flops ``2 chain n``, compulsory bytes ``2 n e``.
Long chains identify the compute rate of vector units, the middle of the sweep the roofline's smoothness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Probe, Work, element_bytes, uniform
from bayesperf.probes.shaped import check_known, elements

OFFSET = 0.25
DTYPES = ("float32", "float64", "bfloat16", "float16")


class Intensity(Probe):
    """Sweep: ``chain`` lengths and ``working_set_bytes`` of one device; ``dtypes`` defaults to float32."""

    name = "intensity"
    ops = ("fma_chain",)

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per dtype, working set and chain length."""
        check_known(self.name, "key", sweep, ("chain", "working_set_bytes", "dtypes"))
        dtypes = sweep.get("dtypes", ["float32"])
        check_known(self.name, "dtype", dtypes, DTYPES)
        return [
            {"op": "fma_chain", "dtype": dtype, "elements": elements(self.name, size, 2, dtype), "chain": chain}
            for dtype in dtypes
            for size in sweep["working_set_bytes"]
            for chain in sweep["chain"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        n, e = config["elements"], element_bytes(config["dtype"])
        return Work(2.0 * config["chain"] * n, 2 * n * e, 3 * n * e, 2 * n * e, n)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """The factor s depends on the iteration, so that nothing can be hoisted."""
        n, dtype, chain = config["elements"], config["dtype"], config["chain"]

        def step(i: Any, carry: tuple[Any], b: Any) -> tuple[Any]:
            factor = (0.75 + 1e-7 * i.astype("float32")).astype(b.dtype)
            for _ in range(chain):
                b = b * factor + b.dtype.type(OFFSET)
            return (b,)

        expectation = LoopExpectation((("multiply",), ("add",)), {"multiply": chain, "add": chain})
        return Kernel((uniform(rng, (n,), dtype),), (uniform(rng, (n,), dtype),), step, expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The last iteration's chain in float64."""
        x = np.asarray(kernel.operands[0], dtype=np.float64)
        for _ in range(config["chain"]):
            x = x * (0.75 + 1e-7 * (iterations - 1)) + OFFSET
        return (x,)

    def small(self, config: Config) -> Config:
        """Four thousand elements."""
        return {**config, "elements": min(config["elements"], 4096)}


probe = Intensity()
