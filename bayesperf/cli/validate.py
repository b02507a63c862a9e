"""``bayesperf validate``: does the profile hold on measurements it has not seen?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.options import Alpha, Json, ProfileFile, Quiet, Seed, Tolerance
from bayesperf.cli.output import Output
from bayesperf.cli.summary import load, show_verdicts, validation_facts

__all__ = ["HELP", "run"]

HELP = """Compare a profile with measurements that it was not fitted to, regime by regime.

A regime is what limits a workload (compute, memory, ...) inside or outside of what was measured. Each one transfers,
fails, or stays undecided, with advice. Of HELDOUT the rows with role=heldout are used, or all rows when no row has a
role. Writes verdicts.csv and validation.html into the folder --out.

Exit code 3 when any regime fails to transfer, else 0.

\b
    bayesperf validate host.nc measurements.parquet --out checked
    bayesperf validate host.nc tomorrow.parquet --tolerance 0.05 --json
"""


def run(
    profile: ProfileFile,
    heldout: Annotated[Path, typer.Argument(metavar="HELDOUT", help="Measurements, CSV or Parquet.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write into.")] = Path(),
    tolerance: Tolerance = 0.1,
    alpha: Alpha = 0.05,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Validate a profile."""
    from bayesperf.report.validation import write_validation
    from bayesperf.store import read_measurements

    output = Output(json=json, quiet=quiet)
    table = read_measurements(heldout)
    fitted = load(profile)
    checked = fitted.validate(table, tolerance=tolerance, alpha=alpha, seed=seed)
    files = write_validation(fitted, checked, out, heldout=table)
    for remark in checked.notes:
        output.note(f"note: {remark}")
    output.document({**validation_facts(checked), "files": files})
    show_verdicts(checked, output)
    output.say(f"wrote {' and '.join(str(f) for f in files)}")
    if checked.any_fails:
        raise typer.Exit(3)
