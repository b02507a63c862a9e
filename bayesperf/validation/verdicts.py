"""From tests to verdicts: transfers, fails, undecided, each with its reason and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.stats

from bayesperf.model import Floats

__all__ = ["SPREAD_LIMIT", "Shift", "Verdict", "judge", "realised_shift"]

SPREAD_LIMIT = 1.5
"""Residuals may spread this many times wider than predicted and still count as transferred; as many times narrower,
the intervals are said to be wider than needed."""

CONFIDENCE = 0.9

MANY = 200
"""Configurations beyond which nobody is asked for more."""

UNITS = 20.0
"""Factor from which a shift is likely one of units."""


@dataclass(frozen=True)
class Shift:
    """Realised common shift of a group, log of measured over predicted, with its 90 % interval.

    Parameters
    ----------
    value, lower, upper
        Shift and interval.
    spread
        Standard deviation of one row around it.
    spread_ratio
        That over the predicted one.
    predicted
        Standard deviation with which the model expects such a shift, from its parameters and the campaign.
    campaign_share
        Share of that variance which only more campaigns would reduce.
    """

    value: float
    lower: float
    upper: float
    spread: float
    spread_ratio: float
    predicted: float
    campaign_share: float


def realised_shift(residual: Floats, noise: Floats, shared: Floats, fresh: Floats) -> Shift:
    """Estimate the shift that this campaign really had in a group.

    Parameters
    ----------
    residual
        Log measured over predicted, (row,).
    noise
        Predicted noise variance, (row,).
    shared, fresh
        Draws of what rows share, without and with a fresh campaign's effect, (draw, row).
    """
    n = len(residual)
    value = float(residual.mean())
    # Of the shift itself, and of rows around it: mean and trace of the covariance of rows, which is never formed.
    with_campaign, without = (float(draws.mean(axis=1).var(ddof=1)) for draws in (fresh, shared))
    around = float(noise.sum() * (1.0 - 1.0 / n) + shared.var(axis=0, ddof=1).sum() - n * without)
    expected = around / max(n - 1, 1)
    seen = float(residual.var(ddof=1)) if n > 1 else float(noise.mean())
    # Few rows say little of their own spread: the predicted one is never undercut.
    spread = float(np.sqrt(max(seen, float(noise.mean()))))
    half = float(scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, max(n - 1, 1))) * spread / np.sqrt(n)
    share = 1.0 - without / with_campaign if with_campaign > 0 else 0.0
    ratio = float(np.sqrt(seen / expected)) if n > 1 else 1.0
    return Shift(value, value - half, value + half, spread, ratio, float(np.sqrt(with_campaign)), max(share, 0.0))


@dataclass(frozen=True)
class Verdict:
    """A verdict with its reason and its advice."""

    name: Literal["transfers", "fails", "undecided"]
    reason: str
    advice: str


def judge(adjusted_p: float, shift: Shift, n: int, *, tolerance: float, alpha: float) -> Verdict:
    """Decide on one group.

    Parameters
    ----------
    adjusted_p
        Family-wise adjusted p-value, after the tolerance was granted.
    shift
        From `realised_shift`.
    n
        Rows of the group.
    tolerance
        Log shift that counts as nothing.
    alpha
        Family-wise error rate.
    """
    percent = f"{round(100 * float(np.expm1(shift.value))):+d}%"
    measured, first = f"measured {percent} against predicted", ""
    if abs(shift.value) > np.log(UNITS):
        one, other = ("measured", "predicted") if shift.value > 0 else ("predicted", "measured")
        measured, first = f"{one} {np.exp(abs(shift.value)):,.0f} times the time {other}", _UNITS
    if adjusted_p < alpha:
        reason = f"outside what the model expects (p = {adjusted_p:.2g}): {measured}"
        spread = f"residuals spread {shift.spread_ratio:.1f} times as predicted"
        return Verdict("fails", f"{reason}, {spread}", first + _REMEDY)
    within = shift.lower >= -tolerance and shift.upper <= tolerance
    if within and shift.spread_ratio <= SPREAD_LIMIT and n > 1:
        reason = f"shift {percent} lies inside the tolerance with 90 % confidence"
        # Intervals that are too wide are safe to use, and said to be so.
        narrow = shift.spread_ratio < 1.0 / SPREAD_LIMIT
        return Verdict("transfers", reason + "; intervals are wider than needed" * narrow, "")
    if within and n > 1:
        reason = f"no shift, but residuals spread {shift.spread_ratio:.2f} times as predicted"
        return Verdict("undecided", reason, "more configurations of this regime would settle the spread")
    if abs(shift.value) < tolerance:
        rows = _rows_needed(shift, n, tolerance)
        if rows <= MANY:
            reason = f"shift {percent}, but its interval reaches beyond the tolerance"
            return Verdict("undecided", reason, _more(rows - n))
        reason = f"rows differ by {100 * np.expm1(shift.spread):.0f}% among themselves: their mean says little"
        return Verdict("undecided", reason, "rows of these operations in the fit, not more held-out rows, would decide")
    reason = f"{measured}, which the model's own uncertainty allows"
    if shift.campaign_share > 0.5:
        advice = "more campaigns, not rows: their spread is what hides a shift of this size"
    else:
        advice = "fit more rows of these operations: what they depend on is uncertain"
    return Verdict("undecided", reason, first + advice)


_UNITS = "first check the units (time_s in seconds, flops and bytes as plain numbers); then "
_REMEDY = "do not use these predictions; add this regime's operations to the fit, or measure what moved"


def _more(rows: int) -> str:
    return f"about {rows} more configuration{'s' if rows > 1 else ''} of this regime would decide"


def _rows_needed(shift: Shift, n: int, tolerance: float) -> int:
    """More than `n` rows after which the 90 % interval of an unchanged shift would fit into the tolerance."""
    room = tolerance - abs(shift.value)
    rows = np.arange(n + 1, n + 2 + MANY)
    fits = scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, rows - 1) * shift.spread / np.sqrt(rows) <= room
    return int(rows[np.argmax(fits)]) if fits.any() else MANY + 1
