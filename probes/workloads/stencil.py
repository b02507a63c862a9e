"""A five-point stencil: `sweeps` sweeps over a ``rows x cols`` grid of fixed boundary, to and fro between two grids.

Each interior point becomes ``u / 2 + (north + south + west + east) / 8``. Per sweep, with i = (rows - 2)(cols - 2):
flops ``6 i``; compulsory bytes ``(rows cols + i) e``. A sweep waits for the one before, so each counts in full:
blocking over several sweeps would move less, but XLA does not do it. Two grids are touched, so the working set is
``2 rows cols e``, less than the bytes of two sweeps and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesperf.errors import InputError
from bayesperf.probe import Config, Kernel, LoopExpectation, Work, element_bytes, uniform
from bayesperf.probes.shaped import Shaped


class Stencil(Shaped):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, cols, sweeps]``; sweeps must be even."""

    name = "stencil"
    ops = ("stencil",)
    role = "heldout"
    keys = ("rows", "cols", "sweeps")
    caps = (32, 48, 4)
    dtypes = ("float32", "float64", "bfloat16", "float16")

    def shape(self, entry: Sequence[int]) -> dict[str, int]:
        """Refused where there is no interior, or the result would end in the other grid."""
        shape = super().shape(entry)
        if shape["sweeps"] % 2 or min(shape["rows"], shape["cols"]) < 3:
            raise InputError(f"{self.name}: sweeps must be even, rows and cols at least 3")
        return shape

    def work(self, config: Config) -> Work:
        """Formulas of the module's head; the grid that is written was read a sweep before."""
        rows, cols, sweeps = (config[key] for key in self.keys)
        interior, e = (rows - 2) * (cols - 2), element_bytes(config["dtype"])
        traffic = sweeps * (rows * cols + interior) * e
        return Work(6.0 * interior * sweeps, traffic, traffic + sweeps * interior * e, 2 * rows * cols * e, interior)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Two grids with boundaries of their own; neither is copied."""
        shape, dtype = (config["rows"], config["cols"]), config["dtype"]
        grids = (uniform(rng, shape, dtype), uniform(rng, shape, dtype))
        sweeps = config["sweeps"]

        def step(i: Any, carry: tuple[Any, Any]) -> Any:
            from jax import lax

            return lax.fori_loop(0, sweeps // 2, _to_and_fro, carry)

        expectation = LoopExpectation((("add",), ("multiply",), ("dynamic-update-slice",)))
        return Kernel((), grids, step, expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """Sweep after sweep in float64."""
        u, v = (np.array(leaf, dtype=np.float64) for leaf in kernel.carry)
        for _ in range(iterations * config["sweeps"] // 2):
            v[1:-1, 1:-1] = _interior(u)
            u[1:-1, 1:-1] = _interior(v)
        return u, v


def _interior(u: Any) -> Any:
    return 0.5 * u[1:-1, 1:-1] + 0.125 * ((u[:-2, 1:-1] + u[2:, 1:-1]) + (u[1:-1, :-2] + u[1:-1, 2:]))


def _to_and_fro(_: Any, grids: tuple[Any, Any]) -> Any:
    from jax import lax

    u, v = grids
    # One sweep after the other: unbarred, XLA computes part of the first again in the second, from slices it copies.
    u, v = lax.optimization_barrier((u, lax.dynamic_update_slice(v, _interior(u), (1, 1))))
    return lax.optimization_barrier((lax.dynamic_update_slice(u, _interior(v), (1, 1)), v))


probe = Stencil()
