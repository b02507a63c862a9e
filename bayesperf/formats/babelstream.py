"""BabelStream (GPU-STREAM): its text and CSV output, from version 2 to 5, MB/s or MiB/s (``--mibibytes``).

Rates are those of the best time; arrays are counted once each. Text prints the array size in MB with one decimal,
CSV the element count. ``--triad-only`` prints the time of all repetitions together, in GB/s. The Init and Read
phases are no kernels (and one release prints them swapped), so they are tallied and left out.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import Any

from bayesperf.errors import InputError
from bayesperf.formats.base import Format, Options, Parsed, flag, unrecognised
from bayesperf.formats.source import Line, Source
from bayesperf.formats.stream_kernels import Kernel, elements_of, kernel_of, workload
from bayesperf.formats.units import BadValueError, Printed, byte_factor, positive_integer, printed, rate_factor, whole

__all__ = ["FORMAT"]

_HEADER = re.compile(r"\s*Function\s+(M(?:i)?Bytes/sec)\s+Min \(sec\)\s+Max\s+Average\s*")
_ROW = re.compile(r"\s*(Copy|Mul|Add|Triad|Dot|Nstream)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*")
_CSV = re.compile(r"\s*(function|phase)\s*([,;\t|])\s*(?:num_times|n_elements)\b")
_RATES = {
    "max_mbytes_per_sec": 1e6,
    "max_mibytes_per_sec": 2.0**20,
    "gbytes_per_sec": 1e9,
    "gibytes_per_sec": 2.0**30,
}
_SIZE = re.compile(r"\s*Array size:\s*([0-9.]{1,20})\s*([KMG]i?B)\b")
_DEVICE = re.compile(r"\s*Using (?:\w+ )?device:?\s+(.{1,120}?)\s*")
# Most lines of a log are nothing of ours: this is what is cheap to ask of each.
_OURS = re.compile(
    r"\s*(?:Function|function|phase|Copy|Mul|Add|Triad|Dot|Nstream|Init|Read|Version|Implementation|Precision|Running"
    r"|Number of|Array size|Using|Runtime|Bandwidth|BabelStream|GPU-STREAM|Validation failed)"
)
_FAILED = re.compile(r"Validation failed")


@dataclass(slots=True)
class Run:
    """What the lines above a table say of it, and the rows taken from it."""

    ordinal: int = 1
    dtype: str | None = None
    elements: int | None = None
    exact: bool = True
    times: int | None = None
    total_s: Printed | None = None
    columns: list[str] = field(default_factory=list)
    separator: str = ""
    rate: float = 0.0
    headed: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)


def recognises(source: Source) -> bool:
    """Whether a banner or a header of the tool is near the beginning."""
    text = source.beginning
    banner = re.search(r"^\s*(BabelStream|GPU-STREAM)\s*$", text, re.M)
    return bool(banner or re.search(_HEADER, text) or re.search(_CSV, text))


def parse(source: Source, options: Options) -> Parsed:
    """Read every table of a log, each run apart.

    Raises
    ------
    UnsupportedFileError
        No table with one of the tool's headers.
    """
    parsed, run, headers = Parsed(), Run(), 0
    for line in source.lines():
        text = line.text
        if not _OURS.match(text):
            continue
        if match := _HEADER.fullmatch(text):
            run, headers = _next(parsed, run, keep=True), headers + 1
            run.rate, run.columns, run.headed = rate_factor(match[1]), [], True
        elif match := _CSV.match(text):
            run, headers = _next(parsed, run, keep=True), headers + 1
            run.separator, run.headed = match[2], match[1] == "function"
            run.columns = [cell.strip().lower() for cell in text.split(run.separator)]
        elif run.columns and run.separator in text:
            _csv_row(parsed, run, line, options)
        elif run.rate and (match := _ROW.fullmatch(text)):
            _text_row(parsed, run, match.groups(), line, options)
        elif re.fullmatch(r"\s*(BabelStream|GPU-STREAM)\s*", text):
            run = _next(parsed, run, keep=False)
            run.facts["banner"] = text.strip()
        else:
            headers += _context(parsed, run, line, options)
    _next(parsed, run, keep=False)
    if not headers:
        raise unrecognised(source, FORMAT)
    return parsed


def _next(parsed: Parsed, run: Run, *, keep: bool) -> Run:
    if not (run.rows or run.columns or run.rate):
        return run
    if run.headed and not run.rows:
        parsed.notes.add("cut off", f"run {run.ordinal}: a table header without rows")
    ordinal = run.ordinal + bool(run.rows)
    if keep and not run.rows:
        # A CSV table of phases belongs to the run whose functions follow.
        return Run(ordinal, run.dtype, run.elements, run.exact, run.times, None, facts=run.facts)
    return Run(ordinal)


def _context(parsed: Parsed, run: Run, line: Line, options: Options) -> int:
    text = line.text
    try:
        if match := re.fullmatch(r"\s*Version:\s*(\S{1,20})\s*", text):
            parsed.tool_version = match[1]
        elif match := re.fullmatch(r"\s*Implementation:\s*(.{1,80}?)\s*", text):
            run.facts["implementation"] = match[1]
            listed = parsed.facts.setdefault("implementations", [])
            if match[1] not in listed and len(listed) < 50:
                listed.append(match[1])
        elif match := re.fullmatch(r"\s*Precision:\s*(float|double)\s*", text):
            run.dtype = {"float": "float32", "double": "float64"}[match[1]]
        elif match := re.fullmatch(r"\s*Running (?:kernels|triad)\s+([0-9]{1,10}) times\s*", text):
            run.times = positive_integer(match[1], "the number of repetitions")
        elif match := re.fullmatch(r"\s*Number of elements:\s*([0-9]{1,19})\s*", text):
            run.elements, run.exact = positive_integer(match[1], "the number of elements"), True
        elif match := _SIZE.match(text):
            _array_size(parsed, run, match, line)
        elif match := _DEVICE.fullmatch(text):
            run.facts["device"] = match[1]
        elif match := re.fullmatch(r"\s*Runtime \(seconds\):\s*(\S+)\s*", text):
            run.total_s = printed(match[1])
        elif match := re.fullmatch(r"\s*Bandwidth \((GB/s|GiB/s)\):\s*(\S+)\s*", text):
            return _triad_only(parsed, run, printed(match[2]).scaled(rate_factor(match[1])), line, options)
        elif re.match(r"\s*(Init|Read):\s+\S+\s+s\b", text):
            parsed.skipped.add("phase", "Init and Read are no kernels", line.number)
        elif _FAILED.search(text):
            for row in run.rows:
                flag(row, "wrong-results")
            parsed.notes.add("failed validation", f"run {run.ordinal}: {text.strip()}", line.number)
    except BadValueError as error:
        parsed.skipped.add("unreadable row", str(error), line.number)
    return 0


def _array_size(parsed: Parsed, run: Run, match: re.Match[str], line: Line) -> None:
    if run.dtype not in ("float32", "float64"):
        raise BadValueError("an array size before 'Precision: float|double'")
    if run.elements is not None and run.exact:
        return
    size = printed(match[1]).scaled(byte_factor(match[2]))
    run.elements, run.exact = elements_of(size.value, size.step, run.dtype)
    if run.exact:
        parsed.notes.add("array size", f"{match[1]} {match[2]} taken as {run.elements} elements", line.number)
    else:
        half = 50 * size.step / size.value
        parsed.notes.add("array size", f"{match[1]} {match[2]} is rounded: bytes are within {half:.2g} %", line.number)


def _text_row(parsed: Parsed, run: Run, cells: tuple[str | Any, ...], line: Line, options: Options) -> None:
    kernel = kernel_of(cells[0])
    assert kernel is not None
    try:
        if run.elements is None or run.dtype is None:
            raise BadValueError("no array size or precision is stated above the table")
        rate = printed(cells[1]).scaled(run.rate)
        least, most, average = (printed(cell) for cell in cells[2:])
        _row(
            parsed, run, kernel, workload(kernel, run.elements, run.dtype), rate, (least, most, average), line, options
        )
    except BadValueError as error:
        parsed.skipped.add("unreadable row", str(error), line.number)


def _csv_row(parsed: Parsed, run: Run, line: Line, options: Options) -> None:
    try:
        cells = [cell.strip() for cell in next(csv.reader([line.text], delimiter=run.separator), [])]
    except csv.Error as error:  # a lone carriage return inside the line
        parsed.skipped.add("unreadable row", str(error), line.number)
        return
    if len(cells) != len(run.columns):
        if kernel_of(cells[0] if cells else ""):
            problem = f"{len(cells)} cells under {len(run.columns)} columns (a decimal comma?)"
            parsed.skipped.add("unreadable row", problem, line.number)
        return
    row = dict(zip(run.columns, cells, strict=True))
    if "phase" in row:
        parsed.skipped.add("phase", f"{row['phase']} is no kernel", line.number)
        return
    kernel = kernel_of(row.get("function", ""))
    rate_column = next((c for c in run.columns if c in _RATES), None)
    if kernel is None or rate_column is None:
        parsed.skipped.add("unreadable row", f"no known function or rate in {line.text[:80]!r}", line.number)
        return
    try:
        dtype = {4: "float32", 8: "float64"}.get(whole(row["sizeof"]))
        if dtype is None:
            raise BadValueError(f"sizeof {row['sizeof']!r} is neither float nor double")
        run.times = positive_integer(row["num_times"], "num_times")
        elements = positive_integer(row["n_elements"], "n_elements")
        if elements >= 2**46:
            raise BadValueError(f"arrays of {elements} elements")
        work = workload(kernel, elements, dtype)
        rate = printed(row[rate_column]).scaled(_RATES[rate_column])
        run.elements, run.dtype, run.exact = elements, dtype, True
        if "runtime" in row:
            run.total_s = printed(row["runtime"])
            _triad_only(parsed, run, rate, line, options)
        else:
            times = (printed(row["min_runtime"]), printed(row["max_runtime"]), printed(row["avg_runtime"]))
            _row(parsed, run, kernel, work, rate, times, line, options)
    except KeyError as error:
        parsed.skipped.add("unreadable row", f"no column {error}", line.number)
    except BadValueError as error:
        parsed.skipped.add("unreadable row", str(error), line.number)


def _triad_only(parsed: Parsed, run: Run, rate: Printed, line: Line, options: Options) -> int:
    kernel = kernel_of("triad")
    assert kernel is not None
    if run.total_s is None or run.times is None or run.elements is None or run.dtype is None:
        raise BadValueError("a triad-only result without runtime, repetitions, elements or precision")
    if options.statistic not in (None, "mean"):
        raise InputError(f"the statistic {options.statistic!r} is not printed by --triad-only; there is: mean")
    work = workload(kernel, run.elements, run.dtype)
    each = run.total_s.scaled(1 / run.times)
    row = parsed.add({**work, **_common(run), "time_s": each.value, "statistic": "mean",
                      "time_resolution_s": each.step, "rate_bytes_per_s": rate.value}, line.number)  # fmt: skip
    if row is not None:
        run.rows.append(row)
        low, high = rate.times(each)
        if not low * 0.999 <= work["bytes"] <= high * 1.001:
            _disagree(parsed, row, work["bytes"], each.value, rate.value, line)
    return 1


def _row(
    parsed: Parsed,
    run: Run,
    kernel: Kernel,
    work: dict[str, Any],
    rate: Printed,
    times: tuple[Printed, Printed, Printed],
    line: Line,
    options: Options,
) -> None:
    least, most, average = times
    if min(rate.value, least.value, most.value, average.value) <= 0:
        raise BadValueError(f"{kernel.op}: a rate or time that is not above zero")
    low, high = rate.times(least)
    slack = 1e-3 if run.exact else 1e-2
    agrees = low * (1 - slack) <= work["bytes"] <= high * (1 + slack)
    best = work["bytes"] / rate.value if agrees else least.value
    by_name = {"mean": average.value, "min": best, "max": most.value}
    central = options.statistic or "mean"
    if central not in by_name:
        raise InputError(f"the statistic {central!r} is not printed by this tool; there are: {', '.join(by_name)}")
    row = parsed.add(
        {
            **work,
            **_common(run),
            "time_s": by_name[central],
            "statistic": central,
            **{f"time_{name}_s": value for name, value in by_name.items() if name != central},
            "time_resolution_s": average.step,
            "rate_bytes_per_s": rate.value,
            "time_source": "rate" if central == "min" and agrees else "time",
        },
        line.number,
    )
    if row is None:
        return
    run.rows.append(row)
    step = least.step + average.step
    if not agrees or least.value > average.value + step or average.value > most.value + step:
        _disagree(parsed, row, work["bytes"], least.value, rate.value, line)


def _common(run: Run) -> dict[str, Any]:
    return {
        "process": str(run.ordinal),
        "implementation": run.facts.get("implementation"),
        "device_name": run.facts.get("device"),
        "repetitions": None if run.times is None else float(run.times),
    }


def _disagree(parsed: Parsed, row: dict[str, Any], total: float, time: float, rate: float, line: Line) -> None:
    flag(row, "inconsistent")
    detail = f"{row['op']}: {total:.6g} bytes in {time:g} s is {total / time:.6g} B/s, but {rate:.6g} B/s is printed"
    parsed.notes.add("rate and time disagree", detail, line.number)


FORMAT = Format(
    name="babelstream",
    tool="BabelStream",
    version=1,
    looks_for="a table headed 'Function  MBytes/sec  Min (sec)  Max  Average', or CSV headed "
    "'function,num_times,n_elements,sizeof,max_mbytes_per_sec,...'",
    recognises=recognises,
    parse=parse,
    uses=("statistic",),
)
