"""The evidence appendix: which measurements a number rests on, and what each of them saw."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.configurations import records
from bayesperf.report.words import configuration, number, quantity
from bayesperf.schema import COLUMNS, SHAPE_COLUMNS
from bayesperf.store import provenance_of

__all__ = ["Evidence", "flatten"]

MOST_ROWS = 4000
"""Measurements shown in full; a report stays a document that a browser opens."""

MOST_SAMPLES = 24
"""Raw samples shown of one measurement; all are in the table."""

_TOLD = {c.name for c in COLUMNS} | set(SHAPE_COLUMNS)

_LINKS = ("campaign", "stack", "process", "point_id", "hlo_hash")
"""What leads from a measurement to where it comes from, beside its provenance record."""


@dataclass
class Evidence:
    """Collects the sets of measurements that numbers cite, and describes each measurement once.

    Parameters
    ----------
    table
        All measurements at hand, fitted and held out.
    """

    table: pd.DataFrame
    records: dict[str, dict[str, Any]] = field(init=False)
    _sets: dict[frozenset[str], str] = field(default_factory=dict)
    _described: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.records = provenance_of(self.table)
        # pandas copies attributes (provenance: thousands of records) deeply with whatever it is asked.
        self.table = self.table.copy(deep=False)
        self.table.attrs = {}

    def cite(self, identifiers: Iterable[str]) -> str | None:
        """Return the tag of a set of measurement ids, such as ``E3``; equal sets share one. None for no ids."""
        key = frozenset(map(str, identifiers))
        if not key:
            return None
        return self._sets.setdefault(key, f"E{len(self._sets) + 1}")

    def sets(self) -> list[dict[str, Any]]:
        """Every set cited so far: tag, ids in the table's order, and a line that says what they are."""
        if len(self._described) < len(self._sets):
            order = {identifier: at for at, identifier in enumerate(self.table["measurement_id"])}
            for key, tag in self._sets.items():
                if tag not in self._described:
                    self._described[tag] = self._set(key, tag, order)
        return [self._described[tag] for tag in self._sets.values()]

    def _set(self, key: frozenset[str], tag: str, order: Mapping[str, int]) -> dict[str, Any]:
        ids = sorted(key, key=lambda i: (order.get(i, len(order)), i))
        at = [order[i] for i in ids if i in order]
        what = _summary(self._operations[at], self._dtypes[at])
        return {"tag": tag, "ids": [(i, anchor(order.get(i))) for i in ids], "what": what}

    @functools.cached_property
    def _operations(self) -> np.ndarray:
        return self.table["op"].to_numpy(object)

    @functools.cached_property
    def _dtypes(self) -> np.ndarray:
        return self.table["dtype"].to_numpy(object) if "dtype" in self.table else np.full(len(self.table), None)

    @functools.cached_property
    def common(self) -> dict[str, str]:
        """Facts that are the same for all measurements shown, told once, by column."""
        if len(self.table) < 2:
            return {}
        told = {"measurement_id", "provenance_id", "role", *_ALWAYS}
        found = {}
        for name in (str(n) for n in self.table.columns if n not in told and not str(n).startswith("samples")):
            cells = {_cell(value) for value in self.table[name].head(MOST_ROWS)}
            if len(cells) == 1 and (cell := cells.pop()):
                found[name] = cell
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One description per measurement, in the table's order; at most `MOST_ROWS`; without what all share."""
        shown = self.table.head(MOST_ROWS)
        anchors = {key: f"p-{at}" for at, key in enumerate(self.records)}
        return [_describe(at, row, self.common, anchors) for at, row in enumerate(records(shown))]

    @property
    def shown(self) -> int:
        """Measurements that the appendix describes one by one."""
        return min(len(self.table), MOST_ROWS)

    @property
    def left_out(self) -> int:
        """Measurements that the appendix does not describe one by one."""
        return max(0, len(self.table) - MOST_ROWS)

    def provenance(self) -> list[dict[str, Any]]:
        """Provenance records with their anchors, flattened to names and values."""
        return [
            {"id": key, "anchor": f"p-{at}", "facts": flatten(record)}
            for at, (key, record) in enumerate(self.records.items())
        ]


def anchor(at: int | None) -> str | None:
    """Anchor of a measurement by its position: ids come from files and may hold anything."""
    return None if at is None or at >= MOST_ROWS else f"m-{at}"


def _summary(operations: np.ndarray, dtypes: np.ndarray) -> str:
    if not len(operations):
        return "not in the tables at hand"
    found: dict[str, list[Any]] = {}
    for op, dtype in zip(operations, dtypes, strict=True):
        found.setdefault(str(op), []).append(dtype)
    parts = []
    for op, some in found.items():
        names = sorted({name for name in some if isinstance(name, str)})
        parts.append(f"{op} {'/'.join(names)} ({len(some)})".replace("  ", " "))
    shown = ", ".join(parts[:6])
    return shown + (f" and {len(parts) - 6} more operations" if len(parts) > 6 else "")


_ALWAYS = ("target", "op", "dtype", "flops", "bytes", "time_s", "time_se_s", "intercept_s", "statistic")
"""Columns that every description has."""


def _describe(at: int, row: Mapping[str, Any], common: Mapping[str, str], anchors: Mapping[str, str]) -> dict[str, Any]:
    time, error = float(row["time_s"]), row.get("time_se_s")
    rates = []
    if row["flops"]:
        rates.append(quantity(row["flops"] / time, "FLOP/s"))
    if row["bytes"]:
        rates.append(quantity(row["bytes"] / time, "B/s"))
    intercept = row.get("intercept_s")
    return {
        "anchor": anchor(at),
        "id": row["measurement_id"],
        "what": configuration(row),
        "target": row["target"],
        "role": row.get("role") or "fit",
        "time": quantity(time, "s", 4),
        "error": f"± {number(100 * error / time, 2)} %" if isinstance(error, float) and math.isfinite(error) else "",
        "statistic": row.get("statistic") or "",
        "rates": ", ".join(rates),
        "intercept": quantity(intercept, "s") if isinstance(intercept, float) and math.isfinite(intercept) else "",
        "where": [(k, _cell(row[k])) for k in _LINKS if k not in common and _cell(row.get(k))],
        "provenance": _record(row.get("provenance_id"), anchors),
        "flags": row.get("flags") or "",
        "stop_reason": _cell(row.get("stop_reason")) if "stop_reason" not in common else "",
        "samples": _samples(row),
        "further": [
            (k, _cell(v)) for k, v in row.items() if k not in _TOLD and k not in _LINKS and k not in common and _cell(v)
        ],
    }


def _record(name: Any, anchors: Mapping[str, str]) -> dict[str, str] | None:
    """Provenance record of a measurement: where the page describes it."""
    return {"id": f"provenance {name}", "anchor": anchors[name]} if isinstance(name, str) and name in anchors else None


def _samples(row: Mapping[str, Any]) -> dict[str, Any] | None:
    samples, counts = row.get("samples_s"), row.get("samples_iterations")
    if not isinstance(samples, np.ndarray | list) or not len(samples):
        return None
    if not isinstance(counts, np.ndarray | list):
        counts = [1] * len(samples)
    pairs = sorted(zip(counts, samples, strict=True))
    lines: dict[int, list[str]] = {}
    for n, t in pairs[:: max(1, -(-len(pairs) // MOST_SAMPLES))]:
        lines.setdefault(int(n), []).append(quantity(t / n if n else t, "s", 4))
    shown = [f"{n} × {', '.join(times)}" for n, times in lines.items()]  # noqa: RUF001
    if len(pairs) > MOST_SAMPLES:
        shown.append("evenly chosen; all are in the table")
    return {"count": len(samples), "shown": shown}


def _cell(value: Any) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    return number(value, 4) if isinstance(value, float) else str(value)


def flatten(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Flatten nested facts to dotted names and text; what could not be read says ``unknown``."""
    found: list[tuple[str, str]] = []
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found.extend(flatten(value, f"{name}."))
        elif isinstance(value, list | tuple):
            found.append((name, ", ".join(str(v) for v in value) or "none"))
        else:
            found.append((name, "unknown" if value is None else str(value)))
    return found
