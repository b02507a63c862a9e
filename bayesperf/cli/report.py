"""``bayesperf report``: the capability report of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.options import Json, ProfileFile, Quiet, Seed
from bayesperf.cli.output import Output
from bayesperf.cli.summary import load

__all__ = ["HELP", "run"]

HELP = """Write a profile's report: one HTML file that needs no network.

With --heldout the report also says, regime by regime, whether the profile transfers to those measurements.

\b
    bayesperf report host.nc --out host.html
    bayesperf report out/profile.nc --heldout out/measurements.parquet --out out/report.html
"""


def run(
    profile: ProfileFile,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.html", help="File to write; beside the profile when absent.")
    ] = None,
    heldout: Annotated[
        Path | None, typer.Option("--heldout", metavar="TABLE", help="Measurements to validate against.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report."""
    from bayesperf.report.capability import write_report

    output = Output(json=json, quiet=quiet)
    fitted = load(profile)
    table = checked = None
    if heldout is not None:
        from bayesperf.store import read_measurements

        table = read_measurements(heldout)
        checked = fitted.validate(table, seed=seed)
    path = out or profile.with_suffix(".html")
    write_report(fitted, path, validation=checked, measurements=table, seed=seed)
    output.document({"out": path, "converged": fitted.converged})
    output.say(f"wrote {path}")
