"""Importers: the outputs of tools that people run, as the measurement table.

One module per tool, each a `Format` registered under the entry-point group ``bayesperf.formats``; other people's
packages register theirs the same way. `import_files` does what they share: reading with bounds, target and device,
provenance, the quality gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from bayesperf import plugins
from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.formats.assemble import file_table, with_stated_specs
from bayesperf.formats.base import Format, Options, Parsed
from bayesperf.formats.report import FileReport, ImportReport
from bayesperf.formats.source import Source
from bayesperf.formats.units import BadValueError
from bayesperf.quality import gate
from bayesperf.schema import has_flag
from bayesperf.store import provenance_id, with_provenance

__all__ = ["Format", "ImportReport", "ImportResult", "find_format", "import_files"]

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A measurement table, and what the import did."""

    table: pd.DataFrame
    report: ImportReport


def find_format(name: str) -> Format:
    """Load the format of that name.

    Raises
    ------
    UnknownNameError
        No such format; lists those that are installed, nearest first.
    InputError
        The plug-in is there but is no format.
    """
    known = plugins.available("format")
    # Underscores and capitals are slips, not other formats.
    plain = name.strip().lower().replace("_", "-")
    found = plugins.load("format", plain if plain in known else name)
    if not isinstance(found, Format):
        raise InputError(f"format {name!r}: {found!r} is not a bayesperf.formats.Format; correct its entry point")
    return found


def import_files(
    format: str,
    files: Sequence[str | Path],
    *,
    target: str | None = None,
    device: str | None = None,
    campaign: str | None = None,
    targets: pd.DataFrame | None = None,
    mapping: str | Path | None = None,
    op: str | None = None,
    dtype: str | None = None,
    n_devices: int | None = None,
    buffer_bytes: int | None = None,
    statistic: str | None = None,
) -> ImportResult:
    """Read files of one tool into the measurement table.

    Parameters
    ----------
    format
        Name of the format, or ``auto`` to recognise each file by its contents.
    files
        One or more; the same content given twice is an error.
    target, device, campaign
        Columns of all rows. When absent, target and device are what the file names (else the file's own name), and the
        campaign is the file's date, else the file itself: one file is one collection run.
    targets
        Spec sheets, indexed by device, for the physical ceilings; ceilings that a file states itself serve devices
        without one.
    mapping
        TOML file, for the generic format.
    op, dtype, n_devices, buffer_bytes, statistic
        What a file leaves open; see `bayesperf.formats.base.Options`.

    Returns
    -------
    ImportResult
        The table with flags and provenance, and the report.

    Raises
    ------
    UnknownNameError
        No such format.
    UnsupportedFileError
        A file is not of that format, or holds no measurement.
    TableError, InputError
        A file, a mapping or an option that cannot be used; the message names it.
    """
    paths = [Path(file) for file in ([files] if isinstance(files, str | Path) else files)]
    if not paths:
        raise InputError("nothing to import: name at least one file")
    options = _options(op, dtype, n_devices, buffer_bytes, statistic, mapping)
    chosen = None if format == AUTO else find_format(format)
    read: list[tuple[Source, Format, Parsed]] = []
    for path in paths:
        source = Source(path)
        twice = next((s.path for s, _, _ in read if s.sha256 == source.sha256), None)
        if twice is not None:
            raise InputError(f"{path} has the same content as {twice}; give each measurement once")
        form = chosen or _recognised(source)
        read.append((source, form, _parsed(source, form, options)))
    _check_used(options, [form for _, form, _ in read])
    targets = with_stated_specs(targets, [parsed for _, _, parsed in read])
    tables, reports = [], []
    for source, form, parsed in read:
        table, notes = file_table(
            source, form, parsed, target=target, device=device, campaign=campaign, targets=targets
        )
        for note in notes:
            parsed.notes.add("target", note)
        for reason, entry in source.noise.as_dict().items():
            parsed.skipped.add(reason, f"{entry['count']} lines; {entry['examples'][0]}")
        tables.append(table)
        reports.append(_file_report(source, form, parsed, len(table)))
    joined = _joined(tables)
    joined, quality = gate(joined, targets)
    report = ImportReport(reports, quality)
    return ImportResult(_with_provenance(joined, [len(t) for t in tables], report, options), report)


def _given(options: Options) -> dict[str, Any]:
    return {f.name: getattr(options, f.name) for f in fields(options) if getattr(options, f.name) is not None}


def _check_used(options: Options, forms: list[Format]) -> None:
    """Refuse what would be without effect."""
    for name in _given(options):
        if not any(name in form.uses for form in forms):
            listing = ", ".join(sorted({form.name for form in forms}))
            used = sorted({use for form in forms for use in form.uses}) or ["none"]
            raise InputError(f"{name} has no effect on {listing}; leave it out (options it heeds: {', '.join(used)})")


def _parsed(source: Source, form: Format, options: Options) -> Parsed:
    try:
        return form.parse(source, options)
    except BadValueError as error:
        # A value outside the rows, which importers tally themselves.
        raise UnsupportedFileError(f"{source.path}: {form.tool} output with a value that cannot be: {error}") from error


def _options(
    op: str | None,
    dtype: str | None,
    n_devices: int | None,
    buffer_bytes: int | None,
    statistic: str | None,
    mapping: str | Path | None,
) -> Options:
    for name, value in (("n_devices", n_devices), ("buffer_bytes", buffer_bytes)):
        if value is not None and not (isinstance(value, int) and 0 < value < 2**53):
            raise InputError(f"{name}={value!r}: give a whole number above zero")
    return Options(op, dtype, n_devices, buffer_bytes, statistic, None if mapping is None else Path(mapping))


def _recognised(source: Source) -> Format:
    loaded = {name: form for name, form in plugins.load_all("format").items() if isinstance(form, Format)}
    matching = [name for name, form in loaded.items() if form.recognises(source)]
    if len(matching) == 1:
        return loaded[matching[0]]
    if matching:
        raise UnsupportedFileError(f"{source.path}: looks like several formats: {', '.join(matching)}; name one")
    looked = "; ".join(f"{name}: {form.looks_for}" for name, form in loaded.items() if name != "generic")
    raise UnsupportedFileError(
        f"{source.path}: not recognised; looked for {looked}. A plain table needs a mapping (generic)"
    )


def _file_report(source: Source, form: Format, parsed: Parsed, rows: int) -> FileReport:
    return FileReport(
        file=source.name,
        sha256=source.sha256,
        format=form.name,
        format_version=form.version,
        tool=form.tool,
        tool_version=parsed.tool_version,
        rows=rows,
        skipped=parsed.skipped.as_dict(),
        notes=parsed.notes.as_dict(),
        facts=parsed.facts,
    )


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    for table in tables:
        table.attrs = {}
    if len(tables) == 1:
        return tables[0]
    # Columns that only some files have: absent, not a warning about all-NA columns.
    names = list(dict.fromkeys(name for table in tables for name in table.columns))
    return pd.DataFrame(
        {
            name: pd.concat(
                [t[name] if name in t else pd.Series([None] * len(t), dtype=object) for t in tables], ignore_index=True
            ).infer_objects()
            for name in names
        }
    )


def _with_provenance(table: pd.DataFrame, lengths: list[int], report: ImportReport, options: Options) -> pd.DataFrame:
    records: dict[str, dict[str, Any]] = {}
    ids: list[str] = []
    given = _given(options)
    if options.mapping is not None:
        given["mapping"] = options.mapping.name
    at = 0
    for file, length in zip(report.files, lengths, strict=True):
        part = table.iloc[at : at + length]
        record: dict[str, Any] = {
            "kind": "import",
            "file": file.file,
            "sha256": file.sha256,
            "format": {"name": file.format, "version": file.format_version},
            "tool": file.tool,
            "tool_version": file.tool_version,
            "rows": file.rows,
            # Counts only: examples quote the file, and logs name hosts and people.
            "skipped": {reason: entry["count"] for reason, entry in file.skipped.items()},
            "notes": {reason: entry["count"] for reason, entry in file.notes.items()},
            "facts": file.facts,
            "options": given,
            "rules": [rule | {"rows": int(has_flag(part, rule["flag"]).sum())} for rule in report.quality.rules],
        }
        key = provenance_id(record)
        records[key] = record
        ids += [key] * length
        at += length
    table = table.assign(provenance_id=pd.Series(ids, dtype=object, index=table.index))
    return with_provenance(table, records)
