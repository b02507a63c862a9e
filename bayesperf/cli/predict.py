"""``bayesperf predict``: predictive intervals for a table of workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesperf.cli.options import Interval, Json, ProfileFile, Quiet, Seed
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

\b
    bayesperf predict host.nc workloads.csv
    bayesperf predict host.nc workloads.csv --target my-gpu --interval 0.5 --out predicted.csv
"""


def run(
    profile: ProfileFile,
    workloads: Annotated[Path, typer.Argument(metavar="WORKLOADS", help="Workloads, CSV or Parquet.")],
    target: Annotated[str | None, typer.Option("--target", help="Target; needed when the profile has several.")] = None,
    interval: Interval = 0.9,
    campaign: Annotated[
        str | None, typer.Option("--campaign", help="A measured campaign; absent: a fresh one.")
    ] = None,
    stack: Annotated[str | None, typer.Option("--stack", help="Software stack; absent: the measured one.")] = None,
    mean: Annotated[bool, typer.Option("--mean", help="The average over campaigns: no campaign effect.")] = False,
    allow_unconverged: Annotated[
        bool, typer.Option("--allow-unconverged", help="Predict although the diagnostics gate of the fit failed.")
    ] = False,
    draws: Annotated[int, typer.Option("--draws", min=1, help="Draws per workload.")] = 1000,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="CSV or Parquet file to write.")] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict times."""
    output = Output(json=json, quiet=quiet)
    if not 0 < interval < 1:
        raise InputError(f"--interval {interval:g} is not a probability between 0 and 1, such as 0.9")
    if out is not None and out.suffix not in (".csv", ".parquet"):
        raise InputError(f"{out}: predictions are written as CSV or Parquet; name the file *.csv or *.parquet")
    from bayesperf.store import read_workloads

    table = read_workloads(workloads)
    prediction = load(profile).predict(
        table,
        target,
        campaign=campaign,
        stack=stack,
        mean=mean,
        draws=draws,
        seed=seed,
        allow_unconverged=allow_unconverged,
    )
    predicted = prediction.to_frame(interval=interval)
    if "target" not in table:
        # The result has the workloads' own columns, and those of the prediction.
        predicted = predicted.drop(columns="target", errors="ignore")
    for remark in prediction.notes:
        output.note(f"note: {remark}")
    if out is not None:
        write(predicted, out)
    output.document(predicted)
    if out is not None:
        outside = int((~predicted["supported"].astype(bool)).sum())
        output.say(f"{out}: {len(predicted)} predictions, {outside} of them outside what was measured")
    else:
        show(predicted, output)


def write(predicted: pd.DataFrame, out: Path) -> None:
    """Write predictions, atomically."""
    from bayesperf.store import atomic_write

    if out.suffix == ".csv":
        atomic_write(out, lambda path: predicted.to_csv(path, index=False))
    else:
        atomic_write(out, lambda path: predicted.to_parquet(path, index=False))


def show(predicted: pd.DataFrame, output: Output) -> None:
    """Print predictions: what matters on a terminal, everything in a pipe."""
    import sys

    if output.json or output.quiet:
        return
    if not sys.stdout.isatty():
        predicted.to_csv(sys.stdout, index=False)
        return
    limits = ["p_compute", "p_memory", "p_communication", "p_overhead", "p_interference"]
    shown = [c for c in ("op", "dtype", "flops", "bytes") if c in predicted]
    rows = [
        (
            *(row[c] for c in shown),
            *(row[c] for c in ("median_s", "lower_s", "upper_s")),
            max(limits, key=lambda name: row[name]).removeprefix("p_"),
            "yes" if row["supported"] else f"no: {row['unsupported_features']}",
        )
        for row in predicted.to_dict(orient="records")
    ]
    output.table([*shown, "median s", "from", "to", "limit", "supported"], rows)
