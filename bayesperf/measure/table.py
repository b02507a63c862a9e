"""From a run's journal to the contract's tables: measurements, failures, provenance.

Beside the contract's columns a measured row has:

======================== ==== ==================================================================================
``bytes_write_allocate`` byte compulsory traffic plus one read of each line that is written without being read
``scope``                     ``one`` device or ``all`` devices of the host
``probe``, ``point_id``       which probe, which point of the plan
``sentinel``                  whether the point is repeated in every campaign
``attempts``                  how often it was measured; the least disturbed attempt is kept
``cpu_threads``               processor time of the process over wall time: how many threads really ran
``others_share``              share of the host's processors that other processes used meanwhile
``steal_share``               share that the hypervisor took
``waited_share``              share that our threads spent ready to run, waiting for a processor
``setup_s``              s    placing data, tracing and compiling; ``compile_s`` of it
``first_run_s``          s    the first run, never part of the fit
``mode``                      how the worker was started: ``plain``, ``threads``, ``pinned``, ``one-processor``; part of
                              the target
``cpus``                      processors the process might use, numbers joined by ``+``
``clock_mhz``            MHz  slowest clock of the devices just after; ``temperature_c`` (C) the hottest,
                              ``power_w`` (W) of all, ``throttle`` what held them back, joined by ``+``
``hlo_hash``                  hash of the optimised program that was timed
``form``                      how its iterations were chained (see `bayesperf.probe`)
======================== ==== ==================================================================================

a probe of access patterns ``bytes_lines`` (byte: what lines carry), a collective ``algbw_bytes_per_s``
and ``busbw_bytes_per_s`` (byte/s: algorithm and bus bandwidth as nccl-tests define them), and one that ran beside
others (its ``corunners``):

=========================== ====== =============================================================================
``corunner_shapes``                dtypes and shapes of the aggressors
``corunner_how``                   in ``threads`` of the process, or in ``processes`` of their own
``corunner_cpus``                  processors each of them might use, like ``cpus``; ``unknown`` where not told
``overlap``                        least share of the timed seconds that an aggressor had a launch under way
``corunner_flops_per_s``    FLOP/s what all aggressors did meanwhile; ``corunner_bytes_per_s`` (byte/s) likewise
=========================== ====== =============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from bayesperf import plugins
from bayesperf.measure.machine import Machine
from bayesperf.measure.plan import Plan
from bayesperf.measure.points import Point
from bayesperf.probe import Probe, Work
from bayesperf.schema import COLUMNS, SHAPE_COLUMNS, add_flag
from bayesperf.store import provenance_id, with_provenance

__all__ = ["FAILURE_COLUMNS", "assemble", "failure_row", "measurement_row", "provenance_record"]

FAILURE_COLUMNS = (
    "target", "device", "op", "dtype", "reason", "detail", "log", "n_devices", "scope", "probe", "shape", "condition",
    "process", "role", "campaign", "stack", "point_id", "corunners",
)  # fmt: skip

STATE_COLUMNS = ("clock_mhz", "temperature_c", "power_w", "throttle")

ALONE = ("alone_s", "alone_se_s", "alone_samples_s", "alone_samples_iterations")
"""Of what ran beside others: the same alone, just before and after."""

NOISY = 0.1
"""Relative standard error from which a row is flagged ``noisy``."""


def measurement_row(point: Point, record: Mapping[str, Any], machine: Machine, campaign: str) -> dict[str, Any]:
    """One row of the measurement table.

    Flops, bytes, working set and parallelism are totals over the scope's devices, but those of one rank where there are
    messages; shape columns are what one device holds.
    """
    probe: Probe = plugins.load("probe", point.probe)
    work = probe.work(point.config)
    count = point.n_devices if work.message_bytes is None else 1
    return {
        **_identity(point, machine, campaign),
        "flops": work.flops * count,
        "bytes": work.bytes * count,
        "time_s": record["slope_s"],
        "statistic": "slope",
        "time_se_s": record["slope_se_s"],
        "samples_s": record["samples_s"],
        "samples_iterations": record["samples_iterations"],
        "intercept_s": record["intercept_s"],
        "intercept_se_s": record["intercept_se_s"],
        "working_set_bytes": work.working_set_bytes * count,
        "parallelism": work.parallelism * count,
        "message_bytes": work.message_bytes,
        "flags": _flags(record),
        "stop_reason": record["stop_reason"],
        "provenance_id": record.get("provenance_id"),
        "bytes_write_allocate": work.write_allocate_bytes * count,
        **{key: point.config[key] for key in point.config if key not in ("op", "dtype")},
        "scope": point.scope,
        "probe": point.probe,
        "sentinel": point.sentinel,
        "point_id": point.id,
        "order": point.order,
        "attempts": record["attempts"],
        "cpu_threads": record["cpu_threads"],
        "others_share": record["others_share"],
        "steal_share": record["steal_share"],
        "waited_share": record["waited_share"],
        "compile_s": record["compile_s"],
        "setup_s": record["setup_s"],
        "first_run_s": record["warmup_s"][0] if record["warmup_s"] else None,
        "hlo_hash": record["hlo_hash"],
        "form": record["form"],
        "mode": point.mode,
        "cpus": _processors(record.get("cpus")),
        **{name: record.get("state", {}).get(name) for name in STATE_COLUMNS},
        **_company(point, record),
        **_traffic(work, record["slope_s"], count),
    }


def _traffic(work: Work, seconds: float, count: int) -> dict[str, Any]:
    if work.line_bytes is not None:
        return {"bytes_lines": work.line_bytes * count}
    if work.message_bytes is None or work.bus_factor is None:
        return {}
    rate = work.message_bytes / seconds
    return {"algbw_bytes_per_s": rate, "busbw_bytes_per_s": rate * work.bus_factor}


def _company(point: Point, record: Mapping[str, Any]) -> dict[str, Any]:
    if point.beside is None:
        return {}
    measured = {name: record[name] for name in ("overlap", "corunner_flops_per_s", "corunner_bytes_per_s")}
    measured |= {name: record[name] for name in ALONE if name in record}
    cpus = "; ".join(_processors(each) or "unknown" for each in record["corunner_cpus"])
    return {
        "corunner_shapes": point.beside.shapes, "corunner_how": point.beside.how, "corunner_cpus": cpus, **measured,
    }  # fmt: skip


def _processors(numbers: Sequence[int] | None) -> str | None:
    return "+".join(map(str, numbers)) if numbers else None


def failure_row(point: Point, failure: Mapping[str, Any], machine: Machine, campaign: str) -> dict[str, Any]:
    """One row of the failures table."""
    shape = " ".join(f"{k}={v}" for k, v in point.config.items() if k not in ("op", "dtype"))
    row = {
        **_identity(point, machine, campaign), "reason": failure["reason"], "detail": failure["detail"],
        "log": failure.get("log") or None, "scope": point.scope, "probe": point.probe, "shape": shape,
        "point_id": point.id,
    }  # fmt: skip
    return {name: row.get(name) for name in FAILURE_COLUMNS}


def _identity(point: Point, machine: Machine, campaign: str) -> dict[str, Any]:
    return {
        "target": machine.target(machine.count(point.scope), point.sharing),
        "device": machine.device,
        "op": point.config["op"],
        "dtype": point.config.get("dtype"),
        "n_devices": point.n_devices,
        "campaign": campaign,
        "stack": machine.stack,
        "role": point.role,
        "condition": point.condition,
        "corunners": point.beside.label if point.beside is not None else None,
        "process": point.worker,
    }


def _flags(record: Mapping[str, Any]) -> str | None:
    flags: str | None = None
    if record["disturbed"]:
        flags = add_flag(flags, "disturbed")
    if record["outliers"]:
        flags = add_flag(flags, "outlier")
    if record["slope_se_s"] > NOISY * record["slope_s"]:
        flags = add_flag(flags, "noisy")
    return flags


def provenance_record(environment: Mapping[str, Any], plan: Plan, campaign: str) -> tuple[str, dict[str, Any]]:
    """Provenance of what one worker measured, and its id."""
    record = {
        "kind": "measurement",
        "host": environment["host"],
        "jax": environment["jax"],
        "state_before": environment["state"],
        "plan_id": plan.id,
        "suite": plan.suite.name,
        "seed": plan.seed,
        "campaign": campaign,
        "data": "uniform in [0.5, 1.5), random blocks of 2**20 repeated; weights centred and scaled by 1/sqrt(fan-in)",
        "bytes_convention": "bytes: compulsory traffic; bytes_write_allocate: plus one read per line written unread",
        "time": "slope of time over chained iterations; intercept: launch, carry donated",
    }
    return provenance_id(record), record


def assemble(entries: Sequence[Mapping[str, Any]], plan: Plan, machine: Machine, campaign: str) -> pd.DataFrame:
    """The measurement table of a journal's entries, in the plan's order; failures in ``attrs["failures"]``."""
    points = {p.id: p for p in plan.points}
    rows, failures, records = [], [], {}
    for entry in entries:
        point = points.get(str(entry.get("point")))
        if entry["type"] == "environment":
            records[entry["provenance_id"]] = entry["record"]
        elif point is None:
            continue
        elif entry["type"] == "done":
            rows.append(measurement_row(point, entry["record"], machine, campaign))
        else:
            failures.append(failure_row(point, entry["failure"], machine, campaign))
    table = pd.DataFrame(rows)
    if len(table):
        table = table.sort_values("order", ignore_index=True).drop(columns="order")
        table, named = table[_ordered(list(table.columns))], {c.name for c in COLUMNS}
        whole = {key for p in plan.points for key, value in p.config.items() if isinstance(value, int)}
        for name in (c for c in table.columns if c in SHAPE_COLUMNS or c in whole.difference(named)):
            table[name] = table[name].astype("Int64")
    table = with_provenance(table, records)
    table.attrs["failures"] = pd.DataFrame(failures, columns=list(FAILURE_COLUMNS))
    # As text: pandas copies attributes with every operation, and a plan has thousands of points.
    table.attrs["facts"] = {"plan": plan.model_dump_json()}
    return table


def _ordered(columns: list[str]) -> list[str]:
    """The contract's columns first, in its order, then shapes, then the rest; columns of nothing but None stay."""
    known = [c.name for c in COLUMNS if c.name in columns]
    shapes = [c for c in SHAPE_COLUMNS if c in columns]
    return [*known, *shapes, *(c for c in columns if c not in known and c not in shapes)]
