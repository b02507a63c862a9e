"""nvbench JSON (``--json`` and ``--jsonbin``), JSON version 1.

Numbers are strings there. Each state gives up to two rows: the *cold* measurement (caches flushed before each launch:
condition ``cold``) and the *batch* one (launches back to back: condition ``hot``). Times are means in seconds; the cold
one has a standard deviation and a sample count. Bytes are the declared global-memory traffic, recovered from the
printed rate; a state that declares none is flagged ``work-unknown``. Skipped states are tallied with their reason.
"""

from __future__ import annotations

import math
import re
from typing import Any

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.formats.base import Format, Options, Parsed, flag, unrecognised
from bayesperf.formats.jsonio import items, mapping, text
from bayesperf.formats.source import Source
from bayesperf.formats.units import DTYPE_BYTES, BadValueError, dtype_of, number, whole

__all__ = ["FORMAT"]

KNOWN_MAJOR = 1

# tag of the time, of its relative deviation, of its sample count; condition
_MEASURES = (
    ("nv/cold/time/gpu/mean", "nv/cold/time/gpu/stdev/relative", "nv/cold/sample_size", "cold"),
    ("nv/batch/time/gpu/mean", None, "nv/batch/sample_size", "hot"),
    ("nv/cpu_only/time/cpu/mean", "nv/cpu_only/time/cpu/stdev/relative", "nv/cpu_only/sample_size", "cold"),
)


def recognises(source: Source) -> bool:
    """Whether the version block of the report is near the beginning."""
    head = source.beginning
    return '"nvbench"' in head and ('"benchmarks"' in head or '"devices"' in head or '"meta"' in head)


def parse(source: Source, options: Options) -> Parsed:
    """Read the reports in a file.

    Raises
    ------
    UnsupportedFileError
        No report, or one of another JSON version.
    """
    if options.statistic not in (None, "mean"):
        raise InputError(f"the statistic {options.statistic!r} is not in this report; there is: mean")
    parsed, found = Parsed(), 0
    for run, document in enumerate(source.documents(("benchmarks",)), 1):
        version = mapping(mapping(document.get("meta")).get("version"))
        written = mapping(version.get("json"))
        if not written or not isinstance(document.get("benchmarks"), list):
            continue
        if written.get("major") != KNOWN_MAJOR:
            raise UnsupportedFileError(
                f"{source.path}: nvbench JSON version {text(written.get('string')) or written.get('major')!r}; "
                f"{KNOWN_MAJOR}.x is read: export it with a release that writes it"
            )
        found += 1
        parsed.tool_version = text(mapping(version.get("nvbench")).get("string"))
        devices = _devices(parsed, document)
        for benchmark in items(document["benchmarks"]):
            for state in items(benchmark.get("states")):
                _state(parsed, benchmark, state, devices, run, options)
    if not found:
        raise unrecognised(source, FORMAT)
    return parsed


def _devices(parsed: Parsed, document: dict[str, Any]) -> dict[int, str]:
    names: dict[int, str] = {}
    for device in items(document.get("devices")):
        name = text(device.get("name"))
        try:
            identity = whole(device.get("id"))
            stated = {
                "bandwidth_bytes_per_s": number(device["global_memory_bus_bandwidth"]),
                "cache_bytes": number(device["l2_cache_size"]),
                "memory_bytes": number(device["global_memory_size"]),
                "parallel_units": number(device["number_of_sms"]),
            }
        except (BadValueError, KeyError):
            stated = {}
            identity = len(names)
        if name:
            names[identity] = name
            if stated and min(stated.values()) > 0:
                parsed.specs[name] = stated
    return names


def _state(
    parsed: Parsed,
    benchmark: dict[str, Any],
    state: dict[str, Any],
    devices: dict[int, str],
    run: int,
    options: Options,
) -> None:
    name = text(benchmark.get("name")) or "benchmark"
    where = f"{name} [{text(state.get('name')) or ''}]"
    if state.get("is_skipped"):
        parsed.skipped.add("skipped", f"{where}: {text(state.get('skip_reason')) or 'no reason given'}")
        return
    summaries = _summaries(state)
    taken = 0
    for tag, deviation, count, condition in _MEASURES:
        if tag not in summaries:
            continue
        try:
            row = _row(name, state, summaries, tag, deviation, count, options)
            row |= {"condition": condition, "process": str(run)}
            device = state.get("device")
            row["device_name"] = devices.get(device) if isinstance(device, int) else None
            added = parsed.add(row)
            taken += added is not None
            if not row["bytes"]:
                flag(added, "work-unknown")
        except BadValueError as error:
            parsed.skipped.add("unreadable row", f"{where}: {error}")
            return
    if not taken:
        parsed.skipped.add("not measured", f"{where}: none of {', '.join(m[0] for m in _MEASURES)}")


def _summaries(state: dict[str, Any]) -> dict[str, Any]:
    """Value by tag: the datum called ``value``."""
    values = {}
    for summary in items(state.get("summaries")):
        tag = text(summary.get("tag"))
        for datum in items(summary.get("data")):
            if tag and datum.get("name") == "value":
                values[tag] = datum.get("value")
    return values


def _row(
    name: str,
    state: dict[str, Any],
    summaries: dict[str, Any],
    tag: str,
    deviation: str | None,
    count: str,
    options: Options,
) -> dict[str, Any]:
    seconds = number(summaries[tag])
    cold = summaries.get("nv/cold/time/gpu/mean", summaries[tag])
    rate = summaries.get("nv/cold/bw/global/bytes_per_second")
    traffic = 0.0 if rate is None else _whole(number(rate) * number(cold))
    row: dict[str, Any] = {
        "op": options.op or re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "benchmark",
        "flops": 0.0,
        "bytes": traffic,
        "time_s": seconds,
        "statistic": "mean",
        "benchmark": name,
    }
    samples = number(summaries[count]) if count in summaries else 0.0
    if samples > 0:
        row["repetitions"] = samples
        if deviation in summaries and samples > 1:
            spread = _spread(summaries[deviation])
            row["time_se_s"] = None if spread is None else spread * seconds / math.sqrt(samples)
    items_rate = summaries.get("nv/cold/bw/item_rate")
    if items_rate is not None:
        row["items"] = _whole(number(items_rate) * number(cold))
    return row | _axes(state, options)


def _spread(value: Any) -> float | None:
    try:
        spread = number(value)
    except BadValueError:
        # A single sample has an infinite deviation.
        return None
    return spread if spread >= 0 else None


def _whole(value: float) -> float:
    return float(round(value)) if 0 < value < 2**50 and abs(value - round(value)) < 1e-6 * value else value


def _axes(state: dict[str, Any], options: Options) -> dict[str, Any]:
    columns: dict[str, Any] = {"dtype": options.dtype}
    types = []
    for axis in items(state.get("axis_values")):
        name = re.sub(r"[^a-z0-9]+", "_", (text(axis.get("name")) or "").lower()).strip("_")
        value = axis.get("value")
        if not name:
            continue
        if axis.get("type") in ("int64", "float64"):
            columns[f"axis_{name}"] = number(value)
        elif isinstance(value, str):
            columns[f"axis_{name}"] = value[:80]
            if dtype_of(value) in DTYPE_BYTES:
                types.append(dtype_of(value))
    if len(set(types)) == 1 and not options.dtype:
        columns["dtype"] = types[0]
    return columns


FORMAT = Format(
    name="nvbench",
    tool="nvbench (JSON 1.x)",
    version=1,
    looks_for="a JSON object with 'meta' (version of json and nvbench), 'devices' and 'benchmarks'",
    recognises=recognises,
    parse=parse,
    uses=("op", "dtype", "statistic"),
)
