"""The evidence appendix: which measurements a number rests on, and what each of them saw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.report.words import configuration, interval, number, quantity, records
from bayesperf.schema import COLUMNS, SHAPE_COLUMNS
from bayesperf.store import provenance_of

__all__ = ["Evidence", "flatten"]

MOST_ROWS = 4000
"""Measurements shown in full; a report stays a document that a browser opens."""

MOST_SAMPLES = 64
"""Raw samples shown of one measurement; all are in the table."""

_TOLD = {c.name for c in COLUMNS} | set(SHAPE_COLUMNS)


@dataclass
class Evidence:
    """Collects the sets of measurements that numbers cite, and describes each measurement once.

    Parameters
    ----------
    table
        All measurements at hand, fitted and held out.
    """

    table: pd.DataFrame
    _sets: dict[frozenset[str], str] = field(default_factory=dict)

    def cite(self, identifiers: Iterable[str]) -> str | None:
        """Return the tag of a set of measurement ids, such as ``E3``; equal sets share one. None for no ids."""
        key = frozenset(map(str, identifiers))
        if not key:
            return None
        return self._sets.setdefault(key, f"E{len(self._sets) + 1}")

    def sets(self) -> list[dict[str, Any]]:
        """Every set cited so far: tag, ids in the table's order, and a line that says what they are."""
        order = {identifier: at for at, identifier in enumerate(self.table["measurement_id"])}
        found = []
        for key, tag in self._sets.items():
            ids = sorted(key, key=lambda i: (order.get(i, len(order)), i))
            rows = self.table.iloc[[order[i] for i in ids if i in order]]
            found.append({"tag": tag, "ids": [(i, anchor(order.get(i))) for i in ids], "what": _summary(rows)})
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One description per measurement, in the table's order; at most `MOST_ROWS`."""
        return [_describe(at, row) for at, row in enumerate(records(self.table.head(MOST_ROWS)))]

    @property
    def left_out(self) -> int:
        """Measurements that the appendix does not describe one by one."""
        return max(0, len(self.table) - MOST_ROWS)

    def provenance(self) -> list[dict[str, Any]]:
        """Provenance records with their anchors, flattened to names and values."""
        return [
            {"id": key, "anchor": f"p-{at}", "facts": flatten(record)}
            for at, (key, record) in enumerate(provenance_of(self.table).items())
        ]


def anchor(at: int | None) -> str | None:
    """Anchor of a measurement by its position: ids come from files and may hold anything."""
    return None if at is None or at >= MOST_ROWS else f"m-{at}"


def _summary(rows: pd.DataFrame) -> str:
    if rows.empty:
        return "not in the tables at hand"
    parts = []
    for op, group in rows.groupby("op", sort=False):
        dtypes = sorted({d for d in group["dtype"] if isinstance(d, str)}) if "dtype" in group else []
        parts.append(f"{op} {'/'.join(dtypes)} ({len(group)})".replace("  ", " "))
    shown = ", ".join(parts[:6])
    return shown + (f" and {len(parts) - 6} more operations" if len(parts) > 6 else "")


def _describe(at: int, row: Mapping[str, Any]) -> dict[str, Any]:
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
        "where": [(k, row[k]) for k in ("campaign", "stack", "process", "provenance_id") if row.get(k) is not None],
        "flags": row.get("flags") or "",
        "stop_reason": row.get("stop_reason") or "",
        "samples": _samples(row),
        "further": [(k, _cell(v)) for k, v in row.items() if k not in _TOLD and _cell(v)],
    }


def _samples(row: Mapping[str, Any]) -> dict[str, Any] | None:
    samples, counts = row.get("samples_s"), row.get("samples_iterations")
    if not isinstance(samples, np.ndarray | list) or not len(samples):
        return None
    if not isinstance(counts, np.ndarray | list):
        counts = [1] * len(samples)
    pairs = sorted(zip(counts, samples, strict=True))
    shown = [f"{int(n)} × {quantity(t / n if n else t, 's', 4)}" for n, t in pairs[:MOST_SAMPLES]]  # noqa: RUF001
    return {"count": len(samples), "shown": shown, "more": max(0, len(pairs) - MOST_SAMPLES)}


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


def span(row: Mapping[str, Any], unit: str) -> str:
    """Format median and interval of a row that has ``median``, ``lower`` and ``upper``."""
    return interval(float(row["median"]), float(row["lower"]), float(row["upper"]), unit)
