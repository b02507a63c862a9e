"""Any CSV or Parquet table, described by a small TOML file.

::

    [table]                      # how to read the file; all optional
    separator = ";"              # of CSV; found out when absent
    skip_lines = 3               # above the header
    comment = "#"

    [constants]                  # columns that are the same in every row
    op = "matmul"
    target = "a100-node7"

    [columns]                    # contract column = the file's column, or how to get it
    m = "M"
    n = "N"
    k = "K"
    dtype = { column = "type", values = { fp16 = "float16", fp32 = "float32" } }
    time_s = { column = "latency", unit = "ms" }
    flops = { formula = "2 * m * n * k" }
    bytes = { formula = "(m*k + k*n + m*n) * dtype_bytes" }

    [keep]
    columns = ["node"]           # the file's columns kept under their own names

A table that prints a rate and no time: ``time_s = { column = "bw", unit = "GB/s", of = "bytes" }`` takes bytes over
rate (or ``unit = "GFLOP/s", of = "flops"``). Formulas use the columns already built, ``dtype_bytes``, ``+ - * / **``,
``min``, ``max``, ``ceil`` and ``floor``; nothing else is evaluated. Rows whose time is absent are tallied.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.errors import InputError, TableError
from bayesperf.formats.base import Format, Options, Parsed
from bayesperf.formats.formula import evaluate
from bayesperf.formats.generic_read import read
from bayesperf.formats.source import Source
from bayesperf.formats.units import DTYPE_BYTES, BadValueError, byte_factor, printed, rate_factor, time_factor
from bayesperf.schema import COLUMNS, SHAPE_COLUMNS

__all__ = ["FORMAT"]

TEXT = {column.name for column in COLUMNS if column.kind == "text"}
NUMBERS = {column.name for column in COLUMNS if column.kind == "number"} | set(SHAPE_COLUMNS)
REQUIRED = ("op", "flops", "bytes", "time_s")
MAX_MAPPING_BYTES = 2**20
_FLOP_UNITS = {"FLOP": 1.0, "kFLOP": 1e3, "MFLOP": 1e6, "GFLOP": 1e9, "TFLOP": 1e12}


def recognises(source: Source) -> bool:
    """Never by itself: a table needs its mapping."""
    return False


def parse(source: Source, options: Options) -> Parsed:
    """Read a table as its mapping says.

    Raises
    ------
    InputError
        No mapping, or one that does not fit the file; names the entry.
    TableError
        A cell that cannot be read; names file, row and column.
    """
    if options.mapping is None:
        raise InputError(
            f"{source.path}: the generic format needs a mapping file (TOML) that names the table's columns"
        )
    mapping = load_mapping(options.mapping)
    raw, first_row = read(source, _section(mapping, "table"))
    parsed = Parsed()
    frame = build(raw, mapping, source, first_row, parsed)
    parsed.frame = frame
    parsed.facts["mapping"] = Path(options.mapping).name
    return parsed


def load_mapping(path: Path) -> dict[str, Any]:
    """Read a mapping file.

    Raises
    ------
    InputError
        It does not exist, is no TOML, or has an unknown section.
    """
    try:
        if Path(path).stat().st_size > MAX_MAPPING_BYTES:
            raise InputError(f"{path}: a mapping is a small file; this one has more than {MAX_MAPPING_BYTES} bytes")
        mapping = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a TOML file: {error}") from error
    known = ("table", "constants", "columns", "keep")
    unknown = [name for name in mapping if name not in known]
    if unknown or not mapping.get("columns"):
        problem = f"unknown section [{unknown[0]}]" if unknown else "the section [columns] is missing or empty"
        raise InputError(f"{path}: {problem}; a mapping has: {', '.join(f'[{k}]' for k in known)}")
    return mapping


def _section(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    section = mapping.get(name, {})
    if not isinstance(section, dict):
        raise InputError(f"mapping: [{name}] must be a section")
    return section


def build(raw: pd.DataFrame, mapping: dict[str, Any], source: Source, first_row: int, parsed: Parsed) -> pd.DataFrame:
    """Build the contract's columns from the file's, in the order of the mapping."""
    columns: dict[str, pd.Series] = {}
    index = raw.index
    for name, value in _section(mapping, "constants").items():
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise InputError(f"mapping: constant {name!r} must be text or a number")
        columns[name] = pd.Series([str(value) if name in TEXT else value] * len(raw), index=index)
    entries = _section(mapping, "columns")
    # What others are computed from comes first, whatever the order in the file.
    order = sorted(entries, key=lambda n: 2 * ("of" in _entry(n, entries)) + ("formula" in _entry(n, entries)))
    for name in order:
        columns[name] = _column(name, _entry(name, entries), raw, columns, source, first_row)
    keep = _section(mapping, "keep").get("columns", [])
    for name in keep if isinstance(keep, list) else []:
        _has(raw, name, f"[keep] {name!r}", source)
        if str(name) not in columns:
            columns[str(name)] = _either(pd.Series(raw[name]), str(name), source, first_row)
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise InputError(f"mapping: no entry for {', '.join(missing)}; add them under [columns] or [constants]")
    frame = pd.DataFrame(columns, index=index)
    absent = frame["time_s"].isna().to_numpy()
    for at in np.flatnonzero(absent)[:5]:
        parsed.skipped.add("no time", f"row {first_row + int(at)}")
    if absent.sum() > 5:
        parsed.skipped.counts["no time"] = int(absent.sum())
    frame.attrs["first_row"] = first_row
    present = np.flatnonzero(~absent)
    kept: pd.DataFrame = frame.take(list(present))
    kept.attrs["rows"] = (np.flatnonzero(~absent) + first_row).tolist()
    return kept.reset_index(drop=True)


def _entry(name: str, entries: dict[str, Any]) -> dict[str, Any]:
    entry = entries[name]
    if isinstance(entry, str):
        return {"column": entry}
    if not isinstance(entry, dict) or ("column" in entry) == ("formula" in entry):
        raise InputError(
            f"mapping: {name!r} needs either column or formula, such as {{ column = 'latency', unit = 'ms' }}"
        )
    unknown = set(entry) - {"column", "formula", "unit", "of", "values"}
    if unknown:
        raise InputError(
            f"mapping: {name!r} has an unknown key {sorted(unknown)[0]!r}; known: column, formula, unit, of, values"
        )
    return entry


def _column(
    name: str,
    entry: dict[str, Any],
    raw: pd.DataFrame,
    columns: dict[str, pd.Series],
    source: Source,
    first_row: int,
) -> pd.Series:
    if "formula" in entry:
        return pd.Series(evaluate(str(entry["formula"]), _known(columns, len(raw)), name), index=raw.index)
    wanted = entry["column"]
    _has(raw, wanted, repr(name), source)
    values = raw[wanted]
    if isinstance(entry.get("values"), dict):
        values = _translated(values, entry["values"], str(wanted), source, first_row)
    if name in TEXT:
        return pd.Series(values)
    if "unit" not in entry and name not in NUMBERS:
        return _either(values, str(wanted), source, first_row)
    numbers = _numbers(values, str(wanted), source, first_row)
    factor = _factor(name, entry)
    if "of" in entry:
        return _over_rate(name, entry, numbers * factor, columns)
    scaled: pd.Series = numbers * factor
    return scaled


def _either(values: pd.Series, column: str, source: Source, first_row: int) -> pd.Series:
    """A column of the user's own: numbers if all its cells are, else as it is."""
    try:
        return _numbers(values, column, source, first_row)
    except TableError:
        return values


def _numeric(values: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values))


def _has(raw: pd.DataFrame, wanted: Any, what: str, source: Source) -> None:
    if wanted not in raw.columns:
        have = ", ".join(map(str, raw.columns[:20]))
        raise InputError(f"mapping: {what}: {source.path} has no column {wanted!r}; it has: {have}")


def _translated(values: pd.Series, table: dict[str, Any], column: str, source: Source, first_row: int) -> pd.Series:
    text = values.astype(object).map(lambda v: v if v is None or v != v else str(v).strip())
    unknown = text.notna() & ~text.isin(list(table))
    if unknown.any():
        at = int(np.flatnonzero(unknown)[0])
        raise TableError(
            f"{text.iloc[at]!r} is none of the mapping's values: {', '.join(table)}",
            source=str(source.path), row=first_row + at, column=column,
        )  # fmt: skip
    return text.map(table)


def _numbers(values: pd.Series, column: str, source: Source, first_row: int) -> pd.Series:
    """Finite numbers or NaN; anything else is refused by row and column."""
    if _numeric(values) and not pd.api.types.is_bool_dtype(values):
        numbers = values.astype("float64")
        bad = np.flatnonzero(np.isinf(numbers))
        if len(bad):
            raise TableError("not finite", source=str(source.path), row=first_row + int(bad[0]), column=column)
        return numbers
    result = np.full(len(values), np.nan)
    for at, value in enumerate(values):
        if value is None or value is pd.NA or value != value or (isinstance(value, str) and not value.strip()):
            continue
        try:
            result[at] = printed(value if isinstance(value, str | int | float) else str(value)).value
        except BadValueError as error:
            if isinstance(value, str) and value.strip().lower() in ("nan", "na", "n/a", "null", "none", "-"):
                continue
            raise TableError(str(error), source=str(source.path), row=first_row + at, column=column) from None
    return pd.Series(result, index=values.index)


def _factor(name: str, entry: dict[str, Any]) -> float:
    unit = entry.get("unit")
    if unit is None:
        if "of" in entry:
            raise InputError(f"mapping: {name!r} is taken over a rate, so its unit is needed, such as unit = 'GB/s'")
        return 1.0
    unit = str(unit)
    try:
        if "of" in entry:
            match = re.fullmatch(r"([kMGT]?FLOP)S?(?:/s|/sec)?", unit)
            return _FLOP_UNITS[match[1]] if match else rate_factor(unit)
        if name.endswith("_s"):
            return time_factor(unit)
        if unit in _FLOP_UNITS:
            return _FLOP_UNITS[unit]
        if unit in DTYPE_BYTES:
            # A size in elements of a type.
            return float(DTYPE_BYTES[unit])
        return rate_factor(unit) if name.endswith("_per_s") else byte_factor(unit)
    except BadValueError as error:
        raise InputError(f"mapping: {name!r}: {error}") from None


def _over_rate(name: str, entry: dict[str, Any], rate: pd.Series, columns: dict[str, pd.Series]) -> pd.Series:
    amount = entry["of"]
    if amount not in columns:
        raise InputError(f"mapping: {name!r} is {amount!r} over a rate, but there is no entry for {amount!r}")
    return columns[amount].astype("float64") / rate.where(rate > 0)


def _known(columns: dict[str, pd.Series], length: int) -> dict[str, np.ndarray]:
    known = {
        name: values.to_numpy(dtype="float64")
        for name, values in columns.items()
        if name not in TEXT and _numeric(values)
    }
    if "dtype" in columns:
        known["dtype_bytes"] = np.array([DTYPE_BYTES.get(str(v), np.nan) for v in columns["dtype"]], dtype="float64")
    return known


FORMAT = Format(
    name="generic",
    tool="a CSV or Parquet table with a mapping",
    version=1,
    looks_for="a header line (CSV) or a Parquet file, and the columns that the mapping names",
    recognises=recognises,
    parse=parse,
    uses=("mapping",),
)
