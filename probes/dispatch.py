"""What a launch costs: an all but empty program (``dispatch``), and one that returns a fresh buffer (``allocation``).

``dispatch``: flops = bytes = 0; the time of one launch that the host waits for. ``allocation``: bytes ``n e``, each
byte of a buffer that did not exist before written once, so it holds the launch, the allocation and its page faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.errors import InputError
from bayesperf.probe import Config, Kernel, LoopExpectation, Probe, Work, element_bytes, uniform


class Dispatch(Probe):
    """Sweep: ``ops``; ``allocation_bytes`` of one device for the op ``allocation``."""

    name = "dispatch"
    ops = ("dispatch", "allocation")
    mode = "launched"

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One for ``dispatch``, one per size for ``allocation``."""
        configurations: list[Config] = []
        for op in sweep["ops"]:
            if op == "dispatch":
                configurations.append({"op": op, "dtype": "float32"})
            elif op == "allocation":
                sizes = [max(1, round(size / 4)) for size in sweep["allocation_bytes"]]
                configurations += [{"op": op, "dtype": "float32", "elements": n} for n in sizes]
            else:
                raise InputError(f"dispatch: no op named {op!r}; there are: {', '.join(self.ops)}")
        return configurations

    def work(self, config: Config) -> Work:
        """No work for ``dispatch``; the bytes written for ``allocation``."""
        if config["op"] == "dispatch":
            return Work(0.0, 0.0, 0.0, 4.0, 1.0)
        size = config["elements"] * element_bytes(config["dtype"])
        return Work(0.0, size, 2 * size, size, config["elements"])

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """One scalar goes from launch to launch; nothing is donated."""
        scalar = uniform(rng, (1,))
        if config["op"] == "dispatch":
            return Kernel((), (scalar,), _launch, LoopExpectation((("multiply",),)))
        buffer = uniform(rng, (config["elements"],))
        return Kernel((), (scalar, buffer), _allocate, LoopExpectation((("multiply",), ("broadcast",))))

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The scalar's recurrence, and the buffer filled with it."""
        scalar = np.asarray(kernel.carry[0], dtype=np.float64)
        for _ in range(iterations):
            scalar = scalar * 0.75 + 0.25
        if config["op"] == "dispatch":
            return (scalar,)
        return scalar, np.full(config["elements"], scalar[0])

    def small(self, config: Config) -> Config:
        """At most a thousand elements."""
        return {**config, "elements": min(config["elements"], 1024)} if "elements" in config else config


def _launch(i: Any, carry: tuple[Any]) -> tuple[Any]:
    return (carry[0] * 0.75 + 0.25,)


def _allocate(i: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
    import jax.numpy as jnp

    scalar = carry[0] * 0.75 + 0.25
    return scalar, jnp.broadcast_to(scalar, carry[1].shape)


probe = Dispatch()
