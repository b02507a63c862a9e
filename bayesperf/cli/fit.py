"""``bayesperf fit``: a posterior from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesperf.cli.options import Chains, Draws, Json, Model, Quiet, Seed, Targets
from bayesperf.cli.output import Output
from bayesperf.cli.summary import profile_facts, show_gate, show_parameters
from bayesperf.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["HELP", "run", "summarise"]

HELP = """Fit a model to measurements and write the posterior, as a profile that predicts.

Reads CSV or Parquet with the columns target, op, flops, bytes and time_s (further ones help). Rows with role=heldout
are left for `validate`. Writes an xarray DataTree that ArviZ opens. When the diagnostics gate fails the file is written
all the same, marked unconverged, and the exit code is 1.

\b
    bayesperf fit host.parquet --out host.nc
    bayesperf fit monday.parquet tuesday.csv --targets specs.csv --out fleet.nc
"""


def run(
    tables: Annotated[
        list[Path], typer.Argument(metavar="TABLE...", help="Measurement tables, joined before the fit.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="PROFILE.nc", help="Profile to write.")],
    targets: Targets = None,
    model: Model = "roofline",
    draws: Draws = 1000,
    chains: Chains = 4,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model."""
    from bayesperf import plugins
    from bayesperf.specs import read_targets, refuse_above_ceiling
    from bayesperf.store import concat, read_measurements

    output = Output(json=json, quiet=quiet)
    # Before minutes of sampling, and before the libraries of inference take seconds to load.
    if model not in plugins.available("model"):
        raise UnknownNameError("model", model, plugins.available("model"))
    if out.suffix != ".nc":
        raise InputError(f"{out}: profiles are NetCDF files; name it *.nc")
    read = [read_measurements(file) for file in tables]
    specs = read_targets(targets) if targets else None
    for file, part in zip(tables, read, strict=True):
        # Here, where a row's file is known.
        refuse_above_ceiling(part, specs, source=str(file), first_row=2 if file.suffix == ".csv" else 0)
    table = read[0] if len(read) == 1 else concat(read)
    from bayesperf.prediction.fit import fit

    profile = fit(table, targets=specs, model=model, seed=seed, draws=draws, chains=chains, progress=output.progress)
    profile.save(out)
    summarise(profile, out, output)
    if not profile.converged:
        raise typer.Exit(1)


def summarise(profile: Profile, out: Path, output: Output) -> None:
    """Print what was learned and whether it may be used."""
    output.document({"out": out, **profile_facts(profile)})
    show_parameters(profile, output)
    show_gate(profile, output)
    output.say(f"wrote {out}")
