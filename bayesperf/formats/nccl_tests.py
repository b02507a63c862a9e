"""nccl-tests and rccl-tests: text (with and without ``root``, ``#wrong``, per-iteration columns) and JSON.

Times are in us (in ms in the tests of NCCL 1, headed ``bytes N type op``), bandwidths in GB/s of 1e9 bytes;
``algbw`` is size over time, ``busbw`` that times a factor of the collective and the number of ranks. Both placements
become rows. ``size`` is the larger of one rank's buffers.

Most releases do not print which collective ran. It is taken from the announcement or command line in the log, else from
what the table shows (columns, root, size over count, busbw over algbw) and, where that leaves two, from the file's
name; what still is ambiguous is refused, naming the option that decides.
"""

from __future__ import annotations

import re

from bayesperf.formats.base import Format, Options, Parsed, unrecognised
from bayesperf.formats.nccl_json import parse_json
from bayesperf.formats.nccl_table import Measured, Table, emit, version_of
from bayesperf.formats.source import Line, Source
from bayesperf.formats.units import BadValueError, dtype_of, printed, whole

__all__ = ["FORMAT"]

_HEADER = re.compile(r"#?\s*(?:size\s+count|bytes\s+N)\s+type\s+.*\balgbw\b.*")
_ROW = re.compile(r"\s*[0-9]{1,19}\s+[0-9]{1,19}\s+[A-Za-z]\w{0,20}\s+\S.*")
_RANK = re.compile(
    r"#\s*Rank\s+([0-9]{1,7})(?:\s+Group\s+([0-9]{1,7}))?\s.*?device\s+[0-9]+\s+\[[^\]]{0,40}\]\s+(.{1,120}?)\s*"
)
_TEST = re.compile(r"\b(\w{3,30})_perf\b")
_OPTIONS = re.compile(r"#\s*nThreads?:?\s+([0-9]{1,6})\s+nGpus:?\s+([0-9]{1,6})\s.*")
_ITERATIONS = re.compile(r"(?<!warmup )(?<!agg )\biters: ([0-9]{1,9})(?:\s+agg iters: ([0-9]{1,9}))?")
_VERSIONS = re.compile(r"#\s*nccl-tests version (\S{1,20})(?:.*nccl-library=([0-9]{1,9}))?.*")
_NCCL = re.compile(r"\b(NCCL|RCCL) version ([0-9][\w.+:\-]{0,40})")

# Most lines of a log are nothing of ours: this is what is cheap to ask of each.
_OURS = re.compile(r"[#0-9]|size\b|bytes\b|.{0,200}(?:_perf\b|CCL version)")

OLD_NAMES = {"bytes": "size", "N": "count", "op": "redop", "delta": "error", "res": "error"}
"""Column names of NCCL 1's own tests, by what they are called since."""

PLACED = ("time", "cputime")
NOT_A_COUNT = ("n/a", "na", "-")


def recognises(source: Source) -> bool:
    """Whether a column header or the JSON keys of the tool are near the beginning."""
    text = source.beginning
    if re.search(r"^#?\s*(?:size\s+count|bytes\s+N)\s+type\s+.*algbw", _unlabelled(text), re.M):
        return True
    return '"alg_bw"' in text or ('"nccl_version"' in text and '"results"' in text)


def _unlabelled(text: str) -> str:
    return re.sub(r"^(?:\[[0-9]+,[0-9]+\]<std(?:out|err)>:\s?|\s*[0-9]{1,6}:\s)", "", text, flags=re.M)


def parse(source: Source, options: Options) -> Parsed:
    """Read every table of a log, or the JSON documents.

    Raises
    ------
    UnsupportedFileError
        No table with the tool's header.
    InputError
        A table whose collective cannot be told.
    """
    if '"alg_bw"' in source.beginning or (source.looks_like_json and '"nccl_version"' in source.beginning):
        return parse_json(source, options, FORMAT)
    parsed, table, tables = Parsed(), Table(), []
    for line in source.lines():
        text = line.text.strip()
        if not _OURS.match(text):
            continue
        if _HEADER.fullmatch(text):
            names = [OLD_NAMES.get(name, name) for name in text.lstrip("#").split()]
            if _layout(names) is None:
                parsed.notes.add("unknown columns", text[:120], line.number)
                continue
            if table.columns:
                table = table.following()
            table.columns = names
            table.unit = 1e-3 if re.search(r"\bbytes\s+N\b", text) else 1e-6
            tables.append(table)
        elif table.columns and _ROW.fullmatch(text):
            _row(parsed, table, line)
        else:
            table = _context(parsed, table, text)
    if not tables:
        raise unrecognised(source, FORMAT)
    for ordinal, found in enumerate(tables, 1):
        emit(parsed, source, found, options, ordinal)
    return parsed


def _layout(names: list[str]) -> tuple[int, int, int] | None:
    """Columns before the first time, columns of one placement, placements; None for columns that are not known."""
    body = names[:-1] if names[-1] == "timestamp" else names
    starts = [at for at, name in enumerate(body) if name in PLACED]
    if len(starts) not in (1, 2):
        return None
    fixed, per = starts[0], (starts[1] if len(starts) == 2 else len(body)) - starts[0]
    measured = body[fixed : fixed + per]
    known = {"size", "count", "type"} <= set(body[:fixed]) and {"algbw", "busbw"} <= set(measured)
    alike = len(starts) == 1 or body[starts[1] :] == measured
    return (fixed, per, len(starts)) if known and alike and len(set(body[:fixed])) == fixed else None


def _context(parsed: Parsed, table: Table, text: str) -> Table:
    if match := _RANK.fullmatch(text):
        if table.columns:
            table = Table(stack=table.stack)
        table.ranks.add((int(match[2] or 0), int(match[1])))
        table.devices[match[3]] = table.devices.get(match[3], 0) + 1
    elif match := _OPTIONS.fullmatch(text):
        if table.columns:
            table = Table(stack=table.stack)
        table.per_process = int(match[1]) * int(match[2])
        if iterations := _ITERATIONS.search(text):
            table.iterations = int(iterations[1]) * int(iterations[2] or 1) or None
    elif match := _VERSIONS.fullmatch(text):
        parsed.tool_version = match[1]
        if match[2]:
            table.stack = f"nccl-{version_of(int(match[2]))}"
    elif match := _NCCL.search(text):
        table.stack = f"{match[1].lower()}-{match[2]}"
    elif match := _TEST.search(text):
        # The announcement and the command line come before their table, the conclusion after it.
        if table.columns and "concluded" not in text:
            table = Table(stack=table.stack)
        table.stated = table.stated or match[1]
    elif match := re.fullmatch(r"#\s*Out of bounds values\s*:\s*([0-9]{1,12})\s+FAILED.*", text):
        parsed.notes.add("failed validation", f"{match[1]} values out of bounds")
    return table


def _row(parsed: Parsed, table: Table, line: Line) -> None:
    names, cells = table.columns, line.text.split()
    layout = _layout(names)
    assert layout is not None
    fixed, per, placements = layout
    # A timestamp is a date and a time.
    tail = 2 if names[-1] == "timestamp" else 0
    lead = cells[:fixed]
    needed = per * placements + tail
    if "redop" in names and len(cells) == fixed - 1 + needed:
        # all_to_all of old releases prints a blank redop.
        lead = [*cells[: names.index("redop")], "", *cells[names.index("redop") : fixed - 1]]
        cells = ["", *cells]
    elif placements == 2 and len(cells) == fixed + per + tail:
        # Trace replays print in-place results only.
        placements = 1
    elif len(cells) != fixed + needed:
        parsed.skipped.add("unreadable row", f"{len(cells)} cells under {len(names)} columns", line.number)
        return
    first = dict(zip(names[:fixed], lead, strict=True))
    for place in range(placements):
        at = fixed + place * per
        values = dict(zip(names[fixed : fixed + per], cells[at : at + per], strict=True))
        where = "in-place" if placements == 1 or place else "out-of-place"
        try:
            table.rows.append(_measured(first, values, where, line, table.unit))
        except (BadValueError, KeyError) as error:
            problem = f"no column {error}" if isinstance(error, KeyError) else str(error)
            parsed.skipped.add("unreadable row", f"{where}: {problem}", line.number)


def _measured(first: dict[str, str], values: dict[str, str], where: str, line: Line, unit: float) -> Measured:
    wrong = next((values[name] for name in ("#wrong", "error") if name in values), "N/A")
    root = first.get("root", "")
    iteration = {
        f"time_{n}_s": printed(values[f"i_{n}"]).value * 1e-6 for n in ("min", "max", "p99") if f"i_{n}" in values
    }
    return Measured(
        line=line.number,
        size=whole(first["size"]),
        count=whole(first["count"]),
        dtype=dtype_of(first["type"]),
        redop=first.get("redop"),
        root=whole(root) if root else None,
        placement=where,
        time=printed(values["time" if "time" in values else "cputime"]).scaled(unit),
        cpu_time="cputime" in values,
        algbw=printed(values["algbw"]).scaled(1e9),
        busbw=printed(values["busbw"]).scaled(1e9),
        wrong=0.0 if wrong.lower() in NOT_A_COUNT else printed(wrong).value,
        spread=printed(values["i_cv%"]).value / 100 if "i_cv%" in values else None,
        extra=iteration,
    )


FORMAT = Format(
    name="nccl-tests",
    tool="nccl-tests (or rccl-tests)",
    version=1,
    looks_for="a table headed '#  size  count  type ... time  algbw  busbw', or JSON with 'nccl_version' and 'results'",
    recognises=recognises,
    parse=parse,
    uses=("op", "n_devices"),
)
