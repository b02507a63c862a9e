"""Where the scatter of repeats comes from, and which parameters rest on their prior."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayesperf.configurations import records
from bayesperf.measure.variance import variance_parts
from bayesperf.report.document import Sensitivity, Spread

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["sensitivities", "spreads"]

MOST_NUMBERS = 4_000_000
"""Draws of all parameters together for which prior sensitivity is computed on the way: some seconds."""


def spreads(table: pd.DataFrame) -> list[Spread]:
    """Relative standard deviations within processes, between processes and between campaigns, by target and probe."""
    names = [name for name in Spread.model_fields if name not in ("target", "probe", "rows")]
    return [
        Spread(
            target=str(row["target"]),
            probe=str(row["probe"]),
            rows=int(row["rows"]),
            **{name: _finite(row[name]) for name in names},
        )
        for row in records(variance_parts(table))
    ]


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def sensitivities(profile: Profile) -> tuple[dict[tuple[str, str, str], Sensitivity], str]:
    """Power-scaling sensitivity of every named parameter; the second value says why there is none, if so."""
    groups = set(profile.tree.children)
    if not {"log_prior", "log_likelihood"} <= groups:
        return {}, "not computed: the profile holds no densities (an update keeps none); fit all rows together"
    posterior = profile.tree["posterior"]
    if posterior.sizes["chain"] < 2:
        return {}, "not computed: its noise is judged between chains, and there is one"
    n = posterior.sizes["chain"] * posterior.sizes["draw"]
    named = len(profile.parameters())
    if n * named > MOST_NUMBERS:
        return {}, "not computed here, it would take minutes: bayesperf.checks.sensitivity(profile)"
    # The checks bring the libraries of inference, which a page alone does not need.
    from bayesperf import checks

    found = {
        (row["parameter"], row["target"], row["label"]): Sensitivity(
            prior=_finite(row["prior"]), likelihood=_finite(row["likelihood"]), diagnosis=row["diagnosis"]
        )
        for row in records(checks.sensitivity(profile))
    }
    return found, "computed"
