"""``bayesperf diff``: what moved between two profiles of one target?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.cli.options import AllowUnconverged, Confidence, Json, Page, Quiet, Seed
from bayesperf.cli.output import Output
from bayesperf.cli.summary import load

__all__ = ["HELP", "run"]

HELP = """Compare two profiles of one target: before and after a driver update, last month and today.

Prints for every parameter of both the ratio of new to old with its 90 % interval, the probability of a change beyond
--change, and a verdict: higher, lower, unchanged, or ambiguous where the probability --confidence is not reached. What
campaigns differ by anyway is no change, so small changes stay ambiguous until each side has seen several campaigns.
--out writes the difference as one HTML file.

\b
    bayesperf diff before.nc after.nc
    bayesperf diff before.nc after.nc --change 0.1 --target my-gpu --out diff.html
"""


def run(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A profile.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Another profile of the same target.")],
    change: Annotated[float, typer.Option("--change", help="Relative change that matters.")] = 0.05,
    confidence: Confidence = 0.95,
    target: Annotated[str | None, typer.Option("--target", help="Compare this target only.")] = None,
    allow_unconverged: AllowUnconverged = False,
    out: Page = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two profiles."""
    output = Output(json=json, quiet=quiet)
    before, after = load(old), load(new)
    from bayesperf.prediction.diff import diff

    found = diff(
        before,
        after,
        change=change,
        confidence=confidence,
        target=target,
        seed=seed,
        allow_unconverged=allow_unconverged,
    )
    for remark in found.notes:
        output.note(f"note: {remark}")
    if out is not None:
        found.to_html(out)
    output.document(
        {
            "targets": found.targets,
            "change": change,
            "confidence": confidence,
            "any_changed": found.any_changed,
            "parameters": found.parameters,
            "only_old": found.only_old,
            "only_new": found.only_new,
        }
    )
    names = ("verdict", "target", "label", "old", "new", "unit", "ratio", "ratio_lower", "ratio_upper", "p_changed")
    heads = ("verdict", "target", "parameter", "old", "new", "unit", "new / old", "from", "to", f"P(> {change:.0%})")
    rows = [[*(row[name] for name in names), row["advice"]] for row in found.parameters.to_dict(orient="records")]
    output.table([*heads, "advice"], rows)
    if out is not None:
        output.say(f"wrote {out}")
