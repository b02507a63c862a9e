"""From an importer's rows to a checked measurement table: target, device, campaign, provenance."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from bayesperf.errors import TableError, UnsupportedFileError
from bayesperf.formats.base import Format, Parsed
from bayesperf.formats.source import Source
from bayesperf.schema import COLUMNS, validate
from bayesperf.specs import check_targets, slug

__all__ = ["file_table", "match_device", "with_stated_specs"]

VENDORS = {
    "nvidia",
    "amd",
    "intel",
    "google",
    "gpu",
    "tesla",
    "geforce",
    "instinct",
    "graphics",
    "cpu",
    "processor",
    "tm",
    "r",
}
"""Words in a device's name that its key may leave out."""


def match_device(name: str, targets: pd.DataFrame | None) -> str | None:
    """Key of the spec sheet of a device as a tool spells it, or None if none matches or several do."""
    if targets is None:
        return None
    wanted = slug(name)
    if wanted in targets.index:
        return wanted
    words = _words(name)
    found = {str(key) for key in targets.index if _words(str(key)) == words}
    if "name" in targets:
        found |= {str(key) for key, full in targets["name"].items() if isinstance(full, str) and _words(full) == words}
    return found.pop() if len(found) == 1 and words else None


def _words(name: str) -> frozenset[str]:
    return frozenset(slug(name).replace("@", "-").split("-")) - VENDORS


def file_table(
    source: Source,
    form: Format,
    parsed: Parsed,
    *,
    target: str | None,
    device: str | None,
    campaign: str | None,
    targets: pd.DataFrame | None,
) -> tuple[pd.DataFrame, list[str]]:
    """Build the checked table of one file.

    Returns
    -------
    table
        In the contract's columns, without provenance.
    notes
        What was assumed of target and device.

    Raises
    ------
    UnsupportedFileError
        The file holds no measurement; the message says what it holds instead.
    TableError
        A value breaks the contract.
    """
    if not parsed.count():
        seen = ", ".join(f"{reason} ({n})" for reason, n in parsed.skipped.counts.items()) or "a header only"
        raise UnsupportedFileError(f"{source.path}: {form.tool} output without any measurement; it holds: {seen}")
    table = parsed.frame if parsed.frame is not None else pd.DataFrame(parsed.rows)
    table, notes = table.copy(), []
    names = table.pop("device_name") if "device_name" in table else pd.Series([None] * len(table), dtype=object)
    counts = table.pop("device_count") if "device_count" in table else pd.Series(1, index=table.index)
    if "target" not in table or target is not None:
        table["target"], basis = _targets(names, counts, source, target)
        notes += basis
    if "device" not in table and device is not None:
        table["device"] = device
    elif "device" not in table and names.notna().any():
        keys = {n: match_device(n, targets) or slug(n) for n in names.dropna().unique()}
        table["device"] = names.map(keys)
    if "campaign" not in table:
        date = parsed.facts.get("date")
        table["campaign"] = campaign or (
            str(date)[:10] if date else f"{slug(source.stem) or 'file'}-{source.sha256[:6]}"
        )
    elif campaign is not None:
        table["campaign"] = campaign
    try:
        return validate(_ordered(table), source=str(source.path)), notes
    except TableError as error:
        # Say the row as the user finds it in the file, where the importer knows it.
        rows = table.attrs.get("rows")
        if rows and error.row is not None and error.row < len(rows):
            raise TableError(error.problem, source=error.source, row=rows[error.row], column=error.column) from None
        raise


def _targets(names: pd.Series, counts: pd.Series, source: Source, target: str | None) -> tuple[Any, list[str]]:
    if target is not None:
        return target, []
    fallback = slug(source.stem) or "target"
    slugs = [
        _sized(slug(str(name)), count) if isinstance(name, str) and slug(name) else fallback
        for name, count in zip(names, counts, strict=True)
    ]
    notes = []
    if fallback in slugs:
        notes.append(
            f"the file does not name its machine; the target {fallback!r} is the file's name: give target to set it"
        )
    return pd.Series(slugs, index=names.index, dtype=object), notes


def _sized(name: str, count: Any) -> str:
    known = isinstance(count, int | float) and math.isfinite(count)
    return f"{name}-x{int(count)}" if known and count > 1 else name


def _ordered(table: pd.DataFrame) -> pd.DataFrame:
    first = [column.name for column in COLUMNS if column.name in table]
    attrs, table = table.attrs, table[[*first, *(c for c in table.columns if c not in first)]]
    table.attrs = attrs
    return table


def with_stated_specs(targets: pd.DataFrame | None, files: list[Parsed]) -> pd.DataFrame | None:
    """Add the ceilings that files state of devices no spec sheet is known of."""
    stated: dict[str, dict[str, float]] = {}
    for parsed in files:
        for name, values in parsed.specs.items():
            if match_device(name, targets) is None and slug(name):
                stated.setdefault(slug(name), values)
    if not stated:
        return targets
    extra = pd.DataFrame([{"device": key, **values} for key, values in stated.items()])
    extra = check_targets(extra, source="ceilings stated by the imported files")
    return extra if targets is None else pd.concat([targets, extra])
