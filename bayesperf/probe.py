"""What a probe is: a kernel whose iterations depend on each other, with its sweep, its formulas and its self-check.

A probe describes the work of **one device**; the engine replicates it over the devices of a scope. It never times
anything: the engine chains ``step`` in one jitted ``fori_loop`` with a dynamic trip count, operands passed as
arguments, and reads the slope over the number of iterations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

__all__ = [
    "AXIS",
    "BYTES_OF",
    "Config",
    "Kernel",
    "LoopExpectation",
    "Probe",
    "Routine",
    "Work",
    "chained",
    "element_bytes",
    "grid",
    "hosted",
    "never_aliased",
    "reference_of",
    "repeated",
    "storage_dtype",
    "uniform",
]

AXIS = "devices"
"""Mesh axis over the devices of a scope, to which the steps of collectives refer."""

Config = dict[str, Any]
"""One configuration: JSON-able; ``op``, ``dtype`` and the shape are keys, and become columns of the table."""

BYTES_OF = {
    "float64": 8,
    "float32": 4,
    "tf32": 4,
    "bfloat16": 2,
    "float16": 2,
    "float8": 1,
    "int32": 4,
    "int8": 1,
}


def element_bytes(dtype: str) -> int:
    """Bytes of one element of a dtype, named as in the table."""
    return BYTES_OF[dtype]


def storage_dtype(dtype: str) -> np.dtype[Any]:
    """NumPy's type for the elements of a dtype, named as in the table; ``float8`` is float8_e4m3fn."""
    import ml_dtypes

    special: dict[str, Any] = {
        "bfloat16": ml_dtypes.bfloat16,
        "float8": ml_dtypes.float8_e4m3fn,
        "tf32": np.float32,
    }
    storage: np.dtype[Any] = np.dtype(special.get(dtype, dtype))
    return storage


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one iteration on one device, by formula.

    Parameters
    ----------
    flops
        Floating-point operations, a fused multiply-add counting two; 0 where there are none.
    bytes
        Compulsory traffic in byte: every input read once and every output written once.
    write_allocate_bytes
        The same, plus one read of each output line that is written without having been read (what the bus of a
        write-allocate cache carries).
    working_set_bytes
        Footprint in byte of everything an iteration touches.
    parallelism
        Independent output elements.
    message_bytes
        Bytes per rank of a collective or transfer, else None. Where it is stated, everything here is per rank and the
        table does not add ranks up.
    ranks
        Devices that one iteration spans; 1: every device of the scope works on its own.
    processes
        Processes that hold these ranks, as many each.
    line_bytes
        What caches carry where an access brings a whole line of which little is used, in byte, else None.
    bus_factor
        Bus bandwidth over algorithm bandwidth of a collective, else None.
    """

    flops: float
    bytes: float
    write_allocate_bytes: float
    working_set_bytes: float
    parallelism: float
    message_bytes: float | None = None
    ranks: int = 1
    processes: int = 1
    line_bytes: float | None = None
    bus_factor: float | None = None


@dataclass(frozen=True, slots=True)
class LoopExpectation:
    """What the loop body of the optimised program must hold for its timing to mean anything.

    Parameters
    ----------
    operations
        Each entry is a tuple of HLO opcodes of which at least one must be in the body (``("dot", "custom-call")``).
    at_least
        Least number of instructions of an opcode in the body, fused ones included.
    copied_share
        Largest share of the work's bytes that ``copy`` instructions of the body may move.
    operand_type
        HLO element type that an instruction of the first entry of `operations` must take in (``f8e4m3fn``): where the
        compiler widens the operands beforehand, the device does not have the type.
    """

    operations: tuple[tuple[str, ...], ...] = ()
    at_least: Mapping[str, int] = field(default_factory=dict)
    copied_share: float = 0.02
    operand_type: str | None = None


Step = Callable[..., Any]


class Routine(ABC):
    """What the host repeats for a probe in mode ``hosted``: transfers, compilation, whatever is no compiled loop."""

    def prepare(self, iterations: int) -> None:  # noqa: B027 - most have nothing to prepare
        """Get ready for `iterations`; never timed."""

    @abstractmethod
    def run(self, iterations: int) -> None:
        """Do it `iterations` times, one after the other, and return when the last is finished; this is timed."""

    @abstractmethod
    def result(self) -> list[np.ndarray]:
        """What the probe's reference is compared with."""

    @abstractmethod
    def release(self) -> None:
        """Give device memory back."""


MakeRoutine = Callable[[Sequence[Any], "Kernel"], Routine]
"""From the JAX devices of the scope, and the kernel with its arrays."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One chained kernel of one device.

    Where an iteration spans several ranks (`Work.ranks`), the leading axis of every array is the rank: each device
    gets its own part, and `step` sees that part alone.

    Parameters
    ----------
    operands
        NumPy arrays that every iteration reads and none changes.
    carry
        Tuple of NumPy arrays that one iteration hands to the next.
    step
        ``step(i, carry, *operands) -> carry`` in JAX; `i` is the iteration, an int32 scalar.
    expectation
        What its optimised loop must hold.
    form
        How iterations are chained: ``own``, or the helper's name (`chained`, `repeated`).
    fallback
        The same work chained in another form, tried where the compiler's optimised loop fails the expectation.
    routine
        In mode ``hosted``: makes what the host repeats; `step` is not used.
    """

    operands: tuple[np.ndarray, ...]
    carry: tuple[np.ndarray, ...]
    step: Step
    expectation: LoopExpectation = LoopExpectation()
    form: str = "own"
    fallback: Kernel | None = None
    routine: MakeRoutine | None = None


class Probe(ABC):
    """Base of all probes. A probe is a leaf: nobody inherits from a concrete one.

    Attributes
    ----------
    name
        Name in suites; the entry point carries the same.
    ops
        The ``op`` names of the rows it yields.
    role
        ``fit``, or ``heldout`` for workloads that no model may be fitted to.
    mode
        ``chained`` (iterations in one launch), ``launched`` (each iteration is a launch of its own) or ``hosted`` (the
        host repeats the kernel's routine).
    """

    name: ClassVar[str]
    ops: ClassVar[tuple[str, ...]]
    role: ClassVar[Literal["fit", "heldout"]] = "fit"
    mode: ClassVar[Literal["chained", "launched", "hosted"]] = "chained"

    @abstractmethod
    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """Configurations of a sweep, as a suite states it.

        Raises
        ------
        InputError
            The sweep has a key or a value that this probe does not know.
        """

    @abstractmethod
    def work(self, config: Config) -> Work:
        """Work of one iteration on one device."""

    @abstractmethod
    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Build operands, carry and step. Data are never zeros: their values can change the rate."""

    @abstractmethod
    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The carry (of a routine: the result) after `iterations`, at least 1, computed with NumPy in float64."""

    def tolerance(self, config: Config) -> float:
        """Largest error allowed between carry and reference, relative to the largest magnitude of each array.

        The default tells float32 from tf32, whose products are good to about 1e-3.
        """
        return {"float32": 2e-5, "float64": 1e-10, "int32": 0.0}.get(str(config["dtype"]), 3e-2)

    def small(self, config: Config) -> Config:
        """The same operation and dtype at a size that a self-check affords."""
        return config


def uniform(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Values uniform in [0.5, 1.5), from a random block of at most 2**20 values repeated as often as needed.

    Integers are uniform over all values of their type but zero and the lowest.
    """
    size = int(np.prod(shape))
    storage = storage_dtype(dtype)
    if storage.kind == "i":
        magnitude = rng.integers(1, np.iinfo(storage).max, min(size, 2**20), dtype=storage, endpoint=True)
        return np.resize(np.where(rng.random(magnitude.shape) < 0.5, magnitude, -magnitude), shape)
    block = rng.random(min(size, 2**20), dtype=np.float32) + np.float32(0.5)
    return np.resize(block.astype(storage), shape)


Arrays = np.ndarray | tuple[np.ndarray, ...]


def chained(
    function: Callable[..., Any],
    argument: np.ndarray,
    output: Arrays,
    operands: tuple[np.ndarray, ...],
    expectation: LoopExpectation,
) -> Kernel:
    """Kernel of ``output = function(argument, *operands)``, chained through one element; falls back to `repeated`.

    For functions that end in a product or another operation that is not fused with what reads its result. After the
    function, the first element of its (first) output goes into the first of its argument, in place: iterations depend
    on each other, nothing can be hoisted, and the traffic stays that of the function (a result that is fed back whole
    would be copied, and an element changed before the function would be fused into it, with a copy beside).
    """

    def step(i: Any, carry: tuple[Any, ...], *operands: Any) -> tuple[Any, ...]:
        import jax.numpy as jnp
        from jax import lax

        argument = carry[0]
        outputs = _as_tuple(function(argument, *operands))
        first = jnp.real(lax.slice(outputs[0], (0,) * outputs[0].ndim, (1,) * outputs[0].ndim))
        exact = jnp.promote_types(first.dtype, jnp.float32)
        fed = (1.0 + 1e-3 * jnp.tanh(first.astype(exact))).astype(argument.dtype)
        fed = lax.reshape(fed, (1,) * argument.ndim)
        return lax.dynamic_update_slice(argument, fed, (0,) * argument.ndim), *outputs

    fallback = repeated(function, argument, output, operands, expectation)
    return Kernel(operands, (argument, *_as_tuple(output)), step, expectation, "chained", fallback)


def repeated(
    function: Callable[..., Any],
    argument: np.ndarray,
    output: Arrays,
    operands: tuple[np.ndarray, ...],
    expectation: LoopExpectation,
) -> Kernel:
    """Kernel of ``output = function(argument, *operands)``, repeated as it is.

    The engine ties operands to the iteration, and the optimised loop is checked, so that a compiler that hoists the
    work all the same is found out.
    """

    def step(i: Any, carry: tuple[Any, ...], *operands: Any) -> tuple[Any, ...]:
        return _as_tuple(function(*operands))

    return Kernel((argument, *operands), _as_tuple(output), step, expectation, "repeated")


ALIGNMENT = 64


def never_aliased(leaf: np.ndarray) -> np.ndarray:
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


def hosted(operands: tuple[np.ndarray, ...], carry: tuple[np.ndarray, ...], routine: MakeRoutine) -> Kernel:
    """Kernel of a probe in mode ``hosted``: no step, but a routine that the host repeats."""

    def step(*unused: Any) -> Any:
        raise NotImplementedError("a hosted kernel is not compiled into a loop")

    return Kernel(operands, carry, step, form="hosted", routine=routine)


def reference_of(function: Callable[..., Arrays], kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
    """What a `chained` or `repeated` kernel carries after `iterations`, with a NumPy `function` in float64."""
    operands = [_widened(o) for o in kernel.operands]
    if kernel.form == "repeated":
        return _as_tuple(function(*operands))
    argument, outputs = _widened(kernel.carry[0]), kernel.carry[1:]
    dtype = kernel.carry[0].dtype
    for _ in range(iterations):
        outputs = _as_tuple(function(argument, *operands))
        fed = (1.0 + 1e-3 * np.tanh(np.real(outputs[0].reshape(-1)[0]))).astype(dtype)
        argument.reshape(-1)[0] = fed.astype(argument.dtype)
    return argument, *outputs


def _as_tuple(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _widened(array: np.ndarray) -> np.ndarray:
    """A copy in float64, or complex128."""
    return np.array(array, dtype=np.complex128 if np.iscomplexobj(array) else np.float64)


def grid(sweep: Mapping[str, Any], keys: Iterable[str]) -> list[Config]:
    """All combinations of a sweep's lists over `keys`, in order."""
    import itertools

    keys = list(keys)
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*(sweep[key] for key in keys))]
