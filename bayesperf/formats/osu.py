"""OSU micro-benchmarks: point-to-point, collective and one-sided tests, versions 3 to 7, latencies and bandwidths.

Latencies are in us, bandwidths in MB/s of 1e6 bytes, sizes in bytes. Point-to-point latency is half a round trip. A
bandwidth is over a window of messages in flight, so its time per message is no latency: those are operations of their
own. ``Size`` is one rank's **send** buffer; with `Options.n_devices` it becomes the larger of the two buffers, as in
nccl-tests. The number of ranks is not printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bayesperf.errors import InputError
from bayesperf.formats.base import Format, Options, Parsed, flag, unrecognised
from bayesperf.formats.collectives import COLLECTIVES, size_per_count, traffic
from bayesperf.formats.source import Line, Source
from bayesperf.formats.units import BadValueError, dtype_of, positive_integer, printed, whole

__all__ = ["FORMAT"]

MAX_LISTED = 50

_TITLE = re.compile(r"#\s*OSU\s+(\S{1,30})\s+(.{1,120}?)(?:\s+(?:Test|Benchmark))?\s+v([0-9][0-9A-Za-z.\-]{0,20})\s*")
_HEADER = re.compile(r"#\s*Size\s+(\S.*)|#\s*((?:Avg Latency|Overall)\s*\(us\).*)")
_COLUMN = re.compile(
    r"(Avg Lat(?:ency)?|Min Lat(?:ency)?|Max Lat(?:ency)?|Latency|Overall|Compute|Coll\. Init|MPI_Test|MPI_Wait"
    r"|Pure Comm\.|(?:Bi-)?Bandwidth|P[0-9]{2} Tail (?:Lat|BW))\s*\((us|MB/s|%)\)"
    r"|(MB/s)|(Messages/s)|(Iterations)|(Validation)|(Overlap\(%\))|(Transfer Size|Window)"
)
_ROW = re.compile(r"\s*[0-9]{1,19}(?:\s+\S{1,40}){1,20}\s*")

# What a title's words mean; the first that fits counts.
_ONE_SIDED = (
    ("get accumulate", "get_accumulate"),
    ("fetch and op", "fetch_and_op"),
    ("compare and swap", "compare_and_swap"),
    ("accumulate", "accumulate"),
    ("put", "put"),
    ("get", "get"),
)
_COLLECTIVE = (
    ("reduce scatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("all to all", "all_to_all"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("bcast", "broadcast"),
    ("scatter", "scatter"),
    ("gather", "gather"),
    ("reduce", "reduce"),
    ("barrier", "barrier"),
)
_POINT_TO_POINT = {
    "latency": "send_recv",
    "bandwidth": "send_recv_window",
    "bi directional bandwidth": "send_recv_bidirectional",
    "multiple bandwidth message rate": "send_recv_multi",
    "multi latency": "send_recv_multi_latency",
    "multi threaded latency": "send_recv_threads_latency",
    "multi process latency": "send_recv_processes_latency",
}
"""Whole titles: a further word makes it another test."""


@dataclass(slots=True)
class Run:
    """One test: its title, columns and units."""

    ordinal: int
    title: str
    op: str
    context: dict[str, Any] = field(default_factory=dict)
    columns: list[tuple[str, str]] = field(default_factory=list)
    sized: bool = True
    announced: bool = False
    rows: int = -1


def recognises(source: Source) -> bool:
    """Whether the title of a test is near the beginning."""
    return bool(re.search(r"^\s*#\s*OSU\s+\S+\s+.{1,120}\bv[0-9]", source.beginning, re.M))


def parse(source: Source, options: Options) -> Parsed:
    """Read every test of a log, each a run of its own.

    Raises
    ------
    UnsupportedFileError
        No title and column header of such a test.
    """
    parsed, run, tables, runs = Parsed(), None, 0, 0
    for line in source.lines():
        text = line.text.strip()
        if match := _TITLE.fullmatch(text):
            _cut_off(parsed, run)
            runs += 1
            run = _start(parsed, runs, match, options, line)
        elif run is not None and (match := _HEADER.fullmatch(text)):
            tables += _columns(parsed, run, match, line)
        elif run is not None and run.columns and _ROW.fullmatch(text) and run.sized:
            _row(parsed, run, line, options)
        elif run is not None and run.columns and not run.sized and re.match(r"[0-9]", text):
            _row(parsed, run, line, options)
            run.columns = []
        elif run is not None and text.startswith("#"):
            _context(run, text)
    _cut_off(parsed, run)
    if not tables:
        raise unrecognised(source, FORMAT, detail="a test's title" if runs else "")
    return parsed


def _cut_off(parsed: Parsed, run: Run | None) -> None:
    if run is not None and run.rows == 0:
        parsed.notes.add("cut off", f"{run.title}: a header without rows")


def _start(parsed: Parsed, ordinal: int, match: re.Match[str], options: Options, line: Line) -> Run:
    versions, tests = parsed.facts.setdefault("versions", []), parsed.facts.setdefault("tests", [])
    title = re.sub(r"\s+", " ", match[2])
    for listed, item in ((versions, match[3]), (tests, title)):
        if item not in listed and len(listed) < MAX_LISTED:
            listed.append(item)
    parsed.tool_version = ", ".join(versions)
    op = options.op or operation(match[1], title)
    if op is None:
        op = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
        parsed.notes.add("unknown test", f"{title!r} becomes the operation {op!r}", line.number)
    return Run(ordinal, title, op, {"library": match[1]})


def operation(library: str, title: str) -> str | None:
    """Name of the operation a title describes, or None for a test that is not known.

    One-sided tests put their function where others name the library: ``OSU MPI_Put Latency Test``.
    """
    words = " ".join(re.findall(r"[a-z0-9]+", f"{library} {title}".lower()))
    own = " ".join(re.findall(r"[a-z0-9]+", title.lower()))
    for spelling, op in _ONE_SIDED:
        if f" {spelling} " in f" {words} ":
            both = "_bidirectional" if "bi directional" in words else ""
            return op + (both or ("_window" if "bandwidth" in words else ""))
    for spelling, op in _COLLECTIVE:
        if spelling in own:
            return f"{op}_nonblocking" if "non blocking" in own or "nonblocking" in own else op
    return _POINT_TO_POINT.get(own)


def _context(run: Run, text: str) -> None:
    if match := re.fullmatch(r"#\s*\[ pairs: ([0-9]{1,9}) \](?: \[ window size: ([0-9]{1,9}|varied) \])?.*", text):
        run.context["pairs"] = whole(match[1])
        if match[2] and match[2] != "varied":
            run.context["window"] = whole(match[2])
    elif match := re.fullmatch(r"#\s*Datatype:\s*(\w{1,30})\.?", text):
        run.context["dtype"] = dtype_of(match[1])
    elif match := re.fullmatch(r"#\s*Number of (?:processes|ranks):?\s*([0-9]{1,9})", text):
        run.context["ranks"] = whole(match[1])


def _columns(parsed: Parsed, run: Run, match: re.Match[str], line: Line) -> int:
    run.sized = match[1] is not None
    text = match[1] or match[2]
    found, rest = [], text
    for column in _COLUMN.finditer(text):
        found.append((column[1] or column[0], column[2] or ("MB/s" if column[3] else "")))
        rest = rest.replace(column[0], " ", 1)
    if rest.strip() or not found:
        run.columns = []
        parsed.notes.add("unknown columns", f"{run.title}: {text[:120]!r}", line.number)
        return 0
    run.columns = found
    run.rows = 0
    return 1


def _row(parsed: Parsed, run: Run, line: Line, options: Options) -> None:
    cells = line.text.split()
    size_text, values = (cells[0], cells[1:]) if run.sized else ("0", cells)
    if len(values) != len(run.columns):
        problem = f"{len(values)} values under {len(run.columns)} columns"
        parsed.skipped.add("unreadable row", problem, line.number)
        return
    try:
        size = whole(size_text)
        named = {name: (value, unit) for (name, unit), value in zip(run.columns, values, strict=True)}
        row = _measured(run, size, named, options, parsed, line)
    except BadValueError as error:
        parsed.skipped.add("unreadable row", str(error), line.number)
        return
    taken = parsed.add(row, line.number)
    run.rows += 1
    if taken is not None and named.get("Validation", ("pass", ""))[0].lower() not in ("pass", "passed", "-"):
        flag(taken, "wrong-results")
        parsed.notes.add("failed validation", f"{run.op}: {size} bytes", line.number)


def _measured(
    run: Run, size: int, named: dict[str, tuple[str, str]], options: Options, parsed: Parsed, line: Line
) -> dict[str, Any]:
    central = next((n for n in ("Pure Comm.", "Avg Latency", "Avg Lat", "Latency", "Overall") if n in named), None)
    rate = next((n for n in ("Bandwidth", "Bi-Bandwidth", "MB/s") if n in named), None)
    n = options.n_devices or run.context.get("ranks")
    work = _work(run, size, n, parsed, line)
    row: dict[str, Any] = {
        **work,
        "op": run.op,
        "dtype": options.dtype or run.context.get("dtype"),
        "n_devices": None if n is None else float(n),
        "process": str(run.ordinal),
        "library": run.context["library"],
        "pairs": _float(run.context.get("pairs")),
        "window": _float(run.context.get("window")),
    }
    if central is not None:
        if options.statistic not in (None, "mean", "min", "max"):
            raise InputError(f"the statistic {options.statistic!r} is not printed by this tool; give mean, min or max")
        times = {"mean": printed(named[central][0]).scaled(1e-6)}
        for name, short in (("min", "Min Lat"), ("max", "Max Lat")):
            column = next((c for c in named if c.startswith(short)), None)
            if column:
                times[name] = printed(named[column][0]).scaled(1e-6)
                row[f"time_{name}_s"] = times[name].value
        chosen = options.statistic or "mean"
        if chosen not in times:
            raise BadValueError(f"the statistic {chosen!r} is not printed; run the test with -f")
        row |= {"time_s": times[chosen].value, "statistic": chosen, "time_resolution_s": times[chosen].step}
        row["time_source"] = "time"
        for name in ("Overall", "Compute"):
            if name in named and name != central:
                row[f"{name.lower()}_s"] = printed(named[name][0]).value * 1e-6
    elif rate is not None:
        speed = printed(named[rate][0]).scaled(1e6)
        if size == 0 or speed.value <= 0:
            raise BadValueError(f"{size} bytes at {named[rate][0]} MB/s give no time")
        row |= {"time_s": size / speed.value, "statistic": "mean", "time_source": "rate"}
        row["rate_bytes_per_s"] = speed.value
    else:
        raise BadValueError(f"no latency or bandwidth among {', '.join(named)}")
    iterations = named.get("Iterations", named.get("Messages/s"))
    if "Iterations" in named and iterations is not None:
        row["repetitions"] = float(positive_integer(iterations[0], "Iterations"))
    return row


def _work(run: Run, size: int, n: int | None, parsed: Parsed, line: Line) -> dict[str, Any]:
    base = run.op.removesuffix("_nonblocking")
    if base == "barrier" or not run.sized:
        return {"flops": 0.0, "bytes": 0.0, "message_bytes": 0.0}
    message = float(size)
    if base in COLLECTIVES and base not in ("reduce_scatter",) and size_per_count(base, 2) != 1:
        if n is not None:
            message = float(size * n)
        elif not run.announced:
            run.announced = True
            detail = f"{run.op}: message_bytes is one rank's send buffer; name the ranks to get the larger buffer"
            parsed.notes.add("ranks unknown", detail, line.number)
    local = traffic(base, message, n) if base in COLLECTIVES and base != "send_recv" else message
    return {"flops": 0.0, "bytes": local, "message_bytes": message}


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


FORMAT = Format(
    name="osu",
    tool="OSU micro-benchmarks",
    version=1,
    looks_for="a title '# OSU MPI ... Test vN' and a header '# Size  Avg Latency(us)' or '# Size  Bandwidth (MB/s)'",
    recognises=recognises,
    parse=parse,
    uses=("op", "dtype", "n_devices", "statistic"),
)
