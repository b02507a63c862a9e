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
from bayesperf.measure.hosted import HostedProgram
from bayesperf.probe import AXIS, Config, Kernel, Probe, never_aliased

__all__ = ["AnyProgram", "Program", "build", "check"]


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
    ranked
        Whether an iteration spans the devices, each with a part of its own.
    """

    text: str
    kernel: Kernel
    compile_s: float
    launched: bool
    ranked: bool
    _executable: Any
    _operands: list[Any]
    _carry: Any
    _counter: NamedSharding
    _counts: dict[int, Any] = field(default_factory=dict)

    def prepare(self, iterations: int) -> None:
        """Put a trip count on the devices, so that its transfer is not part of a launch that is timed."""
        if not self.launched and iterations not in self._counts:
            self._counts[iterations] = _everywhere(iterations, self._counter)

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
        """Carry on the host: of the last device, or of all ranks that this process holds, leading axis the rank."""
        shards = [sorted(leaf.addressable_shards, key=_rank) for leaf in self._carry]
        if not self.ranked:
            return [np.asarray(each[-1].data)[0] for each in shards]
        return [np.concatenate([np.asarray(shard.data) for shard in each]) for each in shards]

    def own(self, expected: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The part of a kernel's reference that `carry` is to be compared with."""
        if not self.ranked:
            return list(expected)
        ranks = sorted(_rank(shard) for shard in self._carry[0].addressable_shards)
        return [leaf[ranks] for leaf in expected]

    def release(self) -> None:
        """Give its device memory back now, without waiting for the garbage collector."""
        for array in (*self._operands, *self._carry):
            if not array.is_deleted():
                array.delete()
        self._operands, self._carry, self._counts = [], (), {}


AnyProgram = Program | HostedProgram


def build(probe: Probe, config: Config, devices: Sequence[jax.Device], rng: np.random.Generator) -> AnyProgram:
    """Place data of their own on each device, compile, and check the optimised program.

    Parameters
    ----------
    probe, config
        What to build.
    devices
        Every one of them does the configuration's work; or they are its ranks, as many as it spans.
    rng
        Source of the data; each device gets a copy of its own.

    Raises
    ------
    MeasurementError
        ``folded``, ``hoisted`` or ``copied``: neither the kernel's form nor a fallback survives the compiler;
        ``unsupported``: JAX does not hold this dtype here, or there are not as many devices as ranks.
    """
    work, launched = probe.work(config), probe.mode == "launched"
    if work.ranks > 1 and len(devices) != work.ranks:
        raise MeasurementError("unsupported", f"an iteration spans {work.ranks} devices, not {len(devices)}")
    kernel = probe.kernel(config, rng)
    if probe.mode == "hosted":
        return HostedProgram(kernel, devices)
    while True:
        program = _in_its_width(kernel, Mesh(np.array(devices), (AXIS,)), launched, work.ranks > 1)
        try:
            check(program, work.bytes)
        except MeasurementError:
            program.release()
            if kernel.fallback is None:
                raise
            kernel = kernel.fallback
        else:
            return program


def check(program: AnyProgram, work_bytes: float) -> None:
    """Check a program against its kernel's expectation; `work_bytes` is an iteration's compulsory traffic.

    What the host repeats is no compiled program: its routine guards itself.

    Raises
    ------
    MeasurementError
        ``folded``, ``hoisted`` or ``copied``.
    """
    if isinstance(program, HostedProgram):
        return
    kernel = program.kernel
    if program.launched:
        check_launch(program.text, kernel.expectation)
        return
    carries, operands = len(kernel.carry), len(kernel.operands)
    check_loop(program.text, kernel.expectation, carries=carries, operands=operands, work_bytes=work_bytes)


def _in_its_width(kernel: Kernel, mesh: Mesh, launched: bool, ranked: bool) -> Program:
    # 64-bit integers and floats, and complex numbers made of such.
    wide = any(leaf.real.dtype.itemsize == 8 for leaf in (*kernel.operands, *kernel.carry))
    # Without it, JAX would turn 64-bit data into 32-bit ones and measure those.
    with jax.enable_x64(True) if wide else nullcontext():
        return _build(kernel, mesh, launched, ranked)


def _build(kernel: Kernel, mesh: Mesh, launched: bool, ranked: bool) -> Program:
    operands = _place(kernel.operands, mesh, ranked)
    carry = tuple(_place(kernel.carry, mesh, ranked))
    counter = NamedSharding(mesh, PartitionSpec())
    function = _launched(kernel, mesh) if launched else _looped(kernel, mesh)
    started = time.perf_counter()
    if launched:
        executable = jax.jit(function).lower(carry, *operands).compile()
    else:
        count = _everywhere(1, counter)
        executable = jax.jit(function, donate_argnums=1).lower(count, carry, *operands).compile()
    elapsed = time.perf_counter() - started
    text = executable.as_text() or ""
    return Program(text, kernel, elapsed, launched, ranked, executable, operands, carry, counter)


def _rank(shard: Any) -> int:
    return shard.index[0].start or 0


def _everywhere(count: int, sharding: NamedSharding) -> Any:
    """A trip count on every device, those of other processes included: each process puts it on its own."""
    value = np.int32(count)
    return jax.block_until_ready(jax.make_array_from_callback((), sharding, lambda index: value))


def _place(leaves: tuple[np.ndarray, ...], mesh: Mesh, ranked: bool) -> list[Any]:
    """One global array per leaf, leading axis the device; buffers are never shared with the host's or each other's.

    Each device gets a copy of the leaf, or, where it is `ranked`, the rank's part of it.
    """
    sharding = NamedSharding(mesh, PartitionSpec(AXIS))
    own = [(k, d) for k, d in enumerate(mesh.devices.flat) if d.process_index == jax.process_index()]
    placed = []
    for leaf in leaves:
        shape = leaf.shape if ranked else (mesh.size, *leaf.shape)
        whole = leaf if ranked else never_aliased(leaf)
        parts = [(never_aliased(whole[k : k + 1]) if ranked else whole[None], device) for k, device in own]
        pieces = [jax.device_put(part, device, may_alias=False) for part, device in parts]
        placed.append(jax.block_until_ready(jax.make_array_from_single_device_arrays(shape, sharding, pieces)))
        if placed[-1].dtype != leaf.dtype:
            raise MeasurementError("unsupported", f"JAX holds {leaf.dtype} as {placed[-1].dtype} on this device")
    return placed


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
