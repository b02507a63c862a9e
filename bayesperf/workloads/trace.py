"""`bayesperf.workload`: what work a JAX function is, without running it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bayesperf.errors import InputError
from bayesperf.hlo import leaves, parse, text_hash
from bayesperf.workloads.crosscheck import cross_check
from bayesperf.workloads.schedule import Loop, schedule
from bayesperf.workloads.table import tabulate

__all__ = ["CompiledProgram", "compiled_program", "counted", "from_hlo", "workload"]

Trips = Mapping[str, float] | float | None


def workload(fn: Callable[..., Any], /, *args: Any, trip_counts: Trips = None, **kwargs: Any) -> pd.DataFrame:
    """Count the work of a JAX function: one row per kernel of its optimised program.

    The function is traced and compiled for the default backend (or for the devices that its arguments' shardings name),
    never run: arguments may be arrays or ``jax.ShapeDtypeStruct``.

    Parameters
    ----------
    fn
        A function, or one that ``jax.jit`` made (with static or donated arguments, shardings, ...).
    *args, **kwargs
        Its arguments.
    trip_counts
        Iterations of loops that the program's text does not state (``while_loop`` whose end depends on data): one
        number for all, or a number for each loop by its HLO name. Without it, ``count`` is NaN inside of them.

    Returns
    -------
    DataFrame
        The contract's workload columns and those of `bayesperf.workloads.table`. ``attrs`` holds ``platform``,
        ``module`` (its name in HLO), ``n_devices``, ``output_bytes`` and ``temporary_bytes`` (what a run allocates),
        ``unknown_trip_counts``, ``notes``, ``hlo_hash``, and ``cross_check``: agreement with XLA's own cost analysis,
        and what makes the difference.

    Raises
    ------
    InputError
        The function cannot be traced or compiled with these arguments, or a trip count names no loop.
    """
    return counted(compiled_program(fn, args, kwargs), trip_counts=trip_counts)


@dataclass(frozen=True)
class CompiledProgram:
    """A function that was compiled for some arguments.

    Parameters
    ----------
    call
        The jitted function.
    compiled
        Its executable.
    donates
        Whether it may overwrite any of its arguments.
    """

    call: Callable[..., Any]
    compiled: Any
    donates: bool


def compiled_program(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> CompiledProgram:
    """Trace and compile a function; nothing is run.

    Raises
    ------
    InputError
        It is no function, or cannot be traced or compiled with these arguments.
    """
    import jax

    if not callable(fn):
        raise InputError(f"a function is needed, this is a {type(fn).__name__}: workload(fn, *args)")
    jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
    try:
        lowered = jitted.lower(*args, **kwargs)
        compiled = lowered.compile()
    except (TypeError, ValueError, NotImplementedError, jax.errors.JaxRuntimeError) as error:
        name = getattr(fn, "__name__", "the function")
        raise InputError(f"{name} cannot be compiled with these arguments: {error}") from error
    donated = [leaf for leaf in jax.tree.leaves(lowered.args_info) if getattr(leaf, "donated", False)]
    return CompiledProgram(jitted, compiled, bool(donated))


def counted(program: CompiledProgram, *, trip_counts: Trips = None) -> pd.DataFrame:
    """The workload table of a compiled program; see `workload`."""
    import jax

    compiled = program.compiled
    text = compiled.as_text()
    if not text:
        raise InputError("this backend does not show its optimised program (compiled.as_text() is empty)")
    shardings = jax.tree.leaves(compiled.input_shardings)
    device = next(iter(shardings[0].device_set)) if shardings else jax.devices()[0]
    table = from_hlo(
        text,
        platform=device.platform,
        relaxed=_relaxed(device),
        trip_counts=trip_counts,
        analysis=_analysis(compiled),
    )
    table.attrs |= _allocations(compiled)
    return table


def from_hlo(
    text: str,
    *,
    platform: str = "unknown",
    relaxed: str | None = None,
    trip_counts: Trips = None,
    analysis: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Count the work of an optimised HLO module given as text: a dump of another machine, for example.

    Parameters
    ----------
    text
        What ``compiled.as_text()`` or ``--xla_dump_hlo_as_text`` gives after optimisation.
    platform
        ``cpu``, ``gpu`` or ``tpu``.
    relaxed
        Type in which the device multiplies float32 operands unless something else is asked for: ``tf32`` on recent
        GPUs, ``bfloat16`` on TPUs, None where it is float32.
    trip_counts
        As for `workload`.
    analysis
        XLA's cost analysis, to be compared with.

    Raises
    ------
    InputError
        Not the text of a module, or a trip count that names no loop.
    """
    module = parse(text)
    program = schedule(module, _checked(trip_counts))
    if isinstance(trip_counts, Mapping):
        names = {loop.name for loop in _loops(program)}
        for name in trip_counts:
            if name not in names:
                raise InputError(f"trip_counts names no loop {name!r}; there are: {', '.join(sorted(names)) or 'none'}")
    table = tabulate(module, program, relaxed=relaxed)
    unknown = sorted({name for kernel in program.kernels() for name in kernel.loops})
    root = module.computations[module.entry].root
    table.attrs = {
        "platform": platform,
        "module": _module_name(module.header),
        "n_devices": module.devices,
        "output_bytes": sum(leaf.bytes for leaf in leaves(root.shape)),
        "outputs": [leaf.bytes for leaf in leaves(root.shape)],
        "temporary_bytes": 0.0,
        "unknown_trip_counts": unknown,
        "notes": _notes(table, unknown),
        "hlo_hash": text_hash(text),
        "cross_check": cross_check(program, analysis).to_dict(),
    }
    return table


def _module_name(header: str) -> str:
    words = header.replace(",", " ").split()
    return words[1] if len(words) > 1 else ""


def _checked(trips: Trips) -> Trips:
    for value in trips.values() if isinstance(trips, Mapping) else [trips]:
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
            raise InputError(f"a trip count is a number of at least 0, not {value!r}")
    return trips


def _loops(program: Loop) -> list[Loop]:
    found = [item for item in program.items if isinstance(item, Loop)]
    return [*found, *(inner for loop in found for inner in _loops(loop))]


def _notes(table: pd.DataFrame, unknown: list[str]) -> list[str]:
    notes = []
    if unknown:
        notes.append(
            f"trip count unknown, so their rows have no count: {', '.join(unknown)}; state it with trip_counts="
        )
    flags = table["flags"].fillna("")
    rows = table[flags.str.contains("unknown-flops")]
    if len(rows):
        moved = float((rows["bytes"] * rows["count"].fillna(1.0)).sum())
        notes.append(
            f"no formula for the flops of: {', '.join(sorted(set(rows['op'])))}; their {moved:.3g} bytes are counted"
        )
    if flags.str.contains("branch").any():
        notes.append("of each conditional the branch with the most flops and bytes is counted")
    return notes


def _analysis(compiled: Any) -> Mapping[str, float] | None:
    """XLA's cost analysis; None where a backend has none."""
    try:
        found = compiled.cost_analysis()
    except NotImplementedError:
        return None
    # Older versions return a list with one entry per program.
    found = found[0] if isinstance(found, list) and found else found
    return found if isinstance(found, Mapping) else None


def _allocations(compiled: Any) -> dict[str, float]:
    """What one run allocates: results that take no argument's place, and temporaries."""
    try:
        found = compiled.memory_analysis()
    except NotImplementedError:
        found = None
    if found is None:
        return {}
    output = float(found.output_size_in_bytes - found.alias_size_in_bytes)
    return {"output_bytes": max(output, 0.0), "temporary_bytes": float(found.temp_size_in_bytes)}


def _relaxed(device: Any) -> str | None:
    """Type in which a device multiplies float32 operands by default: NVIDIA's have tf32 since compute capability 8."""
    if device.platform == "tpu":
        return "bfloat16"
    major = str(getattr(device, "compute_capability", "")).partition(".")[0]
    return "tf32" if device.platform in ("gpu", "cuda") and major.isdigit() and int(major) >= 8 else None
