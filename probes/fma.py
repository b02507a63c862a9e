"""Multiply-adds in registers, `ilp` of them independent of each other at any time: latency and throughput of the units.

Each element carries `ilp` values through ``512 / ilp`` steps, ``x_j(t+1) = x_j(t) x_(j-1)(t-1) + c`` for all j at once,
indices around the ring: the multiply-adds of a step are independent of each other and wait for those of the step
before. Neighbours are tied together so that no compiler runs one chain after the other. With `ilp` = 1 a step takes the
latency of the unit, with enough of them its issue rate is the limit; the op's name holds `ilp`, since that is a
different capability and not a different size.

flops ``(2 ilp steps + 2 ilp - 1) n``: before the steps one product per value, after them their sum. Compulsory bytes
``2 n e``. A core also overlaps neighbouring elements, as far as its scheduler's window reaches; a device of many
threads overlaps as many as it holds, so that there only a small working set shows the latency.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Probe, Work, element_bytes, uniform
from bayesperf.probes.shaped import BLOCK, check_known, elements

LENGTH = 512
ILP = (1, 2, 4, 8, 16, 32)
OFFSET, LIFT = 0.1875, 2.0**-8


class Fma(Probe):
    """Sweep: ``ilp``, ``working_set_bytes`` of one device; ``dtypes`` defaults to float32."""

    name = "fma"
    ops = tuple(f"fma_ilp{ilp}" for ilp in ILP)

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per dtype, working set and ilp."""
        check_known(self.name, "key", sweep, ("ilp", "working_set_bytes", "dtypes"))
        check_known(self.name, "ilp", sweep["ilp"], ILP)
        dtypes = sweep.get("dtypes", ["float32"])
        check_known(self.name, "dtype", dtypes, ("float32", "float64", "bfloat16", "float16"))
        return [
            {"op": f"fma_ilp{ilp}", "dtype": dtype, "elements": elements(self.name, size, 2, dtype), "ilp": ilp}
            for dtype in dtypes
            for size in sweep["working_set_bytes"]
            for ilp in sweep["ilp"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        n, ilp, e = config["elements"], config["ilp"], element_bytes(config["dtype"])
        flops = (2.0 * ilp * (LENGTH // ilp) + 2 * ilp - 1) * n
        return Work(flops, 2 * n * e, 3 * n * e, 2 * n * e, n)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Every multiply-add must be in the optimised loop."""
        n, ilp, dtype = config["elements"], config["ilp"], config["dtype"]

        def step(i: Any, carry: tuple[Any], b: Any) -> tuple[Any]:
            offset = (OFFSET + LIFT * (i & 1).astype("float32")).astype(b.dtype)
            older, values = [b] * ilp, [b * b.dtype.type(start) for start in _starts(ilp)]
            for _ in range(LENGTH // ilp):
                older, values = values, [values[j] * older[j - 1] + offset for j in range(ilp)]
            return (sum(values[1:], start=values[0]),)

        expectation = LoopExpectation((("multiply",), ("add",)), {"multiply": LENGTH, "add": LENGTH})
        return Kernel((uniform(rng, (n,), dtype),), (uniform(rng, (n,), dtype),), step, expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The last iteration's steps in float64."""
        b = np.asarray(kernel.operands[0], dtype=np.float64)
        offset = OFFSET + LIFT * ((iterations - 1) & 1)
        older, values = np.array([b] * config["ilp"]), b * _starts(config["ilp"])[:, None]
        for _ in range(LENGTH // config["ilp"]):
            older, values = values, values * np.roll(older, 1, axis=0) + offset
        return (values.sum(axis=0),)

    def small(self, config: Config) -> Config:
        """One block."""
        return {**config, "elements": min(config["elements"], BLOCK)}


def _starts(ilp: int) -> np.ndarray:
    """Factors that tell the values of an element apart (equal ones would be computed once), exact in every dtype."""
    return 0.125 * (1.0 + np.arange(ilp) / (2 * max(ILP)))


probe = Fma()
