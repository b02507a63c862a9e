"""``bayesperf predict``: predictive intervals for a table of workloads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesperf.cli.function import Function, TripCount, load_function, trip_counts_of
from bayesperf.cli.options import (
    AllowUnconverged,
    Interval,
    Json,
    Mean,
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

HELP = """Predict how long workloads take, with intervals.

WORKLOADS is CSV or Parquet with the columns op, flops and bytes (dtype, working_set_bytes and shapes help). The result
is the workloads' own columns and median_s, lower_s, upper_s, the probability of each limit (p_compute, p_memory,
p_communication, p_overhead, p_interference), and whether the workload lies inside what was measured (supported).
Without --out it is printed: a table on a terminal, CSV in a pipe.

By default the interval is for a fresh campaign, one that was not measured; --campaign predicts for a measured one, and
--mean for the average over campaigns.

With --function, the workloads are the kernels of a JAX function, compiled here and not run. The callable takes no
arguments and returns (fn, args); the result is the time of one run, and a row for each kernel.

\b
    bayesperf predict host.nc workloads.csv
    bayesperf predict host.nc workloads.csv --target my-gpu --interval 0.5 --out predicted.csv
    bayesperf predict host.nc --function train:step
"""

LIMITS = ("p_compute", "p_memory", "p_communication", "p_overhead", "p_interference")
LAUNCHES = ("wait", "queued", "none")
ADDED = (
    "median_s", "lower_s", "upper_s", "interval", *LIMITS, "supported", "support_distance", "unsupported_features",
)  # fmt: skip
"""Columns that a prediction adds to those of its workloads."""


def run(
    profile: ProfileFile,
    workloads: Annotated[
        Path | None, typer.Argument(metavar="WORKLOADS", help="Workloads, CSV or Parquet; or give --function.")
    ] = None,
    function: Function = None,
    target: OneTarget = None,
    interval: Interval = 0.9,
    campaign: MeasuredCampaign = None,
    stack: Annotated[str | None, typer.Option("--stack", help="Software stack; absent: the measured one.")] = None,
    mean: Mean = False,
    allow_unconverged: AllowUnconverged = False,
    launch: Annotated[
        str, typer.Option("--launch", help="Of a function: wait, queued (dispatch overlaps), or none.")
    ] = "wait",
    trip_count: TripCount = None,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Draws per workload.")] = 1000,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="CSV or Parquet file to write.")] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict times."""
    output = Output(json=json, quiet=quiet)
    check_interval(interval)
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"{out}: predictions are written as CSV or Parquet; name the file *.csv or *.parquet")
    if out is not None and not out.parent.is_dir():
        raise InputError(f"{out}: there is no folder {out.parent}; make it, or correct the path")
    if (workloads is None) == (function is None):
        raise InputError("give WORKLOADS, a table, or --function module:callable: one of the two")
    options = {
        "campaign": campaign,
        "stack": stack,
        "mean": mean,
        "draws": draws,
        "seed": seed,
        "allow_unconverged": allow_unconverged,
    }
    if workloads is not None:
        _predict_table(profile, workloads, target, interval, out, output, options)
    elif function is not None:
        if launch not in LAUNCHES:
            raise InputError(f"--launch is one of {', '.join(LAUNCHES)}, not {launch}")
        trips = trip_counts_of(trip_count)
        _predict_program(profile, function, target, interval, out, output, {**options, "launch": launch}, trips)


def _predict_table(
    profile: Path, workloads: Path, target: str | None, interval: float, out: Path | None, output: Output, options: Any
) -> None:
    from bayesperf.store import read_workloads

    table = read_workloads(workloads)
    taken = [name for name in ADDED if name in table]
    if taken:
        raise InputError(
            f"{workloads}: its column{'s' if len(taken) > 1 else ''} {', '.join(taken)} would be replaced by the "
            "prediction's; rename or drop them, as after an earlier prediction"
        )
    predicted = load(profile).predict_frame(table, target, interval=interval, **options)
    notes = predicted.attrs.pop("notes")
    if "target" not in table:
        # The result has the workloads' own columns, and those of the prediction.
        predicted = predicted.drop(columns="target", errors="ignore")
    for remark in notes:
        output.note(f"note: {remark}")
    if out is not None:
        write(predicted, out)
    output.document(predicted)
    if out is not None:
        outside = int((~predicted["supported"].astype(bool)).sum())
        output.say(f"{out}: {len(predicted)} predictions, {outside} of them outside what was measured")
    else:
        show(predicted, output)


def _predict_program(
    profile: Path,
    function: str,
    target: str | None,
    interval: float,
    out: Path | None,
    output: Output,
    options: Any,
    trips: Any,
) -> None:
    if not profile.is_file():
        raise InputError(f"{profile}: no such file")
    fn, args, kwargs = load_function(function)
    from bayesperf.workloads.trace import workload

    prediction = load(profile).predict_program(workload(fn, *args, trip_counts=trips, **kwargs), target, **options)
    whole, kernels = prediction.to_frame(interval), prediction.by_kernel(interval)
    for remark in prediction.notes:
        output.note(f"note: {remark}")
    if out is not None:
        write(kernels, out)
    program = whole.to_dict(orient="records")[0]
    output.document({"program": program, "kernels": kernels, "notes": list(prediction.notes)})
    if out is None:
        show_kernels(kernels, output)
    limit = max(LIMITS, key=lambda name: float(program[name]))
    words = (
        f"{function} on {program['target']}: {program['median_s']:.4g} s, {interval:.0%} between "
        f"{program['lower_s']:.4g} and {program['upper_s']:.4g} s; {program[limit]:.0%} of it bound by "
        f"{limit.removeprefix('p_')}; {program['supported_share']:.0%} of it inside of what was measured"
    )
    # A pipe gets the table alone.
    tell = output.say if out is not None or sys.stdout.isatty() else output.note
    tell(words)
    if out is not None:
        output.say(f"{out}: {len(kernels)} kernels, the launch among them")


def show_kernels(kernels: pd.DataFrame, output: Output) -> None:
    """Print a program's kernels, those that take longest first on a terminal, in their order in a pipe."""
    if output.json or output.quiet:
        return
    if not sys.stdout.isatty():
        kernels.to_csv(sys.stdout, index=False)
        return
    rows = [
        (
            row["instruction"], row["op"], row["dtype"], row["count"], row["flops"], row["bytes"], row["total_s"],
            f"{row['share']:.1%}", max(LIMITS, key=lambda name: row[name]).removeprefix("p_"),
            "yes" if row["supported"] else f"no: {row['unsupported_features']}",
        )
        for row in kernels.sort_values("share", ascending=False).to_dict(orient="records")
    ]  # fmt: skip
    columns = ["kernel", "op", "dtype", "count", "flops", "bytes", "total s", "share", "limit", "supported"]
    output.table(columns, rows)


def write(predicted: pd.DataFrame, out: Path) -> None:
    """Write predictions, atomically."""
    from bayesperf.store import atomic_write

    if out.suffix == ".csv":
        atomic_write(out, lambda path: predicted.to_csv(path, index=False))
    else:
        atomic_write(out, lambda path: predicted.to_parquet(path, index=False))


def show(predicted: pd.DataFrame, output: Output) -> None:
    """Print predictions: what matters on a terminal, everything in a pipe."""
    if output.json or output.quiet:
        return
    if not sys.stdout.isatty():
        predicted.to_csv(sys.stdout, index=False)
        return
    shown = [c for c in ("op", "dtype", "flops", "bytes") if c in predicted]
    rows = [
        (
            *(row[c] for c in shown),
            *(row[c] for c in ("median_s", "lower_s", "upper_s")),
            max(LIMITS, key=lambda name: row[name]).removeprefix("p_"),
            "yes" if row["supported"] else f"no: {row['unsupported_features']}",
        )
        for row in predicted.to_dict(orient="records")
    ]
    output.table([*shown, "median s", "from", "to", "limit", "supported"], rows)
