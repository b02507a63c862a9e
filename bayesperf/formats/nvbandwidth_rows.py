"""One test of nvbandwidth: what it measures, and its matrix as rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bayesperf.formats.base import Options, Parsed, flag
from bayesperf.formats.units import BadValueError, Printed, printed

__all__ = ["Case", "emit"]

MIB = 2**20


@dataclass(slots=True)
class Case:
    """One matrix: cells are (row, column, text, line)."""

    name: str
    title: str
    line: int | None
    run: int
    devices: dict[int, str] = field(default_factory=dict)
    stack: str | None = None
    buffer: int | None = None
    total: Any = None
    damaged: bool = False
    cells: list[tuple[int, int, Any, int | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a test's name says."""

    op: str
    latency: bool = False
    corunners: str | None = None
    copies: float = 1.0
    """Buffers moved per measured execution."""
    traffic: float = 1.0
    """Memory traffic of one device over the bytes moved."""


def meaning(name: str, devices: int) -> Meaning | None:
    """What a test measures, by its name; None for one that is not known."""
    name = name.removeprefix("multinode_")
    bidirectional, others = "bidir" in name, max(devices - 1, 1)
    if "latency" in name:
        return Meaning("pointer_chase_host" if name.startswith("host") else "pointer_chase_peer", latency=True)
    if name.startswith("device_local_copy"):
        return Meaning("copy_d2d", traffic=2.0)
    for start, op, opposite in (("host_to_", "copy_h2d", "copy_d2h"), ("device_to_host", "copy_d2h", "copy_h2d")):
        if name.startswith(start):
            return _host(name, op, opposite, bidirectional, others)
    if name.startswith("all_to_host"):
        return _host(name, "copy_d2h", "copy_h2d", bidirectional, others)
    if name.startswith("device_to_device"):
        return Meaning("copy_p2p", corunners="copy_p2p:1" if bidirectional else None)
    if name.startswith("all_to_one"):
        return Meaning("copy_all_to_one", copies=float(others))
    if name.startswith("one_to_all"):
        return Meaning("copy_one_to_all", copies=float(others))
    return None


def _host(name: str, op: str, opposite: str, bidirectional: bool, others: int) -> Meaning:
    # The measured copy runs beside: the same copy of all other devices, and copies in the other direction.
    beside: dict[str, int] = {}
    if "_all_" in f"_{name}":
        beside[op] = others
    if bidirectional:
        beside[opposite] = others + 1 if beside else 1
    return Meaning(op, corunners="+".join(f"{k}:{v}" for k, v in sorted(beside.items())) or None)


def emit(parsed: Parsed, case: Case, options: Options) -> None:
    """Turn a matrix into rows."""
    what = meaning(case.name, len(case.devices))
    if what is None:
        parsed.skipped.add("unknown test", f"{case.name}: {case.title}", case.line)
        return
    if case.name.endswith("_total") or re.search(r"\bTotal\b", case.title):
        parsed.skipped.add("sum of two", f"{case.name}: its total repeats the two directions", case.line)
        return
    if what.latency != ("(ns)" in case.title):
        parsed.skipped.add("unknown unit", f"{case.name}: {case.title!r}", case.line)
        return
    size = 0.0 if what.latency else _buffer(parsed, case, options)
    first, values = len(parsed.rows), []
    for row, column, cell, line in case.cells:
        try:
            value = _value(parsed, case, cell, line)
            if value is None:
                continue
            values.append(value)
            _cell(parsed, case, what, size, value, row, column, line)
        except BadValueError as error:
            case.damaged = True
            parsed.skipped.add("unreadable row", f"{case.name}: {error}", line)
    _check_sum(parsed, case, values, first)


def _value(parsed: Parsed, case: Case, cell: Any, line: int | None) -> Printed | None:
    if isinstance(cell, str) and cell.strip().upper() in ("N/A", "NA", "-", ""):
        parsed.skipped.add("not measured", f"{case.name}: N/A", line)
        return None
    value = printed(cell)
    if value.value == 0:
        parsed.skipped.add("not measured", f"{case.name}: 0 stands for a pair that was not measured", line)
        return None
    if value.value < 0:
        raise BadValueError(f"{cell!r} is negative")
    # JSON prints six significant digits.
    return value if value.step else Printed(value.value, 1e-6 * value.value)


def _buffer(parsed: Parsed, case: Case, options: Options) -> float:
    if options.buffer_bytes or case.buffer:
        return float(options.buffer_bytes or case.buffer or 0)
    match = re.match(r"v?0\.([0-9]{1,3})", parsed.tool_version or "")
    default = 64 * MIB if match and int(match[1]) <= 2 else 512 * MIB
    if "buffer size" not in parsed.notes.counts:
        detail = (
            f"not printed; taken as the release's default of {default // MIB} MiB: give buffer_bytes if -b was used"
        )
        parsed.notes.add("buffer size", detail)
    return float(default)


def _cell(
    parsed: Parsed,
    case: Case,
    what: Meaning,
    size: float,
    value: Printed,
    row: int,
    column: int,
    line: int | None,
) -> None:
    engine = re.search(r"_(ce|sm)$", case.name)
    access = re.search(r"_(read|write)[12]?_", f"{case.name}_")
    moved = size * what.copies
    peer = what.op.startswith(("copy_p2p", "pointer_chase_peer"))
    name = case.devices.get(column) or case.devices.get(0)
    parsed.add(
        {
            "op": what.op,
            "flops": 0.0,
            "bytes": moved * what.traffic,
            "time_s": value.value * 1e-9 if what.latency else moved / (value.value * 1e9),
            "statistic": "median",
            "time_source": "time" if what.latency else "rate",
            "time_resolution_s": value.step * 1e-9 if what.latency else None,
            "message_bytes": None if what.latency or what.op == "copy_d2d" else moved,
            "working_set_bytes": None if what.latency else moved,
            "n_devices": 2.0 if peer else None,
            "corunners": what.corunners,
            "rate_bytes_per_s": None if what.latency else value.value * 1e9,
            "testcase": case.name,
            "engine": engine[1] if engine else None,
            "access": access[1] if access else None,
            "direction": _direction(case.title),
            "row": float(row),
            "column": float(column),
            "stack": case.stack,
            "process": str(case.run),
            "device_name": name,
            "device_count": max(len(case.devices), 1),
        },
        line,
    )


def _direction(title: str) -> str | None:
    match = re.search(r"\b(Read[12]|Write[12])\b", title)
    return match[1].lower() if match else None


def _check_sum(parsed: Parsed, case: Case, values: list[Printed], first: int) -> None:
    if case.total is None:
        return
    try:
        total = printed(case.total)
    except BadValueError as error:
        parsed.notes.add("sum disagrees", f"{case.name}: SUM {error}", case.line)
        return
    computed = sum(v.value for v in values)
    slack = sum(v.step for v in values) / 2 + total.step / 2 + 1e-5 * abs(total.value)
    if abs(computed - total.value) > slack:
        detail = f"{case.name}: SUM is {total.value:g}, its cells add up to {computed:g}"
        if case.damaged:
            detail += " (cells of this matrix could not be read)"
        parsed.notes.add("sum disagrees", detail, case.line)
        for row in parsed.rows[first:]:
            flag(row, "sum-disagrees")
