"""From kernels to the workload table: one row for each.

Columns of the contract, and:

=================== ===== ==============================================================================================
``count``                 executions in one run of the program; NaN inside a loop whose trip count nobody knows
``transcendentals``       function values among ``flops``
``function``              the function, named as in the probe `transcendental`, with most values that no single
                          instruction gives (all but roots), or None
``function_values``       values of such functions among ``transcendentals``
``across``                a product whose first operand's values that are summed lie apart in memory (``x.T @ y``)
``threads``               parts that the compiler cuts the kernel into, one for each thread of a CPU; 1 in a loop that
                          it makes one piece of code of; NaN: it does not say, the library behind the kernel decides
``footprint_bytes`` byte  what one execution touches (``working_set_bytes`` is what is touched between two uses of its
                          data, see `bayesperf.workloads.reuse`)
``instruction``           name of the HLO instruction
``within``                names of the loops and calls around it, outermost first, joined by ``/``, or None
``source``                name of the JAX operation it was made from
``flags``                 ``unknown-flops`` (no formula: ``flops`` says nothing), ``unknown-trip-count``, ``branch``
                          (the heaviest of a conditional), joined by ``+``
=================== ===== ==============================================================================================

Of a program that several devices run together, ``flops``, ``bytes``, working set and parallelism are totals over the
devices, and those of one rank where there are messages, as in measurement tables.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from bayesperf.hlo import Module, leaves
from bayesperf.workloads.attributes import partitions, source
from bayesperf.workloads.families import dtype_of, family_of, slug
from bayesperf.workloads.flops import FUNCTIONS, ROOTS
from bayesperf.workloads.products import Product
from bayesperf.workloads.reuse import WorkingSet, working_sets
from bayesperf.workloads.schedule import Kernel, Loop
from bayesperf.workloads.traffic import body_of, results_of

__all__ = ["LEADING", "tabulate"]

LEADING = ("op", "dtype", "flops", "bytes", "working_set_bytes", "parallelism", "message_bytes", "n_devices")
"""Columns that every table has, in their order; shape columns and those of the module's head follow."""

TRAILING = (
    *("count", "transcendentals", "function", "function_values", "across", "threads", "footprint_bytes"),
    *("instruction", "within", "source", "flags"),
)

NAMES = {"exponential": "exp", "sine": "sin", "cosine": "cos"}
"""The table's names of functions that HLO calls otherwise."""

EXACT = ("high", "f32_f32_f32", "x3", "x6", "x9")
"""What marks a product of float32 operands whose factors are not cut to a shorter type."""


def tabulate(module: Module, program: Loop, *, relaxed: str | None = None) -> pd.DataFrame:
    """One row per kernel, in the order they run.

    Parameters
    ----------
    module, program
        The optimised program and its kernels.
    relaxed
        Type in which the device multiplies float32 operands unless something else is asked for, or None.
    """
    sets = working_sets(program)
    devices = float(module.devices)
    rows = [_row(module, kernel, sets.get(id(kernel)), devices, relaxed) for kernel in program.kernels()]
    shapes = dict.fromkeys(key for row in rows for key in row if key not in (*LEADING, *TRAILING))
    return pd.DataFrame(rows, columns=[*LEADING, *shapes, *TRAILING])


def _row(
    module: Module, kernel: Kernel, working: WorkingSet | None, devices: float, relaxed: str | None
) -> dict[str, Any]:
    flags = ["unknown-trip-count"] if kernel.loops else []
    flags += ["branch"] if kernel.branch else []
    common = {"count": kernel.count, "instruction": kernel.instruction.name, "source": source(kernel.instruction)}
    common["within"] = "/".join(kernel.within) or None
    if kernel.message is not None:
        message = kernel.message
        return {
            "op": message.op,
            "dtype": dtype_of(message.kind),
            "flops": 0.0,
            "bytes": message.bytes,
            "working_set_bytes": message.bytes,
            "parallelism": message.elements,
            "message_bytes": message.message_bytes,
            "n_devices": float(message.ranks),
            **common,
            "transcendentals": 0.0,
            "function": None,
            "function_values": 0.0,
            "across": False,
            "threads": math.nan,
            "footprint_bytes": message.bytes,
            "flags": "+".join(flags) or None,
        }
    content = kernel.content
    assert content is not None
    body = body_of(module, kernel.computation, kernel.instruction)
    flags += ["unknown-flops"] if content.unknown else []
    largest = max(content.products, key=lambda product: product.flops, default=None)
    moved = sum(access.bytes for access in [*content.reads, *content.writes])
    results = results_of(kernel.instruction)
    functions = {name: count for name, count in content.opcodes.items() if name in FUNCTIONS - ROOTS}
    function = max(functions, key=lambda name: functions[name], default=None)
    return {
        "op": family_of(kernel.instruction, body, content),
        "dtype": _dtype(kernel, largest, relaxed),
        "flops": content.tally.flops * devices,
        "bytes": moved * devices,
        "working_set_bytes": (working.reuse if working else moved) * devices,
        "parallelism": max((leaf.elements for leaf in results), default=1.0) * devices,
        "message_bytes": math.nan,
        "n_devices": devices,
        **(largest.shape if largest else {}),
        **common,
        "transcendentals": content.tally.functions * devices,
        "function": None if function is None else NAMES.get(function, slug(function)),
        "function_values": min(sum(functions.values()), content.tally.functions) * devices,
        "across": largest is not None and largest.across,
        "threads": 1.0 if kernel.whole else partitions(kernel.instruction),
        "footprint_bytes": (working.footprint if working else moved) * devices,
        "flags": "+".join(flags) or None,
    }


def _dtype(kernel: Kernel, product: Product | None, relaxed: str | None) -> str:
    """Element type of a product's operands as stored; of other kernels, the one that most of its bytes have."""
    if product is not None:
        name = dtype_of(product.kind)
        asked = product.precision
        if name != "float32" or any(word in asked for word in EXACT):
            return name
        # What is asked for by name holds on every device.
        named = {"tf32": "tf32", "bf16": "bfloat16"}
        return next((dtype for word, dtype in named.items() if word in asked), relaxed or name)
    weights: dict[str, float] = {}
    known = kernel.computation.instructions
    given = [leaf for name in kernel.instruction.operands if name in known for leaf in leaves(known[name].shape)]
    for leaf in [*results_of(kernel.instruction), *given]:
        weights[leaf.kind] = weights.get(leaf.kind, 0.0) + leaf.bytes
    return dtype_of(max(weights, key=lambda kind: weights[kind])) if weights else "unknown"
