"""What a probe is: a kernel whose iterations depend on each other, with its sweep, its formulas and its self-check.

A probe describes the work of **one device**; the engine replicates it over the devices of a scope. It never times
anything: the engine chains ``step`` in one jitted ``fori_loop`` with a dynamic trip count, operands passed as
arguments, and reads the slope over the number of iterations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

__all__ = [
    "BYTES_OF",
    "Config",
    "Kernel",
    "LoopExpectation",
    "Probe",
    "Work",
    "chained",
    "element_bytes",
    "grid",
    "reference_of",
    "repeated",
    "uniform",
]

Config = dict[str, Any]
"""One configuration: JSON-able; ``op``, ``dtype`` and the shape are keys, and become columns of the table."""

BYTES_OF = {"float64": 8, "float32": 4, "tf32": 4, "bfloat16": 2, "float16": 2, "int32": 4, "int8": 1}


def element_bytes(dtype: str) -> int:
    """Bytes of one element of a dtype, named as in the table."""
    return BYTES_OF[dtype]


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
        Bytes per rank of a collective, else None.
    """

    flops: float
    bytes: float
    write_allocate_bytes: float
    working_set_bytes: float
    parallelism: float
    message_bytes: float | None = None


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
    """

    operations: tuple[tuple[str, ...], ...] = ()
    at_least: Mapping[str, int] = field(default_factory=dict)
    copied_share: float = 0.02


Step = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One chained kernel of one device.

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
    """

    operands: tuple[np.ndarray, ...]
    carry: tuple[np.ndarray, ...]
    step: Step
    expectation: LoopExpectation = LoopExpectation()
    form: str = "own"
    fallback: Kernel | None = None


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
        ``chained`` (iterations in one launch) or ``launched`` (each iteration is a launch of its own).
    """

    name: ClassVar[str]
    ops: ClassVar[tuple[str, ...]]
    role: ClassVar[Literal["fit", "heldout"]] = "fit"
    mode: ClassVar[Literal["chained", "launched"]] = "chained"

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
        """The carry after `iterations` (at least 1), computed with NumPy in float64."""

    def tolerance(self, config: Config) -> float:
        """Largest error allowed between carry and reference, relative to the largest magnitude of each array.

        The default tells float32 from tf32, whose products are good to about 1e-3.
        """
        return {"float32": 2e-5, "float64": 1e-10, "int32": 0.0}.get(str(config["dtype"]), 3e-2)

    def small(self, config: Config) -> Config:
        """The same operation and dtype at a size that a self-check affords."""
        return config


def uniform(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    """Values uniform in [0.5, 1.5), from a random block of at most 2**20 values repeated as often as needed."""
    import ml_dtypes

    size = int(np.prod(shape))
    block = rng.random(min(size, 2**20), dtype=np.float32) + np.float32(0.5)
    storage = {"bfloat16": ml_dtypes.bfloat16, "tf32": np.float32}.get(dtype, dtype)
    return np.resize(block.astype(storage), shape)


def chained(
    function: Callable[..., Any],
    argument: np.ndarray,
    output: np.ndarray,
    operands: tuple[np.ndarray, ...],
    expectation: LoopExpectation,
) -> Kernel:
    """Kernel of ``output = function(argument, *operands)``, chained through one element; falls back to `repeated`.

    For functions that end in a product or another operation that is not fused with what reads its result. After the
    function, the first element of its output goes into the first of its argument, in place: iterations depend on each
    other, nothing can be hoisted, and the traffic stays that of the function (a result that is fed back whole would be
    copied, and an element changed before the function would be fused into it, with a copy beside).
    """

    def step(i: Any, carry: tuple[Any, Any], *operands: Any) -> tuple[Any, Any]:
        import jax.numpy as jnp
        from jax import lax

        argument, _ = carry
        output = function(argument, *operands)
        first = lax.slice(output, (0,) * output.ndim, (1,) * output.ndim)
        exact = jnp.promote_types(output.dtype, jnp.float32)
        fed = (1.0 + 1e-3 * jnp.tanh(first.astype(exact))).astype(argument.dtype)
        fed = lax.reshape(fed, (1,) * argument.ndim)
        return lax.dynamic_update_slice(argument, fed, (0,) * argument.ndim), output

    fallback = repeated(function, argument, output, operands, expectation)
    return Kernel(operands, (argument, output), step, expectation, "chained", fallback)


def repeated(
    function: Callable[..., Any],
    argument: np.ndarray,
    output: np.ndarray,
    operands: tuple[np.ndarray, ...],
    expectation: LoopExpectation,
) -> Kernel:
    """Kernel of ``output = function(argument, *operands)``, repeated as it is.

    The engine ties operands to the iteration, and the optimised loop is checked, so that a compiler that hoists the
    work all the same is found out.
    """

    def step(i: Any, carry: tuple[Any], *operands: Any) -> tuple[Any]:
        return (function(*operands),)

    return Kernel((argument, *operands), (output,), step, expectation, "repeated")


def reference_of(function: Callable[..., np.ndarray], kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
    """What a `chained` or `repeated` kernel carries after `iterations`, with a NumPy `function` in float64."""
    operands = [np.asarray(o, dtype=np.float64) for o in kernel.operands]
    if kernel.form == "repeated":
        return (function(*operands),)
    argument, output = (np.array(leaf, dtype=np.float64) for leaf in kernel.carry)
    dtype = kernel.carry[0].dtype
    for _ in range(iterations):
        output = function(argument, *operands)
        fed = (1.0 + 1e-3 * np.tanh(output.reshape(-1)[0])).astype(dtype)
        argument.reshape(-1)[0] = np.float64(fed)
    return argument, output


def grid(sweep: Mapping[str, Any], keys: Iterable[str]) -> list[Config]:
    """All combinations of a sweep's lists over `keys`, in order."""
    import itertools

    keys = list(keys)
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*(sweep[key] for key in keys))]
