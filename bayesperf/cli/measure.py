"""``bayesperf measure``: probes only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayesperf.cli.options import Campaign, DrawnSeed, Json, Quiet, Targets
from bayesperf.cli.output import Output
from bayesperf.cli.variance import show_variance
from bayesperf.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from bayesperf.measure.plan import Plan

__all__ = ["HELP", "run"]

HELP = """Run probes and write their measurements; needs no inference library.

Points go to a journal beside the file as they come, so a run that was stopped goes on where it stopped when the same
command is given again. A complete file is left as it is. What could not be measured is in NAME.failures.parquet.

\b
    bayesperf measure --suite quick --out host.parquet
    bayesperf measure --suite standard --dry-run
    bayesperf measure --repeat host.parquet --out tomorrow.parquet
"""


def run(
    suite: Annotated[
        str | None, typer.Option("--suite", help="Suite by name, or a TOML file; `bayesperf list suites` shows them.")
    ] = None,
    repeat: Annotated[
        Path | None, typer.Option("--repeat", metavar="FILE", help="Measure another file's plan again.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE.parquet", help="File to write.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List points and estimated time; measure nothing.")
    ] = False,
    targets: Targets = None,
    campaign: Campaign = None,
    seed: DrawnSeed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run probes."""
    from bayesperf.measure import run as runner

    output = Output(json=json, quiet=quiet)
    if (suite is None) == (repeat is None):
        raise InputError("give either --suite NAME or --repeat FILE; `bayesperf list suites` shows the names")
    if dry_run:
        plan = runner.plan_for(suite, seed=seed) if suite is not None else saved_plan(repeat)
        show_plan(plan, output, runner.memory_for(plan))
        return
    if out is None:
        raise InputError("say where to write: --out FILE.parquet (or --dry-run to see the plan)")
    from bayesperf.specs import read_targets

    specs = read_targets(targets) if targets else None
    watched = None if output.progress else False
    if suite is not None:
        table = runner.measure(suite, out=out, seed=seed, progress=watched, campaign=campaign, targets=specs)
    else:
        assert repeat is not None
        table = runner.repeat(repeat, out=out, progress=watched, campaign=campaign, targets=specs)
    summarise(table, out, output)


def saved_plan(file: Path | None) -> Plan:
    """Read the plan that a measurement file was made by."""
    from bayesperf.measure.plan import Plan
    from bayesperf.store import read_measurements

    assert file is not None
    facts = read_measurements(file).attrs["facts"]
    if "plan" not in facts:
        raise InputError(f"{file}: holds no plan; only files written by measure can be repeated")
    return Plan.from_json(facts["plan"], source=str(file))


def show_plan(plan: Plan, output: Output, allowed_bytes: float | None) -> None:
    """Print the points of a plan and what they would take, and warn of those that this machine has no memory for."""
    points, seconds = plan.describe(), plan.seconds()
    points["too_large"] = points["memory_bytes"] > (float("inf") if allowed_bytes is None else allowed_bytes)
    total = {
        "points": len(points),
        "seconds": seconds,
        "memory_bytes": float(points["memory_bytes"].max()),
        "disk_bytes": float(points["disk_bytes"].sum()),
    }
    output.document({**total, "plan": points})
    shown = ["op", "dtype", "shape", "role", "scope", "n_devices", "condition", "corunners", "process", "seconds"]
    # What no point of the plan has is not worth a column.
    shown = [name for name in shown if points[name].notna().any()]
    output.table(shown, points[shown].fillna("").itertuples(index=False))
    output.say(
        f"{len(points)} points, about {seconds / 60:.1f} minutes, "
        f"at most {total['memory_bytes'] / 2**20:.0f} MiB of memory, {total['disk_bytes'] / 2**20:.2f} MiB on disk"
    )
    large = points[points["too_large"]]
    if len(large) and allowed_bytes is not None:
        worst = large.sort_values("memory_bytes").iloc[-1]
        output.note(
            f"warning: {len(large)} of these points would fail as too-large: they need up to "
            f"{worst['memory_bytes'] / 2**20:,.0f} MiB ({worst['op']} {worst['shape']}), and the suite allows "
            f"{allowed_bytes / 2**20:,.0f} MiB, {plan.suite.budget.memory_share:.0%} of the memory at hand; "
            "choose smaller sizes, or another memory_share"
        )


def summarise(table: pd.DataFrame, out: Path, output: Output) -> None:
    """Print what was measured, what failed, what was disturbed."""
    from bayesperf.measure.variance import variance_parts

    failures, flagged, parts = table.attrs["failures"], 0, variance_parts(table)
    if "flags" in table:
        flagged = int(table["flags"].notna().sum())
    output.document(
        {
            "out": out,
            "rows": len(table),
            "targets": sorted(table["target"].unique()),
            "flagged": flagged,
            "failures": failures,
            "variance": parts,
        }
    )
    output.say(f"{out}: {len(table)} measurements of {', '.join(sorted(table['target'].unique()))}")
    show_variance(parts, output)
    if flagged:
        output.note(f"{flagged} measurements carry a flag; `bayesperf doctor` says what disturbs this machine")
    if len(failures):
        reasons = ", ".join(f"{reason} ({n})" for reason, n in failures["reason"].value_counts().items())
        output.note(f"{len(failures)} points could not be measured: {reasons}")
