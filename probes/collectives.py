"""Collectives over 2..n devices, of one process or of several: the interconnect, or what stands in for it.

S bytes (``message_bytes``) are the larger of one rank's send and receive buffers, n the number of ranks:

================== ============================= ================== ==============
op                 JAX                           bytes of a rank    bus factor
================== ============================= ================== ==============
``all_reduce``     ``lax.psum``                  2 S                2 (n - 1) / n
``all_gather``     ``lax.all_gather``            S + S / n          (n - 1) / n
``reduce_scatter`` ``lax.psum_scatter``          S + S / n          (n - 1) / n
``all_to_all``     ``lax.all_to_all``            2 S                (n - 1) / n
``ppermute``       ``lax.ppermute`` round a ring 2 S                1
================== ============================= ================== ==============

Sizes, factors and bytes are those of nccl-tests (see `bayesperf.collectives`; ppermute is its sendrecv): algorithm
bandwidth ``S / time_s``, bus bandwidth that times the factor, in the columns ``algbw_bytes_per_s`` and
``busbw_bytes_per_s``. bytes are the compulsory traffic of one rank's memory, its send buffer read and its receive
buffer written once; flops 0, as everywhere for collectives. Out of place, chained through one element of each buffer.

On CPU, ranks of one process exchange through shared memory and ranks of several through sockets on loopback: neither is
a link between devices, and both are what programs pay there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bayesperf.collectives import bus_factor, traffic
from bayesperf.errors import InputError
from bayesperf.probe import (
    AXIS,
    Config,
    Kernel,
    LoopExpectation,
    Probe,
    Work,
    chained,
    element_bytes,
    uniform,
)

NCCL_NAME = {"ppermute": "send_recv"}
OPCODES = {
    "all_reduce": ("all-reduce", "all-reduce-start"),
    "all_gather": ("all-gather", "all-gather-start"),
    "reduce_scatter": ("reduce-scatter", "all-reduce", "all-reduce-start"),
    "all_to_all": ("all-to-all", "ragged-all-to-all"),
    "ppermute": ("collective-permute", "collective-permute-start"),
}
"""What the optimised loop holds; some backends reduce and scatter by an all-reduce of which each rank keeps a part."""


class Collectives(Probe):
    """Sweep: ``ops``, ``message_bytes`` and ``n_devices`` (numbers, or ``"all"``); ``dtypes`` defaults to float32.

    ``n_processes`` defaults to 1: how many processes hold the ranks, as many each.
    """

    name = "collectives"
    ops = tuple(OPCODES)

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per op, dtype, size, number of ranks and of processes; each rank's part is a whole number of elements."""
        unknown = [op for op in sweep["ops"] if op not in self.ops]
        if unknown:
            raise InputError(f"collectives: no op named {unknown[0]!r}; there are: {', '.join(self.ops)}")
        return [
            _configuration(op, dtype, size, int(ranks), int(processes))
            for op in sweep["ops"]
            for dtype in sweep.get("dtypes", ["float32"])
            for ranks in sweep["n_devices"]
            for processes in sweep.get("n_processes", [1])
            for size in sweep["message_bytes"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head, per rank."""
        n, e, ranks = config["elements"], element_bytes(config["dtype"]), config["n_devices"]
        op, size = str(config["op"]), float(n * e)
        known = NCCL_NAME.get(op, op)
        moved = traffic(known, size, ranks)
        written = size / ranks if op == "reduce_scatter" else size
        return Work(
            0.0, moved, moved + written, moved, written / e, message_bytes=size, ranks=ranks,
            processes=config.get("n_processes", 1), bus_factor=bus_factor(known, ranks),
        )  # fmt: skip

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Each rank has values of its own, so that a wrong route shows."""
        op, ranks, n, dtype = config["op"], config["n_devices"], config["elements"], config["dtype"]
        sent = n // ranks if op == "all_gather" else n
        received = n // ranks if op == "reduce_scatter" else n
        argument, output = (np.stack([uniform(rng, (k,), dtype) for _ in range(ranks)]) for k in (sent, received))
        return chained(_kernel(op, ranks), argument, output, (), LoopExpectation((OPCODES[op],)))

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The definition over the leading axis, the rank, in float64; each rank feeds its first element back."""
        function = _reference(config["op"])
        if kernel.form == "repeated":
            return (function(np.asarray(kernel.operands[0], dtype=np.float64)),)
        argument = np.array(kernel.carry[0], dtype=np.float64)
        for _ in range(iterations):
            output = function(argument)
            argument[:, 0] = (1.0 + 1e-3 * np.tanh(output[:, 0])).astype(kernel.carry[0].dtype).astype(np.float64)
        return argument, output

    def small(self, config: Config) -> Config:
        """At most 256 elements for each rank."""
        return {**config, "elements": min(config["elements"], 256 * config["n_devices"])}


def _configuration(op: str, dtype: str, size: float, ranks: int, processes: int) -> Config:
    if ranks < 2 or processes < 1 or ranks % processes:
        raise InputError(
            f"collectives: n_devices is at least 2 and a multiple of n_processes, not {ranks} with {processes}"
        )
    elements = max(1, round(size / element_bytes(dtype) / ranks)) * ranks
    config: Config = {"op": op, "dtype": dtype, "elements": elements, "n_devices": ranks}
    return {**config, "n_processes": processes} if processes > 1 else config


def _kernel(op: str, ranks: int) -> Callable[[Any], Any]:
    def collective(x: Any) -> Any:
        from jax import lax

        if op == "all_reduce":
            return lax.psum(x, AXIS)
        if op == "all_gather":
            return lax.all_gather(x, AXIS, tiled=True)
        if op == "reduce_scatter":
            return lax.psum_scatter(x, AXIS, tiled=True)
        if op == "all_to_all":
            return lax.all_to_all(x, AXIS, 0, 0, tiled=True)
        return lax.ppermute(x, AXIS, [(k, (k + 1) % ranks) for k in range(ranks)])

    return collective


def _reference(op: str) -> Callable[[np.ndarray], np.ndarray]:
    def collective(x: np.ndarray) -> np.ndarray:
        ranks = len(x)
        if op == "all_reduce":
            return np.tile(x.sum(axis=0), (ranks, 1))
        if op == "all_gather":
            return np.tile(x.reshape(-1), (ranks, 1))
        if op == "reduce_scatter":
            return np.asarray(x.sum(axis=0).reshape(ranks, -1))
        if op == "all_to_all":
            return np.asarray(x.reshape(ranks, ranks, -1).swapaxes(0, 1).reshape(ranks, -1))
        return np.roll(x, 1, axis=0)

    return collective


probe = Collectives()
