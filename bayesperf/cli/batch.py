"""``bayesperf batch``: many fits, validations and reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesperf.cli.options import Json, Quiet
from bayesperf.cli.output import Output

if TYPE_CHECKING:
    from bayesperf.batch.run import Batch, Planned

__all__ = ["HELP", "run"]

HELP = """Fit, validate and report many times, as a TOML file says: data sets or tables, models, targets, options.

Jobs run one after another in this process, in --workers processes of this machine, or on the Dask cluster of
--scheduler. Each leaves profile.nc, report.html, verdicts.csv, validation.html and log.txt in a folder of its own, and
all together summary.html, summary.csv and summary.json. Jobs that are complete for the same settings and data are not
run again: after Ctrl-C, a crash or a change of the file, the same command does the rest.

Exit code 0 when all jobs are done, 1 when one failed or did not converge (the others run all the same), 2 for a bad
configuration; with --strict 3 when a regime fails to transfer.

\b
    bayesperf batch fleet.toml --dry-run
    bayesperf batch fleet.toml --workers 4
    bayesperf batch fleet.toml --scheduler tcp://10.0.0.5:8786 --strict
"""


def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="What to do; docs/batch.md has its keys.")],
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers run the jobs.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes of this machine that run jobs.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder to write into; absent: as the file says, else its name."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 when a regime fails to transfer.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the jobs; run none.")] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=2**31 - 1, help="In place of the seed in the file.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a batch."""
    from bayesperf.batch.run import batch, plan

    output = Output(json=json, quiet=quiet)
    if dry_run:
        show_plan(plan(config, out=out, seed=seed), output)
        return
    found = batch(
        config,
        scheduler=scheduler,
        workers=workers,
        out=out,
        seed=seed,
        progress=None if output.progress else False,
    )
    code = found.exit_code(strict=strict)
    output.document({"files": found.files, "exit_code": code, **found.document})
    summarise(found, output)
    if code:
        raise typer.Exit(code)


def show_plan(planned: list[Planned], output: Output) -> None:
    """Print the jobs."""
    asked = ("data", "model", "targets", "seed")
    output.document(
        [
            {"job": p.job.name, "complete": p.complete, "problem": p.job.problem, **{k: p.job.task[k] for k in asked}}
            for p in planned
        ]
    )
    output.table(
        ["job", "data", "model", "targets", "state"],
        [(p.job.name, p.job.task["data"], p.job.task["model"], _targets(p), _state(p)) for p in planned],
    )
    left = sum(not p.complete and p.job.problem is None for p in planned)
    output.say(f"{len(planned)} jobs, {left} to run")


def _targets(planned: Planned) -> str:
    return "+".join(planned.job.task["targets"] or []) or "all"


def _state(planned: Planned) -> str:
    if planned.job.problem is not None:
        return f"cannot run: {planned.job.problem}"
    return "complete" if planned.complete else "to run"


def summarise(found: Batch, output: Output) -> None:
    """Print one line per job, failures with their reason on standard error, and where the summary is."""
    rows = [
        (row["status"], row["job"], _verdicts(row), row.get("coverage_90"), row.get("seconds"))
        for row in found.table.astype(object).where(found.table.notna(), None).to_dict(orient="records")
    ]
    output.table(["status", "job", "regimes", "covered of 90%", "seconds"], rows)
    for job in found.jobs:
        if job["status"] == "unconverged":
            failed = ", ".join(check["name"] for check in job["gate"] if not check["passed"])
            output.note(f"{job['name']}: unconverged ({failed}): do not use its numbers")
        elif job["status"] != "done":
            output.note(f"{job['name']}: {job['status']}: {job.get('reason', '')}")
    output.say(f"wrote {found.files[0]}")


def _verdicts(row: Mapping[Any, Any]) -> str:
    words = [f"{row[name]} {name}" for name in ("fails", "undecided", "transfers") if row.get(name)]
    return ", ".join(words) or "-"
