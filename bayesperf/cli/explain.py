"""``bayesperf explain``: a program measured by the profiler, beside its prediction."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesperf.cli.function import Function, TripCount, check_name, load_function, trip_counts_of
from bayesperf.cli.options import (
    AllowUnconverged,
    Interval,
    Json,
    MeasuredCampaign,
    OneTarget,
    ProfileFile,
    Quiet,
    Seed,
    check_interval,
)
from bayesperf.cli.output import Output
from bayesperf.cli.summary import load
from bayesperf.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HELP", "run"]

HELP = """Run a JAX function under the profiler, and set measured beside predicted, kernel by kernel.

The callable of --function takes no arguments and returns (fn, args). fn is run here, with and without the profiler.
Each second of a run goes to dispatch, kernels, control (loops), idle or return; each kernel gets what held it back:
compute, memory, communication or overhead where the prediction holds, interference where only some runs were as fast as
predicted, model where the prediction is wrong.

\b
    bayesperf explain host.nc --function train:step
    bayesperf explain host.nc --function train:step --target my-cpu-x1 --runs 30 --out kernels.csv
    bayesperf explain host.nc --function train:step --target my-cpu-x1 --out step.html
"""

COLUMNS = (
    *("instruction", "op", "count", "measured_s", "share", "predicted_s", "lower_s", "upper_s"),
    *("ratio", "verdict", "limit", "held_back"),
)


def run(
    profile: ProfileFile,
    function: Function = None,
    target: OneTarget = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs without the profiler, and with it.")] = 10,
    interval: Interval = 0.9,
    campaign: MeasuredCampaign = None,
    trip_count: TripCount = None,
    allow_unconverged: AllowUnconverged = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="File to write: the table (*.csv) or a page (*.html).")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Explain a program's time."""
    output = Output(json=json, quiet=quiet)
    check_interval(interval)
    if out is not None and out.suffix not in (".csv", ".html"):
        raise InputError(f"{out}: evidence is written as a table or as a page; name the file *.csv or *.html")
    if function is None:
        raise InputError("name the program: --function module:callable")
    check_name(function)
    trips = trip_counts_of(trip_count)
    loaded = load(profile)
    fn, args, kwargs = load_function(function)
    from bayesperf.programs.evidence import evidence

    options = {"campaign": campaign, "allow_unconverged": allow_unconverged, "seed": seed}
    found = evidence(fn, *args, profile=loaded, target=target, runs=runs, trip_counts=trips, options=options, **kwargs)
    kernels, summary = found.by_kernel(interval), found.summary(interval)
    for remark in found.notes:
        output.note(f"note: {remark}")
    if out is not None and out.suffix == ".html":
        found.to_html(out, function, interval=interval)
    elif out is not None:
        from bayesperf.store import atomic_write

        atomic_write(out, lambda path: kernels.to_csv(path, index=False))
    row = summary.to_dict(orient="records")[0]
    output.document({"program": row, "kernels": kernels, "notes": found.notes})
    _show(kernels, output)
    (output.say if sys.stdout.isatty() else output.note)(_words(function, row, interval))


def _show(kernels: pd.DataFrame, output: Output) -> None:
    if output.json or output.quiet:
        return
    if not sys.stdout.isatty():
        kernels.to_csv(sys.stdout, index=False)
        return
    rows = [tuple(row[name] for name in COLUMNS) for row in kernels.to_dict(orient="records")]
    output.table(COLUMNS, rows)


def _words(function: str, row: dict[Any, Any], interval: float) -> str:
    parts = ", ".join(
        f"{name} {row[f'{name}_s']:.3g} s" for name in ("dispatch", "kernels", "control", "idle", "return")
    )
    return (
        f"{function}: measured {row['measured_s']:.4g} s, predicted {row['predicted_s']:.4g} s, {interval:.0%} between "
        f"{row['lower_s']:.4g} and {row['upper_s']:.4g} s: {row['verdict']}. Under the profiler "
        f"({row['tracing_overhead']:+.0%}): {parts}; {row['unattributed_share']:.1%} unattributed"
    )
