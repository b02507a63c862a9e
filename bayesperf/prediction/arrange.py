"""From a program's kernels to the rows that the model predicts: stand-ins, scopes, and the parts of a launch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.errors import InputError
from bayesperf.prediction.standins import Kin, StandIn, stand_in
from bayesperf.schema import validate_workloads

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["Arranged", "arrange", "checked"]

SCALAR = "scalar"

PAGE_BYTES = 4096.0
"""Allocations below a page cost nothing that could be seen."""

INLINE_FLOPS = 1000.0
"""A program of fewer FLOP runs on the thread that calls it (XLA on CPU), as the probe ``dispatch`` does; others are
handed to another thread, as the probe ``allocation`` is."""

MOST_SIZES = 12
"""Different sizes of buffers that are told apart, the largest."""

ACROSS = " across rows"
"""Behind the family of products whose values that are summed lie apart: of eight shapes they took 0.96 to 1.7 times as
long as the others, the median 1.06 (XLA on a Xeon of two cores)."""

_ALIKE: Mapping[Kin, int] = {"measured": 0, "near": 1, "far": 2, "unknown": 3}

_PARTED = ("flops", "bytes", "working_set_bytes", "parallelism", "function_values", "transcendentals")
"""Columns of which each of several threads has its part."""

COPIES = ("stream_copy", "stream_scale", "stream_triad")
"""Measured operations that tell what writing a buffer takes, the first that there is."""


@dataclass(frozen=True)
class Arranged:
    """What is to be predicted.

    Parameters
    ----------
    table
        Kernels as they were given, and the launch behind them.
    rows
        The same as the operations that predict them, each with its target; behind them further parts of the launch.
    kin, families
        How much alike each row of `rows` runs; its family and its stand-in.
    launch
        Names of the parts of the launch: none; ``launch``; and, for each size of buffer that it allocates, the row
        ``written`` that tells what writing it takes, whose ``ratio`` is the time of a launch that returns such a buffer
        over that of a launch that returns a page.
    notes
        What was put in whose place.
    """

    table: pd.DataFrame
    rows: pd.DataFrame
    kin: list[Kin]
    families: list[tuple[str, str]]
    launch: tuple[str, ...]
    notes: list[str]


def checked(workloads: pd.DataFrame) -> pd.DataFrame:
    """A program's kernels with their counts, without those of scalars.

    Raises
    ------
    InputError
        A count that nobody knows or that is negative, or no kernel.
    """
    attrs = dict(getattr(workloads, "attrs", {}))
    table = validate_workloads(workloads, source="program")
    if "count" not in table:
        table = table.assign(count=1.0)
    count = table["count"].to_numpy(dtype=float, na_value=np.nan)
    if np.isnan(count).any():
        loops = ", ".join(attrs.get("unknown_trip_counts", [])) or "a loop"
        raise InputError(
            f"nobody knows how often {loops} runs: give workload(..., trip_counts=) or --trip-count a number, or set "
            "the column count of these rows"
        )
    if (count < 0).any():
        raise InputError("the column count holds how often a kernel runs: at least 0")
    table = table[(count > 0) & (table["op"] != SCALAR).to_numpy()].reset_index(drop=True)
    table.attrs = attrs
    return table


def arrange(profile: Profile, table: pd.DataFrame, target: str, *, launched: bool) -> Arranged:
    """Say what predicts each kernel of a checked table, and what the launch is made of.

    Kernels that the compiler cuts into parts for several threads run as on a target of as many devices, where the
    profile has it: a probe on one device repeats its kernel in a loop, which the compiler leaves to one thread. Where
    only the one device's target has measurements of what is like the kernel, each thread runs a part of it as there.

    Raises
    ------
    InputError
        There is neither a kernel nor a launch.
    """
    if not len(table) and not launched:
        raise InputError("the program has no kernels: nothing of it is left to predict")
    measured = {str(name): set(rows["op"]) for name, rows in profile.table.groupby("target", sort=False)}
    rows, found = _placed(table.assign(target=target), _scopes(profile, target), measured)
    across = table.get("across", pd.Series(False, index=table.index)).fillna(False).astype(bool)
    families = [
        (f"{op}{ACROSS if turned else ''}", each.op)
        for op, turned, each in zip(table["op"], across, found, strict=True)
    ]
    # Products are measured with the values that are summed side by side.
    found = [
        replace(each, kin="near") if turned and each.kin == "measured" else each
        for turned, each in zip(across, found, strict=True)
    ]
    alone = np.array([each.functions for each in found], dtype=bool)
    rows = rows.assign(op=pd.Series([each.op for each in found], dtype=object, index=rows.index), statistic="slope")
    if alone.any():
        rows["flops"] = np.where(alone, rows["function_values"], rows["flops"])
    kin, own = [each.kin for each in found], profile.table[profile.table["target"] == target]
    parts = _launch(table, own) if launched else []
    if parts:
        behind = pd.DataFrame([{**part, "target": target} for part in parts])
        rows = pd.concat([rows, behind], ignore_index=True) if len(rows) else behind
        shown = behind.iloc[:1].drop(columns="target")
        table = pd.concat([table, shown], ignore_index=True) if len(table) else shown
        kin += ["measured"] * len(parts)
        families += [("launch", str(part["op"])) for part in parts]
    swapped = sorted({(old, each.op, each.kin) for (old, _), each in zip(families, found, strict=False)})
    notes = _told(swapped) if families[len(parts) :] else [*_told(swapped), "no kernels: only the launch is predicted"]
    return Arranged(table, rows, kin, families, tuple(str(part["instruction"]) for part in parts), notes)


def _told(swapped: Sequence[tuple[str, str, Kin]]) -> list[str]:
    words = {
        "near": "{old} was not measured: predicted as {new}, which runs alike",
        "far": "{old} was not measured: predicted as {new}, which does the same in another way, within a wide factor",
        "unknown": "{old} was not measured, and nothing that runs like it: within a wide factor",
    }
    return [words[kin].format(old=old, new=new) for old, new, kin in swapped if kin in words]


def _standing_in(rows: pd.DataFrame, measured: Mapping[str, Collection[str]]) -> list[StandIn]:
    if "function_values" in rows:
        share = (rows["function_values"] / rows["flops"].where(rows["flops"] > 0)).fillna(0.0)
        functions = [name if isinstance(name, str) else None for name in rows["function"]]
    else:
        share, functions = pd.Series(0.0, index=rows.index), [None] * len(rows)
    return [
        stand_in(str(op), float(part), function, measured.get(str(target), ()))
        for op, part, function, target in zip(rows["op"], share, functions, rows["target"], strict=True)
    ]


def _scopes(profile: Profile, target: str) -> dict[float, str]:
    """Targets of the same machine by their number of devices, where `target` itself is one device of it."""
    found = re.fullmatch(r"(.+)-x1", target)
    if found is None or "n_devices" not in profile.table:
        return {}
    counts = profile.table.groupby("target", sort=False)["n_devices"].max()
    return {float(n): str(name) for name, n in counts.items() if n > 1 and name == f"{found[1]}-x{n:.0f}"}


def _placed(
    rows: pd.DataFrame, scopes: Mapping[float, str], measured: Mapping[str, Collection[str]]
) -> tuple[pd.DataFrame, list[StandIn]]:
    """Rows at the targets that tell about them, and what predicts each of them there."""
    alone = _standing_in(rows, measured)
    if "threads" not in rows or not scopes:
        return rows, alone
    wide = rows["threads"].isin(list(scopes)).to_numpy()
    if not wide.any():
        return rows, alone
    scoped = rows.assign(n_devices=np.where(wide, rows["threads"], rows.get("n_devices", 1.0)))
    scoped.loc[wide, "target"] = [scopes[float(n)] for n in rows.loc[wide, "threads"]]
    together = _standing_in(scoped, measured)
    cut = wide & np.array([_ALIKE[one.kin] < _ALIKE[all_.kin] for one, all_ in zip(alone, together, strict=True)])
    for name in _PARTED:
        if name in rows:
            scoped.loc[cut, name] = (rows[name] / rows["threads"])[cut]
    scoped.loc[cut, ["target", "n_devices"]] = rows.assign(n_devices=rows.get("n_devices", 1.0)).loc[
        cut, ["target", "n_devices"]
    ]
    found = [
        replace(one, kin="near" if one.kin == "measured" else one.kin) if part else all_
        for one, all_, part in zip(alone, together, cut, strict=True)
    ]
    return scoped, found


def _launch(table: pd.DataFrame, measured: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a launch, the one that is shown first.

    What a run allocates counts where that was measured: the probe `allocation` launches a program that writes one fresh
    buffer. Of each buffer that a run allocates, what it takes more than a page is added, without what writing it takes:
    the kernels do that. Memory of some sizes is kept by the process and of others given back and faulted in again, a
    cliff that follows no bandwidth: it is read off the measured sizes.
    """
    attrs = {str(k): v for k, v in table.attrs.items()}
    buffers, ops = _buffers(attrs), set(measured["op"])
    row: dict[str, Any] = {
        "op": "dispatch",
        "dtype": "float32",
        "flops": 0.0,
        "bytes": 0.0,
        "n_devices": float(attrs.get("n_devices", 1)),
        "count": 1.0,
        "instruction": "launch",
    }
    handed = float((table["flops"] * table["count"]).sum()) >= INLINE_FLOPS and attrs.get("platform") == "cpu"
    if (not buffers and not handed) or "allocation" not in ops:
        return [row]
    parts = [row | {"op": "allocation", "bytes": PAGE_BYTES, "working_set_bytes": PAGE_BYTES}]
    copy = next((name for name in COPIES if name in ops), None)
    for size, count in (buffers if copy is not None else {}).items():
        written = {"op": copy, "bytes": size, "working_set_bytes": size, "statistic": "slope", "instruction": "written"}
        parts.append(row | written | {"count": float(count), "ratio": _ratio(measured, size)})
    return parts


def _ratio(measured: pd.DataFrame, size: float) -> float:
    """Time of a launch that returns a buffer of `size`, over that of one that returns a page.

    Medians of the measured sizes, interpolated in logs; beyond the largest in proportion.
    """
    medians = measured[measured["op"] == "allocation"].groupby("bytes")["time_s"].median().sort_index()
    sizes, times = np.log(medians.index.to_numpy(float)), np.log(medians.to_numpy(float))
    at = np.log([PAGE_BYTES, size])
    page, found = np.interp(at, sizes, times) + np.maximum(at - sizes[-1], 0.0)
    return float(np.exp(found - page))


def _buffers(attrs: Mapping[str, Any]) -> dict[float, int]:
    """How many buffers of which size a run allocates: its results, but for what takes an argument's place, and one
    for all temporaries; those of less than a page cost nothing that could be seen."""
    fresh = float(attrs.get("output_bytes", 0.0))
    sizes = sorted((float(size) for size in attrs.get("outputs", [fresh])), reverse=True)
    # Which of the results take an argument's place is not told, only how much is left.
    kept: list[float] = []
    for size in sizes:
        if sum(kept) + size <= fresh * 1.001:
            kept.append(size)
    counted = Counter(size for size in [*kept, float(attrs.get("temporary_bytes", 0.0))] if size >= PAGE_BYTES)
    return dict(sorted(counted.items())[-MOST_SIZES:])
