"""nvbandwidth: text and JSON, versions 0.1 to 0.8 and later.

Every cell of a matrix becomes a row. Bandwidths are in GB/s of 1e9 bytes, of one copy of the buffer (a copy inside one
device therefore moves twice that through its memory); latencies are in ns. The tool prints no times: a row's time is
bytes over rate, and its ``time_source`` says so. Text does not print the buffer size: `Options.buffer_bytes`, else the
release's default (64 MiB up to 0.2, then 512 MiB), with a note.

Unmeasured pairs (``N/A``, the 0.00 diagonal of old releases, waived tests) are tallied. ``Total`` matrices are sums of
two others and are left out. A ``SUM`` that disagrees with its matrix is reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bayesperf.formats.base import Format, Options, Parsed, unrecognised
from bayesperf.formats.jsonio import items, mapping, text
from bayesperf.formats.nvbandwidth_rows import Case, emit
from bayesperf.formats.source import Source
from bayesperf.formats.units import BadValueError, whole

__all__ = ["FORMAT"]

_RUNNING = re.compile(r"Running\s+([a-z][\w]{2,80})\.?")
_TITLE = re.compile(r".{0,80}\b(bandwidth|latency)\b.{0,60}\((GB/s|ns)\):?", re.I)
_COLUMNS = re.compile(r"\s*[0-9]{1,4}(?:\s+[0-9]{1,4})*\s*")
_SUM = re.compile(r"SUM\s+([a-z]\w{2,80})\s+(\S{1,30})")
_DEVICE = re.compile(
    r"(?:Process [0-9 ]+\([^)]{0,80}\):\s+)?[Dd]evice\s+([0-9]{1,5}):\s+(.{1,120}?)"
    r"(?:\s+\([0-9A-Fa-f:.]{7,20}\))?(?:\s*:\s*\(.*)?"
)
_STACK = re.compile(r"(CUDA Runtime Version|Driver Version):\s*([0-9][0-9.]{0,20})")


@dataclass(slots=True)
class State:
    """Where in the log we are."""

    name: str | None = None
    case: Case | None = None
    columns: list[int] | None = None
    devices: dict[int, str] = field(default_factory=dict)
    stack: dict[str, str] = field(default_factory=dict)
    run: int = 1
    seen: bool = False


def recognises(source: Source) -> bool:
    """Whether the banner, a test or the JSON key of the tool is near the beginning."""
    head = source.beginning
    if '"nvbandwidth"' in head or "nvbandwidth Version" in head:
        return True
    return bool(re.search(r"^Running \w+_(?:memcpy|copy|latency|write|read)\w*\.", head, re.M)) and "(GB/s)" in head


def parse(source: Source, options: Options) -> Parsed:
    """Read every test of a log, or of the JSON documents.

    Raises
    ------
    UnsupportedFileError
        No test of the tool.
    """
    if '"nvbandwidth"' in source.beginning:
        return _parse_json(source, options)
    parsed, state, cases = Parsed(), State(), 0
    for line in source.lines():
        cases += _line(parsed, state, line.text.strip(), line.number, options)
    _finish(parsed, state, options)
    if not cases:
        raise unrecognised(source, FORMAT)
    return parsed


def _line(parsed: Parsed, state: State, content: str, number: int, options: Options) -> int:
    if match := _RUNNING.fullmatch(content):
        _finish(parsed, state, options)
        state.name = match[1]
        return 1
    if match := re.fullmatch(r"nvbandwidth Version:\s*v?(\S{1,20})", content):
        _finish(parsed, state, options)
        if parsed.tool_version is not None:
            # A further run of the tool in the same log.
            state.run, state.devices = state.run + 1, {}
        parsed.tool_version = match[1]
    elif match := _DEVICE.fullmatch(content):
        state.devices[len(state.devices)] = match[2]
    elif match := _STACK.fullmatch(content):
        state.stack[match[1]] = match[2]
    elif content.startswith("Waived"):
        parsed.skipped.add("waived", state.name or content, number)
        state.seen = True
    elif state.name and _TITLE.fullmatch(content):
        _close(parsed, state, options)
        state.case = Case(state.name, content, number, state.run, devices=state.devices, stack=_stack(state.stack))
        state.columns = None
    elif match := _SUM.fullmatch(content):
        if state.case is not None and match[1].startswith(state.case.name):
            state.case.total = match[2]
    elif state.case is not None and state.columns is None and _COLUMNS.fullmatch(content):
        state.columns = [int(cell) for cell in content.split()]
    elif state.case is not None and state.columns is not None:
        _matrix_line(parsed, state, content, number)
    return 0


def _matrix_line(parsed: Parsed, state: State, content: str, number: int) -> None:
    case, columns, cells = state.case, state.columns, content.split()
    assert case is not None
    assert columns is not None
    if not cells or not re.fullmatch(r"[0-9]{1,4}", cells[0]):
        if content.startswith(("ERROR", "[CUDA", "error")):
            parsed.skipped.add("error", f"{case.name}: {content[:100]}", number)
        return
    if len(cells) != len(columns) + 1:
        parsed.skipped.add(
            "unreadable row", f"{case.name}: {len(cells) - 1} values under {len(columns)} columns", number
        )
        case.damaged = True
        return
    for column, cell in zip(columns, cells[1:], strict=True):
        case.cells.append((int(cells[0]), column, cell, number))


def _close(parsed: Parsed, state: State, options: Options) -> None:
    if state.case is not None:
        emit(parsed, state.case, options)
        state.seen = True
    state.case = None


def _finish(parsed: Parsed, state: State, options: Options) -> None:
    _close(parsed, state, options)
    if state.name and not state.seen:
        parsed.notes.add("cut off", f"{state.name}: no matrix")
    state.name = state.columns = None
    state.seen = False


def _stack(stack: dict[str, str]) -> str | None:
    names = {"CUDA Runtime Version": "cuda", "Driver Version": "driver"}
    return "-".join(f"{short}-{stack[name]}" for name, short in names.items() if name in stack) or None


def _parse_json(source: Source, options: Options) -> Parsed:
    parsed, cases = Parsed(), 0
    for run, document in enumerate(source.documents(("nvbandwidth",)), 1):
        root = mapping(document.get("nvbandwidth"))
        parsed.tool_version = text(root.get("version")) or parsed.tool_version
        stack = {
            k: str(root[k])[:20]
            for k in ("CUDA Runtime Version", "Driver Version")
            if isinstance(root.get(k), str | int)
        }
        devices = _json_devices(root)
        buffer = _buffer(root)
        for failure in (text(root.get("error")), text(root.get("warning"))):
            if failure:
                parsed.notes.add("error", failure)
        for case in items(root.get("testcases")):
            cases += 1
            _json_case(parsed, case, run, devices, _stack(stack), buffer, options)
    if not cases:
        raise unrecognised(source, FORMAT)
    return parsed


def _json_devices(root: dict[str, Any]) -> dict[int, str]:
    devices = {}
    listed = root.get("GPU Device list") or mapping(root.get("GPU Device info")).get("GPU Device list")
    for at, entry in enumerate(listed if isinstance(listed, list) else []):
        name = re.sub(r"^[0-9]+:\s*", "", entry) if isinstance(entry, str) else ""
        devices[at] = re.sub(r"\s*(?:\((?:PCI:)?[0-9A-Fa-f:.]{7,20}\)|:\s*\(.*).*$", "", name)[:120]
    return devices


def _buffer(root: dict[str, Any]) -> int | None:
    try:
        size = whole(root.get("bufferSize"))
    except BadValueError:
        return None
    # Releases print it in MiB, as the option takes it.
    return size * 2**20 if 0 < size < 2**20 else size if size > 0 else None


def _json_case(
    parsed: Parsed,
    case: dict[str, Any],
    run: int,
    devices: dict[int, str],
    stack: str | None,
    buffer: int | None,
    options: Options,
) -> None:
    name, status = text(case.get("name")) or "?", text(case.get("status")) or "?"
    matrix = case.get("bandwidth_matrix")
    if status != "Passed" or not isinstance(matrix, list):
        reason = "waived" if status == "Waived" else "error"
        parsed.skipped.add(reason, f"{name}: {status} {text(case.get('error')) or ''}".strip())
        return
    title = text(case.get("bandwidth_description")) or ""
    total = case.get("sum")
    built = Case(name, title, None, run, devices=devices, stack=stack, buffer=buffer, total=total)
    for at, row in enumerate(matrix):
        if isinstance(row, list):
            built.cells += [(at, column, cell, None) for column, cell in enumerate(row)]
    emit(parsed, built, options)


FORMAT = Format(
    name="nvbandwidth",
    tool="nvbandwidth",
    version=1,
    looks_for="'Running NAME.' followed by a matrix titled '... bandwidth (GB/s)', or JSON with the key 'nvbandwidth'",
    recognises=recognises,
    parse=parse,
    uses=("buffer_bytes",),
)
