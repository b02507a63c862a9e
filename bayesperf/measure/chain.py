"""Turns a probe's kernel into one compiled program whose iterations are timed.

One ``fori_loop`` with a dynamic trip count inside ``shard_map`` over the devices of the scope: compiled once, whatever
the number of iterations. The carry is donated, so a launch neither copies nor allocates it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from bayesperf.errors import MeasurementError
from bayesperf.measure.check import check_launch, check_loop
from bayesperf.probe import Config, Kernel, Probe

__all__ = ["Program", "build", "check"]

AXIS = "devices"
ALIGNMENT = 64


@dataclass
class Program:
    """A compiled probe, ready to be run.

    Attributes
    ----------
    text
        Optimised HLO of the very executable that is timed.
    kernel
        The kernel of one device it was built from.
    compile_s
        Wall time of tracing, lowering and compiling.
    launched
        Whether each iteration is a launch of its own.
    """

    text: str
    kernel: Kernel
    compile_s: float
    launched: bool
    _executable: Any
    _operands: list[Any]
    _carry: Any
    _counter: NamedSharding
    _counts: dict[int, Any] = field(default_factory=dict)

    def prepare(self, iterations: int) -> None:
        """Put a trip count on the devices, so that its transfer is not part of a launch that is timed."""
        if not self.launched and iterations not in self._counts:
            self._counts[iterations] = jax.block_until_ready(jax.device_put(np.int32(iterations), self._counter))

    def run(self, iterations: int) -> None:
        """Run `iterations` and wait for them."""
        if self.launched:
            carry = self._carry
            for _ in range(iterations):
                carry = jax.block_until_ready(self._executable(carry, *self._operands))
            self._carry = carry
            return
        self.prepare(iterations)
        count = self._counts[iterations]
        self._carry = jax.block_until_ready(self._executable(count, self._carry, *self._operands))

    def carry(self) -> list[np.ndarray]:
        """Carry of the last device, on the host."""
        return [np.asarray(leaf)[-1] for leaf in self._carry]

    def release(self) -> None:
        """Give its device memory back now, without waiting for the garbage collector."""
        for array in (*self._operands, *self._carry):
            if not array.is_deleted():
                array.delete()
        self._operands, self._carry, self._counts = [], (), {}


def build(probe: Probe, config: Config, devices: Sequence[jax.Device], rng: np.random.Generator) -> Program:
    """Place data of their own on each device, compile, and check the optimised program.

    Parameters
    ----------
    probe, config
        What to build.
    devices
        Every one of them does the configuration's work.
    rng
        Source of the data; each device gets a copy of its own.

    Raises
    ------
    MeasurementError
        ``folded``, ``hoisted`` or ``copied``: neither the kernel's form nor a fallback survives the compiler;
        ``unsupported``: JAX does not hold this dtype here.
    """
    kernel = probe.kernel(config, rng)
    work_bytes, launched = probe.work(config).bytes, probe.mode == "launched"
    while True:
        program = _in_its_width(kernel, Mesh(np.array(devices), (AXIS,)), launched)
        try:
            check(program, work_bytes)
        except MeasurementError:
            program.release()
            if kernel.fallback is None:
                raise
            kernel = kernel.fallback
        else:
            return program


def check(program: Program, work_bytes: float) -> None:
    """Check a program against its kernel's expectation; `work_bytes` is an iteration's compulsory traffic.

    Raises
    ------
    MeasurementError
        ``folded``, ``hoisted`` or ``copied``.
    """
    kernel = program.kernel
    if program.launched:
        check_launch(program.text, kernel.expectation)
        return
    carries, operands = len(kernel.carry), len(kernel.operands)
    check_loop(program.text, kernel.expectation, carries=carries, operands=operands, work_bytes=work_bytes)


def _in_its_width(kernel: Kernel, mesh: Mesh, launched: bool) -> Program:
    wide = any(leaf.dtype.itemsize == 8 for leaf in (*kernel.operands, *kernel.carry))
    # Without it, JAX would turn 64-bit data into 32-bit ones and measure those.
    with jax.enable_x64(True) if wide else nullcontext():
        return _build(kernel, mesh, launched)


def _build(kernel: Kernel, mesh: Mesh, launched: bool) -> Program:
    operands = _place(kernel.operands, mesh)
    carry = tuple(_place(kernel.carry, mesh))
    function = _launched(kernel, mesh) if launched else _looped(kernel, mesh)
    started = time.perf_counter()
    if launched:
        executable = jax.jit(function).lower(carry, *operands).compile()
    else:
        count = jax.device_put(np.int32(1), NamedSharding(mesh, PartitionSpec()))
        executable = jax.jit(function, donate_argnums=1).lower(count, carry, *operands).compile()
    elapsed = time.perf_counter() - started
    counter = NamedSharding(mesh, PartitionSpec())
    return Program(executable.as_text() or "", kernel, elapsed, launched, executable, operands, carry, counter)


def _place(leaves: tuple[np.ndarray, ...], mesh: Mesh) -> list[Any]:
    """One global array per leaf, leading axis the device; buffers are never shared with the host's or each other's."""
    sharding = NamedSharding(mesh, PartitionSpec(AXIS))
    placed = []
    for leaf in map(_never_aliased, leaves):
        pieces = [jax.device_put(leaf[None], device, may_alias=False) for device in mesh.devices.flat]
        shape = (mesh.size, *leaf.shape)
        placed.append(jax.block_until_ready(jax.make_array_from_single_device_arrays(shape, sharding, pieces)))
        if placed[-1].dtype != leaf.dtype:
            raise MeasurementError("unsupported", f"JAX holds {leaf.dtype} as {placed[-1].dtype} on this device")
    return placed


def _never_aliased(leaf: np.ndarray) -> np.ndarray:
    """The same data at an address that JAX's CPU backend cannot use as it is.

    It takes over NumPy memory that is aligned to 64 bytes, even if told not to: all devices would read one buffer.
    """
    if leaf.ctypes.data % ALIGNMENT:
        return leaf
    raw = np.empty(leaf.nbytes + ALIGNMENT, dtype=np.uint8)
    start = (ALIGNMENT // 4 - raw.ctypes.data) % ALIGNMENT
    copy = raw[start : start + leaf.nbytes].view(leaf.dtype).reshape(leaf.shape)
    copy[...] = leaf
    return copy


def _looped(kernel: Kernel, mesh: Mesh) -> Any:
    def on_device(count: Any, carry: Any, *operands: Any) -> Any:
        local = [o[0] for o in operands]

        def body(i: Any, carry: Any) -> Any:
            # Tied to the iteration, operands do not count as invariant: not even their conversion is hoisted.
            i, *tied = lax.optimization_barrier((i, *local))
            return kernel.step(i, carry, *tied)

        carry = lax.fori_loop(0, count, body, tuple(c[0] for c in carry))
        return tuple(c[None] for c in carry)

    return _sharded(on_device, mesh, (PartitionSpec(), PartitionSpec(AXIS)), len(kernel.operands))


def _launched(kernel: Kernel, mesh: Mesh) -> Any:
    def on_device(carry: Any, *operands: Any) -> Any:
        carry = kernel.step(np.int32(0), tuple(c[0] for c in carry), *(o[0] for o in operands))
        return tuple(c[None] for c in carry)

    return _sharded(on_device, mesh, (PartitionSpec(AXIS),), len(kernel.operands))


def _sharded(function: Any, mesh: Mesh, leading: tuple[PartitionSpec, ...], operands: int) -> Any:
    specs = (*leading, *(PartitionSpec(AXIS),) * operands)
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=PartitionSpec(AXIS), check_vma=False)
