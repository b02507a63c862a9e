"""Options that several verbs share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayesperf.errors import InputError

__all__ = [
    "AllowUnconverged",
    "Alpha",
    "Campaign",
    "Chains",
    "Confidence",
    "DrawnSeed",
    "Draws",
    "Interval",
    "Json",
    "Mean",
    "MeasuredCampaign",
    "Model",
    "OneTarget",
    "Page",
    "ProfileFile",
    "Quiet",
    "Seed",
    "Targets",
    "Tolerance",
    "check_interval",
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only: no progress, no summary.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of everything random; recorded.")]
DrawnSeed = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of everything random; drawn and recorded when absent."),
]
Campaign = Annotated[
    str | None,
    typer.Option(
        "--campaign", help="Name of this run, shared by what is measured together; the time of its start when absent."
    ),
]
Model = Annotated[str, typer.Option("--model", help="Model to fit; `bayesperf list models` shows them.")]
Targets = Annotated[
    Path | None,
    typer.Option("--targets", metavar="SPECS.csv", help="Spec sheets, one row per device: priors and ceilings."),
]
Draws = Annotated[int, typer.Option("--draws", min=1, help="Posterior draws per chain.")]
Chains = Annotated[int, typer.Option("--chains", min=1, help="Chains.")]
Tolerance = Annotated[
    float, typer.Option("--tolerance", min=0.0, help="Shift that is granted before a regime fails, as a share of time.")
]
Alpha = Annotated[
    float, typer.Option("--alpha", min=0.0, max=1.0, help="Chance of any false failure over all regimes together.")
]
Confidence = Annotated[
    float, typer.Option("--confidence", help="Probability from which a verdict is given; below it, ambiguous.")
]
OneTarget = Annotated[str | None, typer.Option("--target", help="Target; needed when the profile has several.")]
MeasuredCampaign = Annotated[
    str | None, typer.Option("--campaign", help="A campaign that was measured; absent: a fresh one.")
]
Mean = Annotated[bool, typer.Option("--mean", help="The average over campaigns: no campaign effect.")]
AllowUnconverged = Annotated[
    bool, typer.Option("--allow-unconverged", help="Go on although the diagnostics gate of the fit failed.")
]
Page = Annotated[Path | None, typer.Option("--out", metavar="FILE.html", help="Page to write.")]
Interval = Annotated[float, typer.Option("--interval", help="Probability of the predictive interval.")]
ProfileFile = Annotated[Path, typer.Argument(metavar="PROFILE", help="A profile written by `fit` or `characterize`.")]


def check_interval(probability: float) -> None:
    """Refuse what is no probability of an interval.

    Raises
    ------
    InputError
        Not between 0 and 1.
    """
    if not 0 < probability < 1:
        raise InputError(f"--interval {probability:g} is not a probability between 0 and 1, such as 0.9")
