"""``bayesperf compare``: which target is faster, by how much, and how sure is that?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesperf.cli.options import (
    AllowUnconverged,
    Confidence,
    Json,
    Mean,
    MeasuredCampaign,
    Page,
    ProfileFile,
    Quiet,
    Seed,
)
from bayesperf.cli.output import Output
from bayesperf.cli.summary import load
from bayesperf.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HELP", "run"]

HELP = """Compare targets of one profile on the same workloads.

Prints, for every pair of targets and every workload, the probability that the first is faster and the ratio of their
times with its 90 % interval; and the same for all workloads together, where a column count says how often each is
executed. The targets are predicted from the same draws, each in a fresh campaign of its own; --campaign names one in
which all were measured, --mean compares at the average over campaigns. Below the probability --confidence a pair is
called ambiguous. --out writes the comparison as one HTML file.

\b
    bayesperf compare fleet.nc old-gpu new-gpu --workloads model.csv
    bayesperf compare fleet.nc a b c --workloads model.csv --mean --out comparison.html
"""


def run(
    profile: ProfileFile,
    targets: Annotated[list[str], typer.Argument(metavar="TARGET TARGET...", help="Two targets or more.")],
    workloads: Annotated[Path, typer.Option("--workloads", metavar="FILE", help="Workloads, CSV or Parquet.")],
    campaign: MeasuredCampaign = None,
    mean: Mean = False,
    confidence: Confidence = 0.95,
    allow_unconverged: AllowUnconverged = False,
    out: Page = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare targets."""
    output = Output(json=json, quiet=quiet)
    if len(targets) < 2:
        raise InputError("compare takes at least two targets: bayesperf compare PROFILE TARGET TARGET --workloads FILE")
    from bayesperf.store import read_workloads

    table = read_workloads(workloads)
    compared = load(profile).compare(
        targets,
        table,
        campaign=campaign,
        mean=mean,
        confidence=confidence,
        seed=seed,
        allow_unconverged=allow_unconverged,
    )
    for remark in compared.notes:
        output.note(f"note: {remark}")
    if out is not None:
        compared.to_html(out)
    pairs, total = compared.pairs(), compared.total()
    fastest = dict(zip(compared.targets, compared.fastest_in_total.values.tolist(), strict=True))
    output.document(
        {
            "targets": targets,
            "confidence": confidence,
            "fastest_in_total": fastest,
            "total": total,
            "classes": compared.classes(),
            "workloads": pairs,
        }
    )
    show(pairs, total, output)
    if out is not None:
        output.say(f"wrote {out}")


def show(pairs: pd.DataFrame, total: pd.DataFrame, output: Output) -> None:
    """Print one line per pair of targets over all workloads, then one per workload."""
    names = [name for name in ("op", "dtype", "flops", "bytes") if name in pairs]
    numbers = ("ratio", "ratio_lower", "ratio_upper", "p_a_faster")
    rows = [
        [
            f"{row['a']} : {row['b']}",
            *(row.get(name, "all") for name in names),
            *(float(row[name]) for name in numbers),
            row["faster"],
        ]
        for table in (total, pairs)
        for row in table.to_dict(orient="records")
    ]
    output.table(["pair", *names, "ratio of times", "from", "to", "P(first faster)", "faster"], rows)
