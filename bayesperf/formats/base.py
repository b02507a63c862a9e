"""What a format is, what an importer is given, and what it hands back.

An importer is a function from a `Source` to a `Parsed`: it knows one tool's output, its units and its conventions, and
nothing about targets on disk, Parquet or the quality gate. A row that carries no measurement (an error row, ``N/A``, a
skipped benchmark) is tallied with its reason and is never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.schema import add_flag

if TYPE_CHECKING:
    import pandas as pd

    from bayesperf.formats.source import Source

__all__ = ["MAX_ROWS", "Format", "Options", "Parsed", "Tally", "flag", "unrecognised"]

MAX_ROWS = 250_000
"""Rows taken from one file of a tool; none of them prints nearly as many, so more means a hostile or wrong file."""

EXAMPLES = 5
LONG_NOTE = 300


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says of a file, where the file itself does not.

    Parameters
    ----------
    op
        Operation, where the tool's output leaves it open (which collective an nccl-tests table is of).
    dtype
        Element type, where the output leaves it open.
    n_devices
        Ranks, where the output leaves them open (OSU).
    buffer_bytes
        Copy size of nvbandwidth's text output, which does not print it.
    statistic
        ``mean``, ``min`` or ``max`` of tools that print several; the tool's central one when absent.
    mapping
        TOML file that describes a generic table.
    """

    op: str | None = None
    dtype: str | None = None
    n_devices: int | None = None
    buffer_bytes: int | None = None
    statistic: str | None = None
    mapping: Path | None = None


class Tally:
    """Counts of what was seen, by reason, with the first few examples of each."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.examples: dict[str, list[str]] = {}

    def add(self, reason: str, detail: str, line: int | None = None) -> None:
        """Count one; `detail` and its line are kept if it is among the first."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        kept = self.examples.setdefault(reason, [])
        if len(kept) < EXAMPLES:
            where = "" if line is None else f"line {line}: "
            text = where + detail
            kept.append(text if len(text) <= LONG_NOTE else text[: LONG_NOTE - 3] + "...")

    def __bool__(self) -> bool:
        return bool(self.counts)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """JSON-able: {reason: {count, examples}}."""
        return {reason: {"count": n, "examples": self.examples[reason]} for reason, n in self.counts.items()}


@dataclass(slots=True)
class Parsed:
    """Rows of one file and what was noticed on the way.

    Parameters
    ----------
    rows
        One dict per measurement in the contract's columns, without target, device, campaign and provenance. The key
        ``device_name`` holds the device as the tool spells it.
    frame
        The same as a table, from importers that are columnar; then `rows` stays empty.
    skipped
        Rows of the file that carry no measurement, by reason.
    notes
        What the reader should know: assumptions made, disagreements found.
    tool_version
        Version of the tool, where the file says.
    facts
        Further JSON-able facts for provenance; no host or user names.
    specs
        Ceilings the file itself states of a device: {device_name: {spec-sheet column: value}}.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    frame: pd.DataFrame | None = None
    skipped: Tally = field(default_factory=Tally)
    notes: Tally = field(default_factory=Tally)
    tool_version: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    specs: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any], line: int | None = None) -> dict[str, Any] | None:
        """Take a row if it carries a measurement, else tally why not.

        Raises
        ------
        InputError
            The file has more than `MAX_ROWS` rows.
        """
        time = row["time_s"]
        if not (math.isfinite(time) and time > 0):
            self.skipped.add("no time", f"{row.get('op')}: a time of {time:g} s is no measurement", line)
            return None
        for name in ("flops", "bytes"):
            if not (math.isfinite(row[name]) and row[name] >= 0):
                self.skipped.add("bad work", f"{row.get('op')}: {name} would be {row[name]:g}", line)
                return None
        if len(self.rows) >= MAX_ROWS:
            raise InputError(f"more than {MAX_ROWS} rows in one file; split it, or use the generic format")
        kept = {name: value for name, value in row.items() if value is not None}
        self.rows.append(kept)
        return kept

    def count(self) -> int:
        """Rows taken."""
        return len(self.rows) if self.frame is None else len(self.frame)


def flag(row: dict[str, Any] | None, label: str) -> None:
    """Add a flag to a row that was taken."""
    if row is not None:
        row["flags"] = add_flag(row.get("flags"), label)


@dataclass(frozen=True, slots=True)
class Format:
    """One tool's output.

    Parameters
    ----------
    name
        Name on the command line.
    tool
        What writes it.
    version
        Of this importer: raised when the same file would give other rows.
    looks_for
        What a file is recognised by, for the message that refuses one.
    recognises
        Whether a file looks like this format; reads a bounded part of it.
    parse
        File to rows.
    uses
        Names of the `Options` it heeds; any other given one is refused, not ignored.
    """

    name: str
    tool: str
    version: int
    looks_for: str
    recognises: Callable[[Source], bool]
    parse: Callable[[Source, Options], Parsed]
    uses: tuple[str, ...] = ()


def unrecognised(source: Source, form: Format, *, detail: str = "") -> UnsupportedFileError:
    """The refusal of a file, naming what was looked for."""
    more = f" ({detail})" if detail else ""
    return UnsupportedFileError(
        f"{source.path}: not recognised as {form.tool} output{more}; looked for {form.looks_for}"
    )
