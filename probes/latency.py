"""Latency of a dependent access: a pointer chase along a random cycle, its working set swept over every level.

``i = next[i]``, `hops` times an iteration; the cycle visits each line of the working set once, in random order, so that
neither a prefetcher nor two accesses at a time can help. Time per dependent access: ``time_s / hops``.

flops 0; bytes ``hops line_bytes``: each hop brings one line and writes nothing (of it 4 bytes are used: lines are
counted, because they are what a level delivers). The working set is ``lines line_bytes``, parallelism 1.

Each hop also computes an address and clamps it into the array, as XLA's dynamic slice demands: about 2 ns on a CPU,
which a chase in C does not pay. The slope holds it; so first-level caches look slower than they are, and others hardly.
On devices that launch the loop's body as a kernel, that launch is in it too, divided by `hops`. Where pages exceed what
the translation cache holds, walking their table is part of the latency, as in any program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.errors import InputError
from bayesperf.probe import Config, Kernel, LoopExpectation, Probe, Work

HOPS = 256
INDEX_BYTES = 4


class Latency(Probe):
    """Sweep: ``working_set_bytes`` of one device; ``line_bytes`` (a cache line's) defaults to 64."""

    name = "latency"
    ops = ("pointer_chase",)

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per working set, of at least as many lines as an iteration has hops."""
        line = int(sweep.get("line_bytes", 64))
        if line < 8 or line % INDEX_BYTES:
            raise InputError(f"latency: line_bytes is a multiple of {INDEX_BYTES} from 8, not {line}")
        configurations: list[Config] = []
        for size in sweep["working_set_bytes"]:
            lines = max(HOPS, round(size / line))
            if lines * (line // INDEX_BYTES) >= 2**31:
                raise InputError(f"latency: a working set of {size:.3g} bytes exceeds int32 indices; stay below 8 GiB")
            configurations.append(
                {"op": "pointer_chase", "dtype": "int32", "lines": lines, "line_bytes": line, "hops": HOPS}
            )
        return configurations

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        moved = config["hops"] * config["line_bytes"]
        return Work(0.0, moved, moved, config["lines"] * config["line_bytes"], 1)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Every element of a line holds the index of the next line's first one."""
        lines, wide, hops = config["lines"], config["line_bytes"] // INDEX_BYTES, config["hops"]
        order = rng.permutation(lines).astype(np.int32)
        following = np.empty(lines, dtype=np.int32)
        following[order] = np.roll(order, -1) * np.int32(wide)

        def step(i: Any, carry: tuple[Any], table: Any) -> tuple[Any]:
            (at,) = carry
            for _ in range(hops):
                at = _follow(table, at)
            return (at,)

        start = order[:1] * np.int32(wide)
        expectation = LoopExpectation((("dynamic-slice", "gather"),), {"dynamic-slice": hops})
        return Kernel((np.repeat(following, wide),), (start,), step, expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The chase, hop by hop."""
        table, at = kernel.operands[0], int(kernel.carry[0][0])
        for _ in range(iterations * config["hops"]):
            at = int(table[at])
        return (np.array([at], dtype=np.int64),)

    def small(self, config: Config) -> Config:
        """At most 1024 lines."""
        return {**config, "lines": min(config["lines"], 1024)}


def _follow(table: Any, at: Any) -> Any:
    from jax import lax

    return lax.dynamic_slice(table, (at[0],), (1,))


probe = Latency()
