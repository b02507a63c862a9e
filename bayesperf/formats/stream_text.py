"""The table that STREAM and its ports print: function, best rate, average, minimum and maximum time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bayesperf.errors import InputError
from bayesperf.formats.base import Format, Options, Parsed, flag, unrecognised
from bayesperf.formats.source import Line, Source
from bayesperf.formats.stream_kernels import Kernel, elements_of, kernel_of, workload
from bayesperf.formats.units import BadValueError, Printed, byte_factor, printed, rate_factor, whole

__all__ = ["Run", "parse_streams"]

_HEADER = re.compile(
    r"\s*Function\s+(?:Best\s+)?Rate\s*\(?\s*((?:[kKMGT]i?)?B/s)\s*\)?"
    r"\s+(Avg|RMS|Average) time\s*(?:\(s\))?\s+Min time\s*(?:\(s\))?\s+Max time\s*(?:\(s\))?\s*"
)
_ROW = re.compile(r"\s*(Copy|Scale|Add|Triad)\s*:?\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*")
_START = re.compile(r"STREAM version|STREAM Benchmark implementation")
_VERSION = re.compile(r"STREAM version \$?\s*Revision:\s*([0-9.]{1,20})")
_ELEMENT = re.compile(r"(?:uses|Assuming)\s+([0-9]{1,2}) bytes per")
_COUNT = re.compile(r"Array size\s*=\s*([0-9]{1,19})\s*(?:\(elements\)|,|$)")
_SIZE = re.compile(r"Array size \((single|double) precision\)\s*=\s*([0-9.]{1,20})\s*([KMG]i?B)\b")
_THREADS = re.compile(r"Number of Threads (?:counted|requested)\s*=\s*([0-9]{1,9})")

CENTRAL = {"Avg": "mean", "Average": "mean", "RMS": "rms"}


@dataclass(slots=True)
class Run:
    """What the lines above a table say of it, and the rows taken from it."""

    ordinal: int
    elements: int | None = None
    exact: bool = True
    element_bytes: int | None = None
    threads: int | None = None
    rate: float = 0.0
    central: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)


def parse_streams(source: Source, options: Options, form: Format) -> Parsed:
    """Read every STREAM-like table of a log, each run apart.

    Raises
    ------
    UnsupportedFileError
        No table with the header of such a tool.
    """
    parsed, run, headers = Parsed(), Run(1), 0
    runs: list[Run] = []
    for line in source.lines():
        if header := _HEADER.fullmatch(line.text):
            headers += 1
            if run.rate:
                run = Run(run.ordinal + 1, run.elements, run.exact, run.element_bytes, run.threads)
            runs.append(run)
            run.rate, run.central = rate_factor(header[1]), CENTRAL[header[2]]
        elif run.rate and (row := _ROW.fullmatch(line.text)):
            _row(parsed, run, row.groups(), line, options)
        elif _START.search(line.text):
            if run.rate:
                run = Run(run.ordinal + 1)
            if version := _VERSION.search(line.text):
                parsed.tool_version = version[1]
        else:
            if run.rows and (_COUNT.search(line.text) or _SIZE.search(line.text)):
                run = Run(run.ordinal + 1)
            _context(parsed, run, line)
    if not headers:
        raise unrecognised(source, form)
    for cut in (r for r in runs if not r.rows):
        parsed.notes.add("cut off", f"run {cut.ordinal}: a table header without rows")
    return parsed


def _context(parsed: Parsed, run: Run, line: Line) -> None:
    text = line.text
    if "Failed Validation" in text or "validation failed" in text.lower():
        for row in run.rows:
            flag(row, "wrong-results")
        parsed.notes.add(
            "failed validation", f"run {run.ordinal}: its results are wrong, so are its times", line.number
        )
        return
    try:
        if match := _COUNT.search(text):
            run.elements, run.exact = whole(match[1]) or None, True
        elif match := _SIZE.search(text):
            dtype = {"single": "float32", "double": "float64"}[match[1]]
            run.element_bytes = {"float32": 4, "float64": 8}[dtype]
            size = printed(match[2]).scaled(byte_factor(match[3]))
            run.elements, run.exact = elements_of(size.value, size.step, dtype)
            if run.exact:
                parsed.notes.add("array size", f"{match[2]} {match[3]} taken as {run.elements} elements", line.number)
        elif match := _ELEMENT.search(text):
            run.element_bytes = whole(match[1])
        elif match := _THREADS.search(text):
            run.threads = whole(match[1])
    except BadValueError as error:
        parsed.notes.add("unreadable header", str(error), line.number)


def _row(parsed: Parsed, run: Run, cells: tuple[str | Any, ...], line: Line, options: Options) -> None:
    kernel = kernel_of(cells[0])
    assert kernel is not None
    try:
        rate = printed(cells[1]).scaled(run.rate)
        average, least, most = (printed(cell) for cell in cells[2:])
        if min(average.value, least.value, most.value) <= 0 or rate.value <= 0:
            raise BadValueError(f"{cells[0]}: a rate or time that is not above zero")
        work = _work(parsed, run, kernel, rate, least, line)
    except BadValueError as error:
        parsed.skipped.add("unreadable row", str(error), line.number)
        return
    total, slack = work["bytes"], 1e-3 if run.exact else 1e-2
    low, high = rate.times(least)
    agrees = low * (1 - slack) <= total <= high * (1 + slack)
    # The rate is the finer print of the best time, whenever the two agree.
    best = total / rate.value if agrees else least.value
    times = {run.central: average.value, "min": best, "max": most.value}
    central = options.statistic or run.central
    if central not in times:
        raise InputError(f"the statistic {central!r} is not printed by this tool; there are: {', '.join(times)}")
    row = parsed.add(
        {
            **work,
            "time_s": times[central],
            "statistic": central,
            **{f"time_{name}_s": value for name, value in times.items() if name != central},
            "time_resolution_s": average.step,
            "rate_bytes_per_s": rate.value,
            "time_source": "rate" if central == "min" and agrees else "time",
            "threads": None if run.threads is None else float(run.threads),
            "process": str(run.ordinal),
        },
        line.number,
    )
    if row is not None:
        run.rows.append(row)
    step = average.step + least.step
    if not agrees or least.value > average.value + step or average.value > most.value + step:
        flag(row, "inconsistent")
        detail = (
            f"{cells[0]}: {total:.6g} bytes in {least.value:g} s is {total / least.value:.6g} B/s, "
            f"but {rate.value:.6g} B/s is printed (min/avg/max {least.value:g}/{average.value:g}/{most.value:g} s)"
        )
        parsed.notes.add("rate and time disagree", detail, line.number)


def _work(parsed: Parsed, run: Run, kernel: Kernel, rate: Printed, least: Printed, line: Line) -> dict[str, Any]:
    per_element = kernel.reads + kernel.writes
    if run.elements is None:
        size = run.element_bytes or 8
        guess = rate.value * least.value / per_element / size
        if not 1 <= guess < 2**53:
            raise BadValueError("no array size is stated, and rate x time gives none")
        estimate = round(guess)
        parsed.notes.add(
            "no array size", f"taken as rate x best time: {estimate} elements of {size} bytes", line.number
        )
        run.exact = False
        return workload(kernel, estimate, "float64" if size == 8 else "float32")
    if run.element_bytes is None:
        # float or double: whichever agrees with rate x time; they differ by two.
        ratio = rate.value * least.value / per_element / run.elements
        run.element_bytes = 4 if ratio < 5.7 else 8
        parsed.notes.add("element size", f"not stated; {run.element_bytes} bytes agree with rate x time", line.number)
    if run.element_bytes not in (4, 8):
        raise BadValueError(f"elements of {run.element_bytes} bytes are neither float nor double")
    if run.elements * per_element * run.element_bytes >= 2**53:
        raise BadValueError(f"arrays of {run.elements} elements")
    return workload(kernel, run.elements, "float64" if run.element_bytes == 8 else "float32")
