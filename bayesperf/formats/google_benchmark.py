"""google-benchmark JSON (``--benchmark_format=json``), with and without repetitions, of all releases since 2016.

``real_time`` is the wall time of one iteration in ``time_unit``. Rate counters (``bytes_per_second``) are over CPU time
unless the benchmark's name ends in ``/real_time`` or ``/manual_time``. Aggregates repeat the iteration rows and are
left out, unless only aggregates were written: then the median (or mean) is taken, with the standard deviation.
Complexity fits, errors and skipped benchmarks are no measurements. Work is known only through rate counters:
without, a row is flagged ``work-unknown``, because zero bytes and zero FLOP would be a wrong statement.
"""

from __future__ import annotations

import math
import re
from typing import Any

from bayesperf.errors import InputError
from bayesperf.formats.base import Format, Options, Parsed, flag, unrecognised
from bayesperf.formats.jsonio import items, mapping, text
from bayesperf.formats.source import Source
from bayesperf.formats.units import BadValueError, number, time_factor, whole

__all__ = ["FORMAT"]

_FLOPS = ("flops", "flop/s", "flops/s", "flop_per_second", "flops_per_second")
_SUFFIX = re.compile(
    r"(real_time|manual_time|process_time|threads:[0-9]{1,7}|repeats:[0-9]+|iterations:[0-9]+|min_time:.*)"
)
CENTRAL = ("median", "mean")


def recognises(source: Source) -> bool:
    """Whether both keys of the report, and one of its fields, are near the beginning."""
    head = source.beginning
    return '"context"' in head and '"benchmarks"' in head and ('"real_time"' in head or '"cpu_scaling_enabled"' in head)


def parse(source: Source, options: Options) -> Parsed:
    """Read the reports in a file.

    Raises
    ------
    UnsupportedFileError
        No report.
    """
    if options.statistic not in (None, "mean", "median"):
        raise InputError(f"the statistic {options.statistic!r} is not in this report; give mean or median")
    parsed, found = Parsed(), 0
    for run, document in enumerate(source.documents(("benchmarks",)), 1):
        if not isinstance(document.get("benchmarks"), list) or not isinstance(document.get("context"), dict):
            continue
        found += 1
        context = mapping(document["context"])
        date = text(context.get("date"))
        if date:
            parsed.facts["date"] = date[:19]
        parsed.tool_version = text(context.get("library_version")) or parsed.tool_version
        if context.get("library_build_type") == "debug":
            parsed.notes.add("debug build", "the benchmark library was a debug build: times are too long")
        if context.get("cpu_scaling_enabled") is True:
            parsed.notes.add("CPU scaling", "CPU frequency scaling was on: times wander")
        _benchmarks(parsed, items(document["benchmarks"]), run, options)
    if not found:
        raise unrecognised(source, FORMAT)
    return parsed


def _benchmarks(parsed: Parsed, entries: list[dict[str, Any]], run: int, options: Options) -> None:
    iterated = {_run_name(e) for e in entries if _is_iteration(e)}
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for at, entry in enumerate(entries):
        name = text(entry.get("name")) or f"benchmark {at}"
        try:
            if entry.get("error_occurred") or entry.get("skipped"):
                reason = text(entry.get("error_message") or entry.get("skip_message")) or "no reason given"
                parsed.skipped.add("error" if entry.get("error_occurred") else "skipped", f"{name}: {reason}")
            elif _is_iteration(entry):
                _emit(parsed, entry, run, options)
            elif "real_time" not in entry:
                parsed.skipped.add("complexity fit", f"{name}: no measurement")
            elif not text(entry.get("aggregate_name")):
                parsed.skipped.add("unnamed aggregate", f"{name}: which statistic it is, the file does not say")
            elif _run_name(entry) in iterated:
                parsed.skipped.add("aggregate", f"{name}: repeats the iteration rows")
            else:
                groups.setdefault(_run_name(entry), {})[str(entry["aggregate_name"])] = entry
        except BadValueError as error:
            parsed.skipped.add("unreadable row", f"{name}: {error}")
    for run_name, aggregates in groups.items():
        _aggregated(parsed, run_name, aggregates, run, options)


def _is_iteration(entry: dict[str, Any]) -> bool:
    # Releases before 1.5 print no run_type; their aggregates end in _mean, _median or _stddev.
    kind = entry.get("run_type")
    if kind is None:
        return "real_time" in entry and not re.search(r"_(mean|median|stddev|cv|BigO|RMS)$", str(entry.get("name")))
    return bool(kind == "iteration")


def _run_name(entry: dict[str, Any]) -> str:
    return text(entry.get("run_name")) or re.sub(r"_(mean|median|stddev|cv|BigO|RMS)$", "", str(entry.get("name")))


def _aggregated(
    parsed: Parsed, run_name: str, aggregates: dict[str, dict[str, Any]], run: int, options: Options
) -> None:
    wanted = (options.statistic,) if options.statistic else CENTRAL
    statistic = next((s for s in wanted if s in aggregates), None)
    if statistic is None:
        parsed.skipped.add("aggregate", f"{run_name}: neither median nor mean among {', '.join(sorted(aggregates))}")
        return
    entry = aggregates[statistic]
    try:
        row = _emit(parsed, entry, run, options, statistic=statistic)
        spread = aggregates.get("stddev")
        repetitions = whole(entry.get("repetitions", 0))
        if row is not None and spread is not None and repetitions > 1:
            deviation = number(spread["real_time"]) * time_factor(str(spread.get("time_unit")))
            if deviation >= 0:
                row["time_se_s"] = deviation / math.sqrt(repetitions)
    except (BadValueError, KeyError) as error:
        parsed.skipped.add("unreadable row", f"{run_name}: {error}")


def _emit(
    parsed: Parsed, entry: dict[str, Any], run: int, options: Options, *, statistic: str = "mean"
) -> dict[str, Any] | None:
    if "time_unit" not in entry:
        raise BadValueError("no time_unit")
    unit = time_factor(str(entry["time_unit"]))
    real, cpu = number(entry.get("real_time")) * unit, number(entry.get("cpu_time", 0.0)) * unit
    name = _run_name(entry)
    parts = name.split("/")
    wall = any(p in ("real_time", "manual_time") for p in parts)
    basis = real if wall else cpu
    traffic, work = _counted(entry, basis)
    row: dict[str, Any] = {
        "op": options.op or re.sub(r"[^a-z0-9]+", "_", parts[0].lower()).strip("_") or "benchmark",
        "dtype": options.dtype,
        "flops": work or 0.0,
        "bytes": traffic or 0.0,
        "time_s": real,
        "statistic": statistic,
        "benchmark": name,
        "cpu_time_s": cpu,
        "label": text(entry.get("label")),
        "process": str(run),
        **_arguments(parts[1:]),
    }
    for key in ("iterations", "threads", "repetition_index", "items_per_second"):
        if key in entry:
            row[key] = number(entry[key])
    taken = parsed.add(row)
    if traffic is None and work is None:
        flag(taken, "work-unknown")
    return taken


def _counted(entry: dict[str, Any], seconds: float) -> tuple[float | None, float | None]:
    """Bytes and FLOP of one iteration, from the rate counters."""
    traffic = work = None
    if "bytes_per_second" in entry:
        traffic = number(entry["bytes_per_second"]) * seconds
    for key, value in entry.items():
        if key.lower() in _FLOPS:
            work = number(value) * seconds
    return _whole(traffic), _whole(work)


def _whole(value: float | None) -> float | None:
    # Rates are printed to 17 digits; what they were made from is a whole number.
    return float(round(value)) if value is not None and 0 < value < 2**50 else value


def _arguments(parts: list[str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    for part in parts:
        if _SUFFIX.fullmatch(part):
            continue
        key, _, value = part.rpartition(":")
        name = re.sub(r"[^a-z0-9]+", "_", key.lower()).strip("_") if key else f"arg{len(arguments)}"
        try:
            arguments[f"arg_{name}" if key else name] = number(value)
        except BadValueError:
            arguments[f"arg_{name}" if key else name] = value[:60]
    return arguments


FORMAT = Format(
    name="google-benchmark",
    tool="google-benchmark (JSON)",
    version=1,
    looks_for="a JSON object with 'context' and 'benchmarks', whose entries have 'real_time' and 'time_unit'",
    recognises=recognises,
    parse=parse,
    uses=("op", "dtype", "statistic"),
)
