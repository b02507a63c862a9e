"""pyperf JSON, versions 5, 6 and 1.0.

A row is one worker process of one benchmark. ``values`` are seconds per iteration, already divided by the loops, so raw
samples are their product with ``loops x inner_loops``. Calibration runs and warm-ups are no measurements. Benchmarks in
bytes or without unit are no times and are tallied. What a Python function moves is unknown: rows are flagged
``work-unknown`` unless the mapping of a generic table supplies it.
"""

from __future__ import annotations

import math
import re
from statistics import fmean, median, stdev
from typing import Any

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.formats.base import Format, Options, Parsed, flag, unrecognised
from bayesperf.formats.jsonio import items, mapping, text
from bayesperf.formats.source import Source
from bayesperf.formats.units import BadValueError, number, positive_integer, whole

__all__ = ["FORMAT"]

VERSIONS = (5, 6, "1.0")


def recognises(source: Source) -> bool:
    """Whether the keys of a suite are near the beginning or the end (they are sorted: the version comes last)."""
    head = source.beginning
    return (
        '"benchmarks"' in head
        and '"runs"' in head
        and ('"values"' in head or '"samples"' in head or '"warmups"' in head)
    )


def parse(source: Source, options: Options) -> Parsed:
    """Read the suites in a file.

    Raises
    ------
    UnsupportedFileError
        No suite, or one of an unknown version.
    """
    if options.statistic not in (None, "mean", "median", "min"):
        raise InputError(f"the statistic {options.statistic!r} is not known here; give mean, median or min")
    parsed, found = Parsed(), 0
    for document in source.documents(("benchmarks",)):
        benchmarks = items(document.get("benchmarks"))
        if not any("runs" in benchmark for benchmark in benchmarks):
            continue
        if document.get("version") not in VERSIONS:
            raise UnsupportedFileError(
                f"{source.path}: pyperf JSON version {str(document.get('version'))[:20]!r}; versions "
                f"{', '.join(map(str, VERSIONS))} are read: convert it with pyperf"
            )
        found += 1
        old = document["version"] == 5
        common = mapping(document.get("common_metadata" if old else "metadata"))
        for benchmark in benchmarks:
            shared = common | mapping(benchmark.get("common_metadata" if old else "metadata"))
            _benchmark(parsed, benchmark, shared, "samples" if old else "values", options)
    if not found:
        raise unrecognised(source, FORMAT)
    return parsed


def _benchmark(parsed: Parsed, benchmark: dict[str, Any], shared: dict[str, Any], key: str, options: Options) -> None:
    ordinal = 0
    for run in items(benchmark.get("runs")):
        metadata = shared | mapping(run.get("metadata"))
        name = text(metadata.get("name")) or "benchmark"
        values = run.get(key)
        if not values:
            parsed.skipped.add("calibration", f"{name}: a run without values")
            continue
        unit = metadata.get("unit", "second")
        if unit != "second":
            parsed.skipped.add("not a time", f"{name}: values in {text(unit) or unit!r}")
            continue
        ordinal += 1
        try:
            _emit(parsed, name, values, metadata, ordinal, options)
        except BadValueError as error:
            parsed.skipped.add("unreadable row", f"{name}, run {ordinal}: {error}")


def _emit(parsed: Parsed, name: str, values: Any, metadata: dict[str, Any], ordinal: int, options: Options) -> None:
    if not isinstance(values, list):
        raise BadValueError("values are no list")
    times = [number(value) for value in values]
    if min(times) <= 0:
        raise BadValueError(f"a time of {min(times):g} s")
    loops = positive_integer(metadata.get("loops", 1), "loops") * positive_integer(
        metadata.get("inner_loops", 1), "inner_loops"
    )
    if loops >= 2**53 or not math.isfinite(max(times) * loops):
        raise BadValueError(f"{loops} loops")
    statistic = options.statistic or "mean"
    central = min(times) if statistic == "min" else median(times) if statistic == "median" else fmean(times)
    version = text(metadata.get("python_version"), 30)
    implementation = text(metadata.get("python_implementation"), 30) or "python"
    date = text(metadata.get("date"))
    if date:
        parsed.facts.setdefault("date", date[:19])
    parsed.tool_version = text(metadata.get("perf_version")) or parsed.tool_version
    taken = parsed.add(
        {
            "op": options.op or re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "benchmark",
            "dtype": options.dtype,
            "flops": 0.0,
            "bytes": 0.0,
            "time_s": central,
            "statistic": statistic,
            "time_se_s": stdev(times) / math.sqrt(len(times)) if statistic == "mean" and len(times) > 1 else None,
            "samples_s": [time * loops for time in times],
            "samples_iterations": [loops] * len(times),
            "benchmark": name,
            "process": str(ordinal),
            "stack": f"{implementation}-{version.split()[0]}" if version else None,
            "device_name": text(metadata.get("cpu_model_name")),
            "cpu_count": float(whole(metadata["cpu_count"])) if isinstance(metadata.get("cpu_count"), int) else None,
        }
    )
    flag(taken, "work-unknown")


FORMAT = Format(
    name="pyperf",
    tool="pyperf",
    version=1,
    looks_for="a JSON object with 'benchmarks', whose entries have 'runs' with 'values', and 'version'",
    recognises=recognises,
    parse=parse,
    uses=("op", "dtype", "statistic"),
)
