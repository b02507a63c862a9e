"""What a validation found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile
    from bayesperf.validation.moved import Moved

__all__ = ["Validation"]


@dataclass(frozen=True)
class Validation:
    """Held-out measurements beside their predictions.

    Parameters
    ----------
    groups
        One row per target and regime: group, target, regime, verdict (``transfers``, ``fails``, ``undecided``),
        reason, advice, n_rows, p_same and p_fresh (family-wise adjusted p-values of the two estimands, after the
        tolerance is granted), shift, shift_lower, shift_upper (realised log shift with its 90 % interval),
        spread_ratio (residual spread over predicted), coverage_90; of a group that fails: moved (what did, in words),
        moved_advice (what to do next), moved_explanation, moved_probability (of the most probable explanation),
        moved_shift, moved_shift_lower, moved_shift_upper (its change of the time as a share, with 90 % interval).
    rows
        One row per held-out configuration: group, measurement_ids, target, op, dtype and shape columns, measured_s,
        median_s, lower_s, upper_s (90 %), inside, pit, limit, supported, unsupported_features.
    scores
        Mean CRPS and 90 % interval score of log time for the model and for the baseline, by group and over all;
        lower is better.
    settings
        Stated beforehand: tolerance, alpha, estimand, seed.
    notes
        What was assumed.
    moved
        All explanations of each group that fails, with their probabilities, by group.
    profile, heldout
        What was validated, and on which rows.
    """

    groups: pd.DataFrame
    rows: pd.DataFrame
    scores: pd.DataFrame
    settings: Mapping[str, Any]
    notes: tuple[str, ...]
    moved: Mapping[str, Moved]
    profile: Profile
    heldout: pd.DataFrame

    @property
    def any_fails(self) -> bool:
        """Whether any group fails to transfer."""
        return bool((self.groups["verdict"] == "fails").any())

    def to_html(self, path: str | Path) -> None:
        """Write the validation report, one self-contained file, atomically."""
        from bayesperf.report.page import write_page
        from bayesperf.report.validation import validation_page

        write_page(Path(path), validation_page(self.profile, self, self.heldout))

    @property
    def coverage(self) -> float:
        """Share of held-out configurations inside their 90 % interval."""
        return float(self.rows["inside"].mean())
