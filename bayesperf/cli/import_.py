"""``bayesperf import``: other tools' outputs into the measurement table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.options import Json, Quiet, Targets
from bayesperf.cli.output import Output

__all__ = ["HELP", "run"]

HELP = """Read what other tools printed into one measurement table, with its provenance.

FORMAT is one of `bayesperf list formats`, or auto. Log noise around the tables is skipped; rows without a measurement,
contradictions and assumptions are reported. Rates above the spec sheet's ceiling, zero sizes, copied rows and the like
are marked in the column flags and left out of fits, by rules that are printed and recorded.

\b
    bayesperf import nccl-tests allreduce.txt allgather.txt --campaign monday --out nccl.parquet
    bayesperf import generic results.csv --mapping results.toml --out results.parquet
"""


def run(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help="Format of all files, or auto.")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Outputs of the tool.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE.parquet", help="Parquet file to write.")],
    target: Annotated[str | None, typer.Option("--target", help="What was measured; the device when absent.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="Key into the spec sheets.")] = None,
    campaign: Annotated[
        str | None, typer.Option("--campaign", help="Name shared by what was measured together; a file when absent.")
    ] = None,
    targets: Targets = None,
    mapping: Annotated[
        Path | None, typer.Option("--mapping", metavar="MAP.toml", help="Describes a generic CSV or Parquet table.")
    ] = None,
    op: Annotated[str | None, typer.Option("--op", help="Operation, where the output leaves it open.")] = None,
    dtype: Annotated[str | None, typer.Option("--dtype", help="Element type, where the output leaves it open.")] = None,
    n_devices: Annotated[int | None, typer.Option("--n-devices", min=1, help="Ranks, where not printed.")] = None,
    buffer_bytes: Annotated[
        int | None, typer.Option("--buffer-bytes", min=1, help="Copy size of nvbandwidth's text output.")
    ] = None,
    statistic: Annotated[
        str | None, typer.Option("--statistic", help="mean, min or max, of tools that print several.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Import other tools' outputs."""
    from bayesperf.datasets import targets as known_targets
    from bayesperf.formats import import_files
    from bayesperf.specs import read_targets
    from bayesperf.store import write_measurements

    output = Output(json=json, quiet=quiet)
    result = import_files(
        form,
        files,
        target=target,
        device=device,
        campaign=campaign,
        targets=read_targets(targets) if targets else known_targets(),
        mapping=mapping,
        op=op,
        dtype=dtype,
        n_devices=n_devices,
        buffer_bytes=buffer_bytes,
        statistic=statistic,
    )
    write_measurements(result.table, out)
    output.document({"out": out, "targets": sorted(result.table["target"].unique()), **result.report.as_dict()})
    output.say(result.report.text())
    excluded = result.report.quality.excluded
    left_out = f" ({excluded} left out of fits)" if excluded else ""
    output.say(f"{out}: {len(result.table)} rows of {result.table['target'].nunique()} target(s){left_out}")
