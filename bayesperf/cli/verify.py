"""``bayesperf verify``: is a profile what it says it is?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.options import Json, ProfileFile, Quiet
from bayesperf.cli.output import Output
from bayesperf.errors import InputError

__all__ = ["HELP", "run"]

HELP = """Verify a profile: its hashes, the rows it rests on, and, by fitting again, its numbers.

Recomputes the digests in the profile and says which row, variable or attribute is not what was written. With TABLES,
recomputes the ids of their rows from their content and compares the fitted rows with them, column by column. Then fits
the embedded rows again with the stored seed and settings: do the published medians and intervals come out again within
Monte-Carlo error? That takes as long as the fit did; --no-refit leaves it out.

With --report, a report's JSON document is computed again from the profile, and from TABLE where it was read beside
one, and compared value by value.

Exit code 1 when anything that could be checked failed.

\b
    bayesperf verify host.nc host.parquet
    bayesperf verify host.nc host.parquet --no-refit
    bayesperf verify host.nc host.parquet --report host.json --no-refit
"""


def run(
    profile: ProfileFile,
    tables: Annotated[
        list[Path] | None, typer.Argument(metavar="[TABLE...]", help="The measurements it was fitted to.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="A report of it, *.json: does it say what the profile says?"),
    ] = None,
    refit: Annotated[bool, typer.Option("--refit/--no-refit", help="Fit again and compare the numbers.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify a profile."""
    output = Output(json=json, quiet=quiet)
    for path in (profile, *(tables or []), *([report] if report else [])):
        # Before the libraries of inference take seconds to load.
        if not path.is_file():
            raise InputError(f"{path}: no such file")
    from bayesperf.verification import verify

    found = verify(profile, tables or [], report=report, refit=refit, progress=output.progress)
    output.document(
        {
            "passed": found.passed,
            "findings": [finding.to_dict() for finding in found.findings],
            "criterion": found.criterion,
            "numbers": found.numbers if found.numbers is not None else [],
        }
    )
    rows = [(finding.status, finding.what, finding.detail) for finding in found.findings]
    output.table(["", "checked", "found"], rows)
    for finding in found.findings:
        for line in finding.lines():
            output.note(f"{finding.what}: {line}")
    if found.criterion:
        output.say(f"Same numbers: {found.criterion}.")
    output.say(f"{profile}: {'verified' if found.passed else 'NOT what it says it is'}")
    if not found.passed:
        raise typer.Exit(1)
