"""Runs programs once and keeps what they took in a file: predictions can be judged again without a quiet machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Measured", "measure", "read", "restored"]


BLOCK_S = 0.15
"""Least length of a block of runs: what others use of the machine is counted in ticks of 10 ms."""

MOST_RUNS = 500
TRIES = 6

CALM = 0.1
"""Share of the machine that others may use in a block that counts."""


@dataclass(frozen=True)
class Measured:
    """What one program took.

    Parameters
    ----------
    seconds
        Runs without the profiler, (run,), s: those of calm blocks, else those of the least disturbed.
    traced
        Runs with it, (run,), s.
    parts, kernels
        As in `bayesperf.programs.evidence.Evidence`.
    lost
        Share of the machine that others used meanwhile.
    """

    seconds: list[float]
    traced: list[float]
    parts: pd.DataFrame
    kernels: pd.DataFrame
    lost: float


def measure(
    programs: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]],
    path: Path,
    *,
    runs: int,
    passes: int,
    said: Callable[[str], None] = print,
) -> None:
    """Run every program and write one row for each into a Parquet file.

    The programs are compiled first. Then all are run in turn, and again in each of the passes, at least `runs` times
    and `BLOCK_S` long; the profiler watches the last pass. What others disturb is run again, up to `TRIES` times.
    """
    from bayesperf.programs.evidence import attributed
    from bayesperf.programs.running import prepared, timed, traced
    from bayesperf.store import atomic_write
    from bayesperf.workloads.trace import compiled_program, counted

    ready = {}
    for name, (fn, args) in programs.items():
        program = compiled_program(fn, args, {})
        ready[name] = program, counted(program), prepared(args, {}, program.donates)
        said(f"compiled {name}")
    seconds: dict[str, list[float]] = {name: [] for name in ready}
    lost: dict[str, list[float]] = {name: [] for name in ready}
    lengths: dict[str, list[int]] = {name: [] for name in ready}
    for _ in range(passes):
        for name, (program, _, prepare) in ready.items():
            once = timed(program.call, prepare, 1)[0]
            count = max(runs, min(round(BLOCK_S / once), MOST_RUNS))
            found, share = _undisturbed(partial(timed, program.call, prepare, count))
            seconds[name] += found
            lost[name].append(share)
            lengths[name].append(len(found))
    rows = []
    for name, (program, table, prepare) in ready.items():
        (watched, seen), _ = _undisturbed(partial(traced, program.call, prepare, runs, table.attrs["module"]))
        parts, kernels = attributed(table, watched, seen)
        said(f"{name}: {min(seconds[name]):.3g} s, {max(lost[name]):.0%} of the machine used by others")
        rows.append(
            {
                "program": name,
                "seconds": seconds[name],
                "lost": lost[name],
                "lengths": lengths[name],
                "traced": watched,
                "text": program.compiled.as_text(),
                "analysis": json.dumps(dict(program.compiled.cost_analysis() or {})),
                "attrs": json.dumps({k: v for k, v in table.attrs.items() if k not in ("cross_check", "notes")}),
                "parts": parts.to_json(orient="records", double_precision=15),
                "kernels": kernels.to_json(orient="records", double_precision=15),
            }
        )
    frame = pd.DataFrame(rows)
    atomic_write(path, lambda target: frame.to_parquet(target, index=False))


def _undisturbed[T](work: Callable[[], T]) -> tuple[T, float]:
    """The least disturbed of a few tries, and the share of the machine that was lost in it."""
    from bayesperf.measure.watch import disturbance
    from bayesperf.measure.watch import read as now

    tries: list[tuple[T, float]] = []
    for _ in range(TRIES):
        before = now()
        done = work()
        seen = disturbance(before, now())
        tries.append((done, seen.total))
        if not seen.disturbed():
            break
    return min(tries, key=lambda each: each[1])


def read(path: Path) -> dict[str, Measured]:
    """What `measure` wrote."""
    from bayesperf.configurations import records

    return {row["program"]: _measured(row) for row in records(pd.read_parquet(path))}


def _measured(row: Mapping[str, Any]) -> Measured:
    parts, kernels = (pd.DataFrame(json.loads(row[name])) for name in ("parts", "kernels"))
    ends = np.cumsum(row["lengths"])
    blocks = [row["seconds"][end - length : end] for end, length in zip(ends, row["lengths"], strict=True)]
    calm = max(CALM, min(row["lost"]))
    seconds = np.concatenate([block for block, lost in zip(blocks, row["lost"], strict=True) if lost <= calm])
    return Measured(seconds.tolist(), list(row["traced"]), parts, kernels, min(row["lost"]))


def restored(path: Path, names: Iterable[str]) -> dict[str, pd.DataFrame]:
    """Workload tables of the programs as they were compiled for the file, counted by today's rules."""
    from bayesperf.configurations import records
    from bayesperf.workloads.trace import from_hlo

    wanted, found = set(names), {}
    for row in records(pd.read_parquet(path)):
        if row["program"] not in wanted:
            continue
        attrs = json.loads(row["attrs"])
        table = from_hlo(row["text"], platform=attrs["platform"], analysis=json.loads(row["analysis"]))
        table.attrs |= {key: attrs[key] for key in ("output_bytes", "temporary_bytes") if key in attrs}
        found[row["program"]] = table
    return found
