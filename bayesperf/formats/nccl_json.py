"""JSON of nccl-tests (``-J FILE``): the same measurements with more digits, and each iteration where asked for.

It holds the environment and host names; neither is read.
"""

from __future__ import annotations

import contextlib
from typing import Any

from bayesperf.formats.base import Format, Options, Parsed, unrecognised
from bayesperf.formats.jsonio import items, mapping, text
from bayesperf.formats.nccl_table import Measured, Table, emit, version_of
from bayesperf.formats.source import Source
from bayesperf.formats.units import BadValueError, Printed, dtype_of, number, whole

__all__ = ["parse_json"]

US_STEP = 1e-12
"""``%lf`` prints six decimals of microseconds."""


def parse_json(source: Source, options: Options, form: Format) -> Parsed:
    """Read every document of a file.

    Raises
    ------
    UnsupportedFileError
        No document with results.
    """
    parsed, found = Parsed(), 0
    for ordinal, document in enumerate(source.documents(("results", "nccl_version")), 1):
        results = items(document.get("results"))
        if not results:
            continue
        found += 1
        table = _header(parsed, document)
        for at, result in enumerate(results):
            if not table.stated:
                table.stated = text(result.get("experiment_name"))
            for key, where in (("out_of_place", "out-of-place"), ("in_place", "in-place")):
                values = mapping(result.get(key))
                if not values:
                    if key in result:
                        parsed.skipped.add("not measured", f"result {at}: {where}")
                    continue
                try:
                    table.rows.append(_measured(result, values, where))
                except (BadValueError, KeyError) as error:
                    detail = f"no key {error}" if isinstance(error, KeyError) else str(error)
                    parsed.skipped.add("unreadable row", f"result {at}, {where}: {detail}")
        emit(parsed, source, table, options, ordinal)
    if not found:
        raise unrecognised(source, form)
    return parsed


def _header(parsed: Parsed, document: dict[str, Any]) -> Table:
    table, config = Table(), mapping(document.get("config"))
    devices = items(config.get("devices"))
    try:
        per_process = whole(config.get("nthreads", 1)) * whole(config.get("ngpus", 1))
        # One entry per process: the first of its ranks.
        if devices and per_process > 0:
            table.n = max(len(devices), 1) * per_process
        table.iterations = whole(config.get("iterations")) * max(whole(config.get("aggregated_iterations", 1)), 1)
    except BadValueError as error:
        parsed.notes.add("unreadable header", str(error))
    for device in devices:
        name = text(device.get("device_info"))
        if name:
            table.devices[name] = table.devices.get(name, 0) + 1
    # Absent from what people paste together.
    with contextlib.suppress(BadValueError):
        table.stack = f"nccl-{version_of(whole(document.get('nccl_version')))}"
    arguments = document.get("args")
    if isinstance(arguments, list) and arguments and isinstance(arguments[0], str):
        # Only the program's own name: the folder may name people.
        table.stated = arguments[0].replace("\\", "/").rsplit("/", 1)[-1]
    date = text(document.get("start_time"))
    if date:
        parsed.facts["date"] = date[:19]
    return table


def _measured(result: dict[str, Any], values: dict[str, Any], where: str) -> Measured:
    clock = "time" if "time" in values else "cpu_time"
    wrong = values.get("nwrong")
    return Measured(
        line=None,
        size=whole(result["size"]),
        count=whole(result["count"]),
        dtype=dtype_of(str(result["type"])),
        redop=text(result.get("redop")),
        root=whole(result["root"]) if result.get("root") is not None else None,
        placement=where,
        time=Printed(number(values[clock]) * 1e-6, US_STEP),
        cpu_time=clock == "cpu_time",
        # Six decimals of GB/s.
        algbw=Printed(number(values["alg_bw"]) * 1e9, 1e3),
        busbw=Printed(number(values["bus_bw"]) * 1e9, 1e3),
        wrong=0.0 if wrong is None else number(wrong),
        spread=_spread(result, where),
        extra=_iterations(result, where),
    )


def _per_iteration(result: dict[str, Any], where: str) -> dict[str, Any]:
    return mapping(result.get("out_of_place_per_iter" if where == "out-of-place" else "in_place_per_iter"))


def _spread(result: dict[str, Any], where: str) -> float | None:
    values = _per_iteration(result, where)
    return number(values["cv_pct"]) / 100 if "cv_pct" in values else None


def _iterations(result: dict[str, Any], where: str) -> dict[str, float]:
    values = _per_iteration(result, where)
    return {
        f"time_{n}_s": number(values[f"{n}_us"]) * 1e-6 for n in ("min", "max", "p50", "p99") if f"{n}_us" in values
    }
