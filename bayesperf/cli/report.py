"""``bayesperf report``: the capability profile, as a page and as a document."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.options import Json, Quiet, Seed
from bayesperf.cli.output import Output
from bayesperf.cli.summary import load
from bayesperf.errors import InputError

__all__ = ["HELP", "run"]

HELP = """Write a capability profile: one HTML file that needs no network, or the same as a JSON document.

Says where the profile may be believed, what bounds which workloads, every parameter with its interval beside the spec
sheet and what it rests on, and from which measurements. With --heldout it also says, regime by regime, whether the
profile transfers to those measurements. A file named *.json gets the document, --json prints it; --schema prints its
JSON Schema.

\b
    bayesperf report host.nc --out host.html
    bayesperf report out/profile.nc --heldout out/measurements.parquet --out out/report.html
    bayesperf report host.nc --out host.json
    bayesperf report --schema
"""


def run(
    profile: Annotated[
        Path | None, typer.Argument(metavar="PROFILE", help="A profile written by `fit` or `characterize`.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File to write, *.html or *.json; beside the profile when absent."),
    ] = None,
    heldout: Annotated[
        Path | None, typer.Option("--heldout", metavar="TABLE", help="Measurements to validate against.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the document and exit.")] = False,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report."""
    output = Output(json=json, quiet=quiet)
    if schema:
        from bayesperf.report.document import schema_text

        typer.echo(schema_text().rstrip("\n"))
        return
    if profile is None:
        raise InputError("name the profile: bayesperf report PROFILE [--out FILE]")
    if out is not None and out.suffix not in (".html", ".htm", ".json"):
        raise InputError(f"{out}: a report is an HTML page or a JSON document; name it *.html or *.json")
    fitted = load(profile)
    from bayesperf.report.capability import gather, page_of
    from bayesperf.report.page import write_page

    table = checked = None
    if heldout is not None:
        from bayesperf.store import read_measurements

        table = read_measurements(heldout)
        checked = fitted.validate(table, seed=seed)
    path = out or profile.with_suffix(".html")
    report = gather(fitted, validation=checked, measurements=table, seed=seed, title=path.stem)
    document = report.document.model_dump_json(indent=1)
    write_page(path, document + "\n" if path.suffix == ".json" else page_of(report))
    if json:
        typer.echo(document)
    output.say(f"wrote {path}")
