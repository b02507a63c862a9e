"""``bayesperf update``: a profile and a few new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.fit import summarise
from bayesperf.cli.options import Json, Quiet, Seed, Targets
from bayesperf.cli.output import Output
from bayesperf.cli.summary import load
from bayesperf.errors import InputError

__all__ = ["HELP", "run"]

HELP = """Add a few rows to a profile in seconds: a new target, a new campaign, a new operation.

What all targets share stays as the fit drew it, reweighted by the new rows; what the rows bring is inferred. Where they
tell too much of what is shared, a gate fails, the exit code is 1, and `bayesperf fit OLD NEW` is what to do.

\b
    bayesperf update fleet.nc newcomer.parquet --out fleet.nc
    bayesperf update fleet.nc newcomer.csv --targets specs.csv --out larger.nc
"""


def run(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE", help="A profile.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Measurements that it has not seen.")],
    out: Annotated[Path, typer.Option("--out", metavar="PROFILE.nc", help="Profile to write; may be the same.")],
    targets: Targets = None,
    allow_unconverged: Annotated[
        bool, typer.Option("--allow-unconverged", help="Start from a profile whose gate failed.")
    ] = False,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Update a profile."""
    from bayesperf.specs import read_targets
    from bayesperf.store import read_measurements

    output = Output(json=json, quiet=quiet)
    if out.suffix != ".nc":
        raise InputError(f"{out}: profiles are NetCDF files; name it *.nc")
    rows, specs = read_measurements(table), read_targets(targets) if targets else None
    updated = load(profile).update(
        rows, targets=specs, seed=seed, progress=output.progress, allow_unconverged=allow_unconverged
    )
    updated.save(out)
    summarise(updated, out, output)
    if not updated.converged:
        raise typer.Exit(1)
