"""mixbench: its CSV, with or without the device header, of releases 0.01 to 0.04 on CUDA, HIP, OpenCL, SYCL and CPU.

Each line holds up to four precisions. Times are in ms, rates in 1e9 per second. Releases print one of two column sets:
``Compute iters, Flops/byte, ex.time, GFLOPS, GB/sec`` per precision, or the older ``compute/memory, Time, GFLOPS,
GB/sec`` (commas or semicolons). Current releases print the best of several launches, older ones a single launch.

Bytes are the same in all lines of a run and precision (a buffer read once), except in the ``alternating`` kernels: they
are taken as the one number that all lines agree with within their rounding, else line by line as rate x time.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bayesperf.formats.base import Format, Options, Parsed, flag, unrecognised
from bayesperf.formats.source import Line, Source
from bayesperf.formats.units import BadValueError, Printed, number, printed

__all__ = ["FORMAT"]

_DTYPES = {"single": "float32", "double": "float64", "half": "float16", "integer": "int32"}
_INTENSITY = ("flops/byte", "iops/byte")
_FIRST = ("compute iters", "compute/memory")
_DATA = re.compile(r"\s*[0-9]+\s*(?:/\s*[0-9]+\s*)?[,;]")
_CONTEXT = re.compile(
    r"\s*(Device|Buffer size|L2 cache size|Memory bandwidth|Compute throughput|CUDA driver version):\s*(.{1,120}?)\s*"
)
MB = 2.0**20
"""mixbench's MB of buffers and KB of caches are binary."""


SLACK = 1e-3
"""Relative disagreement that rounding in single precision explains."""


class Cell(NamedTuple):
    """One precision of one line."""

    line: Line
    iterations: str
    intensity: Printed | None
    time: Printed
    gflops: Printed
    rate: Printed


@dataclass(slots=True)
class Run:
    """One table: its columns, and the cells of each precision."""

    ordinal: int
    context: dict[str, str]
    columns: list[str] = field(default_factory=list)
    separator: str = ","
    old: bool = False
    groups: list[tuple[str, int]] = field(default_factory=list)
    cells: dict[str, list[Cell]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)


def recognises(source: Source) -> bool:
    """Whether a column header of the tool is near the beginning."""
    text = source.beginning.lower()
    return any(first in text for first in _FIRST) and "gb/sec" in text


def parse(source: Source, options: Options) -> Parsed:
    """Read every table of a log; a header starts a new run.

    Raises
    ------
    UnsupportedFileError
        No table with one of the tool's headers.
    """
    parsed, names = Parsed(), ""
    runs: list[Run] = []
    context: dict[str, str] = {}
    for line in source.lines():
        text = line.text
        if "precision ops" in text.lower():
            names = text
        elif any(text.strip().lower().startswith(first) for first in _FIRST) and "gb/sec" in text.lower():
            runs.append(_header(Run(len(runs) + 1, dict(context)), names, text))
        elif runs and _DATA.match(text):
            _cells(parsed, runs[-1], line)
        elif match := _CONTEXT.fullmatch(text):
            context[match[1]] = match[2]
        elif match := re.match(r"\s*mixbench(?:[-/]([\w-]{1,40}))?\s*(?:\((v[\w.-]{1,40})\))?", text):
            context = {"variant": match[1] or ""}
            parsed.tool_version = match[2] or parsed.tool_version
    if not any(run.groups for run in runs):
        raise unrecognised(source, FORMAT)
    for run in runs:
        if not run.order:
            parsed.notes.add("cut off", f"table {run.ordinal}: a header without rows")
        _rows(parsed, run)
    return parsed


def _header(run: Run, names: str, text: str) -> Run:
    run.separator = ";" if text.count(";") > text.count(",") else ","
    run.columns = [cell.strip().lower() for cell in text.split(run.separator)]
    run.old = run.columns[0] == _FIRST[1]
    starts = [i for i, c in enumerate(run.columns) if c in (("time",) if run.old else _INTENSITY)]
    found = re.findall(r"(single|double|half|integer)", names.lower())
    if len(found) == len(starts):
        run.groups = list(zip(found, starts, strict=True))
    run.cells = {name: [] for name, _ in run.groups}
    return run


def _cells(parsed: Parsed, run: Run, line: Line) -> None:
    cells = [cell.strip() for cell in line.text.split(run.separator)]
    while len(cells) > len(run.columns) and not cells[-1]:
        cells.pop()
    if len(cells) != len(run.columns):
        problem = f"{len(cells)} cells under {len(run.columns)} columns (a decimal comma, or a torn line?)"
        parsed.skipped.add("unreadable row", problem, line.number)
        return
    try:
        number(cells[0].split("/")[0])
    except BadValueError as error:
        parsed.skipped.add("unreadable row", str(error), line.number)
        return
    run.order.append(cells[0])
    for name, start in run.groups:
        # Unsupported precisions and the all-compute line print 0, inf or nan.
        values = cells[start : start + (3 if run.old else 4)]
        if any(value.lower().lstrip("+-") in ("inf", "nan") for value in values[-3:]):
            parsed.skipped.add("not measured", f"{name}: {', '.join(values)}", line.number)
            continue
        try:
            intensity = None if run.old or values[0].lower() == "inf" else printed(values[0])
            time, gflops, rate = (printed(value) for value in values[-3:])
            if time.value <= 0:
                parsed.skipped.add("not measured", f"{name}: a time of {values[-3]} ms", line.number)
                continue
            cell = Cell(line, cells[0], intensity, time.scaled(1e-3), gflops.scaled(1e9), rate.scaled(1e9))
            if min(gflops.value, rate.value) < 0 or (intensity and intensity.value < 0):
                raise BadValueError("a negative rate")
            run.cells[name].append(cell)
        except BadValueError as error:
            parsed.skipped.add("unreadable row", f"{name}: {error}", line.number)


def _rows(parsed: Parsed, run: Run) -> None:
    repeats = _repeats(parsed, run)
    _ceilings(parsed, run)
    for name, cells in run.cells.items():
        constant = _constant_bytes(run, cells)
        seen: dict[str, int] = {}
        for cell in cells:
            seen[cell.iterations] = seen.get(cell.iterations, 0) + 1
            row = _row(parsed, run, name, cell, constant)
            if row is None:
                continue
            if repeats == "runs":
                row["process"] = f"{run.ordinal}.{seen[cell.iterations]}"
            elif repeats == "interleaved":
                row["repetition"] = float(seen[cell.iterations])
            else:
                row["process"] = str(run.ordinal)


def _repeats(parsed: Parsed, run: Run) -> str:
    """Tell whether one table holds one run, several one after another, or the mixed lines of several."""
    most = max(Counter(run.order).values(), default=0)
    if most <= 1:
        return "one"
    once = list(dict.fromkeys(run.order))
    if run.order == once * most:
        parsed.notes.add("several runs", f"table {run.ordinal} holds {most} runs, one after another")
        return "runs"
    detail = f"table {run.ordinal} holds the mixed lines of up to {most} runs; which run a line is of, it does not say"
    parsed.notes.add("several runs", detail)
    return "interleaved"


def _constant_bytes(run: Run, cells: list[Cell]) -> float | None:
    """Bytes that every line of a precision agrees with, if there are such."""
    spans = [cell.rate.times(cell.time) for cell in cells if cell.rate.value > 0]
    if len(spans) < 3:
        return None
    low, high = max(s[0] for s in spans) * (1 - 1e-9), min(s[1] for s in spans) * (1 + 1e-9)
    if low > high or low <= 0 or not math.isfinite(high):
        return None
    for candidate in _candidates(run, high):
        if low <= candidate <= high:
            return candidate
    return 0.5 * (low + high)


def _candidates(run: Run, high: float) -> Iterable[float]:
    match = re.fullmatch(r"([0-9]{1,7})\s*MB", run.context.get("Buffer size", ""))
    if match:
        yield float(match[1]) * MB
        yield float(match[1]) * MB / 2
    yield 2.0 ** math.floor(math.log2(high))


def _row(parsed: Parsed, run: Run, name: str, cell: Cell, constant: float | None) -> dict[str, Any] | None:
    low, high = cell.rate.times(cell.time)
    if constant is not None:
        total = constant
        # The rate has more digits than a short time: take whichever is finer.
        by_rate = cell.rate.resolution < cell.time.resolution
        seconds = total / cell.rate.value if by_rate else cell.time.value
    else:
        total, seconds, by_rate = cell.rate.value * cell.time.value, cell.time.value, False
    work = cell.gflops.value * seconds
    agrees = low * (1 - SLACK) <= total <= high * (1 + SLACK)
    if cell.intensity is not None and total:
        half, least, most = 0.5 * cell.intensity.step, *cell.gflops.times(cell.time)
        bounds = (total, total) if constant is not None else (low, high)
        stated = (cell.intensity.value - half) * bounds[0], (cell.intensity.value + half) * bounds[1]
        agrees = agrees and stated[0] * (1 - SLACK) <= most and least <= stated[1] * (1 + SLACK)
        work = cell.intensity.value * total if constant is not None else work
    device = run.context.get("Device")
    row = parsed.add(
        {
            "op": "mixbench",
            "dtype": _DTYPES[name],
            "flops": work,
            "bytes": total,
            "time_s": seconds,
            "statistic": "single" if run.old else "min",
            "time_source": "rate" if by_rate else "time",
            "time_resolution_s": cell.time.step,
            "working_set_bytes": total,
            "compute_iterations": number(cell.iterations.split("/")[0]),
            "rate_bytes_per_s": cell.rate.value,
            "rate_flops_per_s": cell.gflops.value,
            "variant": run.context.get("variant") or None,
            "device_name": device,
        },
        cell.line.number,
    )
    if row is not None and not agrees:
        flag(row, "inconsistent")
        intensity = "" if cell.intensity is None else f" at {cell.intensity.value:g} FLOP/byte"
        detail = (
            f"{name}: {cell.gflops.value / 1e9:g} GFLOPS and {cell.rate.value / 1e9:g} GB/sec in "
            f"{cell.time.value * 1e3:g} ms do not fit each other{intensity}"
        )
        parsed.notes.add("rate and time disagree", detail, cell.line.number)
    return row


def _ceilings(parsed: Parsed, run: Run) -> None:
    """Ceilings the header states, for devices without a spec sheet."""
    device, stated = run.context.get("Device"), {}
    for key, column, pattern, factor in (
        ("Memory bandwidth", "bandwidth_bytes_per_s", r"([0-9.]{1,12}) GB/sec", 1e9),
        ("Compute throughput", "peak_flops_float32", r"([0-9.]{1,12}) GFlops.*", 1e9),
        ("L2 cache size", "cache_bytes", r"([0-9]{1,9}) KB", 1024.0),
    ):
        match = re.fullmatch(pattern, run.context.get(key, ""))
        try:
            value = number(match[1]) * factor if match else 0.0
        except BadValueError:
            continue
        if value > 0:
            stated[column] = value
    if device and stated:
        parsed.specs[device] = stated


FORMAT = Format(
    name="mixbench",
    tool="mixbench",
    version=1,
    looks_for="a line headed 'Compute iters, Flops/byte, ex.time,  GFLOPS, GB/sec, ...' (or 'compute/memory, Time, "
    "...') under one naming the precisions ('Single Precision ops')",
    recognises=recognises,
    parse=parse,
)
