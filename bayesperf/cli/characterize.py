"""``bayesperf characterize``: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.options import Alpha, Campaign, Chains, DrawnSeed, Draws, Json, Model, Quiet, Targets, Tolerance
from bayesperf.cli.output import Output
from bayesperf.cli.summary import profile_facts, show_gate, show_parameters, show_verdicts, validation_facts

__all__ = ["HELP", "run"]

HELP = """Characterize the machine this runs on: measure, fit, validate on held-out workloads, report.

Writes measurements.parquet, profile.nc and report.html into --out. Measurements are kept as they come: after Ctrl-C or
a crash the same command goes on where it stopped. Suites: tiny takes under a minute, quick a few, standard under 20.

Exit code 1 when the diagnostics gate of the fit fails (all three files are written, marked); 0 also when a regime
fails to transfer, which is a finding of the report, unless --strict makes it 3.

\b
    bayesperf characterize
    bayesperf characterize --suite standard --out monday --strict
"""


def run(
    suite: Annotated[
        str, typer.Option("--suite", help="Suite by name, or a TOML file; `bayesperf list suites` shows them.")
    ] = "quick",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder to write into; ./bayesperf-<target>-<date> when absent."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 when a regime fails to transfer.")] = False,
    model: Model = "roofline",
    targets: Targets = None,
    campaign: Campaign = None,
    draws: Draws = 1000,
    chains: Chains = 4,
    tolerance: Tolerance = 0.1,
    alpha: Alpha = 0.05,
    seed: DrawnSeed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Characterize this machine."""
    from bayesperf.characterize import characterize
    from bayesperf.specs import read_targets

    output = Output(json=json, quiet=quiet)
    specs = read_targets(targets) if targets else None
    found = characterize(
        suite,
        out=out,
        model=model,
        targets=specs,
        campaign=campaign,
        seed=seed,
        draws=draws,
        chains=chains,
        tolerance=tolerance,
        alpha=alpha,
        progress=None if output.progress else False,
    )
    code = found.exit_code(strict=strict)
    checked = validation_facts(found.validation) if found.validation is not None else None
    output.document(
        {"files": found.files, "exit_code": code, **profile_facts(found.profile), "validation": checked},
    )
    show_parameters(found.profile, output)
    if found.validation is not None:
        show_verdicts(found.validation, output)
    show_gate(found.profile, output)
    for file in found.files:
        output.say(str(file))
    if code:
        raise typer.Exit(code)
