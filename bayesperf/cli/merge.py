"""``bayesperf merge``: several measurement tables into one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.options import Json, Quiet
from bayesperf.cli.output import Output
from bayesperf.cli.variance import show_variance

__all__ = ["HELP", "run"]

HELP = """Join measurement tables of several hosts or days into one file.

Rows keep their ids and their provenance; a row that is in several files is kept once. CSV and Parquet are read, ours
or anybody's that has the required columns; Parquet is written.

\b
    bayesperf merge monday.parquet tuesday.parquet --out both.parquet
"""


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Measurement tables.")],
    out: Annotated[Path, typer.Option("--out", help="Parquet file to write.")],
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Join measurement tables."""
    from bayesperf.measure.variance import variance_parts
    from bayesperf.store import concat, read_measurements, write_measurements

    output = Output(json=json, quiet=quiet)
    tables = [read_measurements(file) for file in files]
    given = sum(len(table) for table in tables)
    joined = concat(tables)
    write_measurements(joined, out)
    parts = variance_parts(joined)
    targets = sorted(joined["target"].unique())
    output.document({"out": out, "rows": len(joined), "given": given, "targets": targets, "variance": parts})
    repeated = given - len(joined)
    dropped = f" ({repeated} that several files share are kept once)" if repeated else ""
    output.say(f"{out}: {len(joined)} rows of {joined['target'].nunique()} target(s){dropped}")
    if (parts["campaigns"] > 1).any():
        show_variance(parts, output)
