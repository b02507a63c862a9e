"""When do two posterior samples give the same numbers?

Quantiles of two samples of one posterior differ by their Monte-Carlo errors alone. So it is counted which share of the
second sample lies below each published quantile: that share differs from the quantile's level p with variance
p (1 - p) (1/n + 1/m), where n and m are the effective sample sizes of the two (ArviZ's, after Vehtari, Gelman, Simpson,
Carpenter and Buerkner 2021; the smaller of those for that quantile and for the bulk). After an arcsine transform, which
makes the variance the same at all levels, the largest difference of all, in standard errors, is held against a bound
that two samples of one posterior exceed with probability `alpha` at most: Sidak's, for as many numbers as there are.

Counting shares needs no estimate of the density at a quantile. With one (the usual standard error of a quantile) such a
rule raised false alarms at twice its nominal rate in the simulation of ``tests/verification/test_criterion.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy.stats
from arviz_stats.base import array_stats

from bayesperf.model import Floats

if TYPE_CHECKING:
    from bayesperf.model import Quantity

__all__ = ["ALPHA", "LEVELS", "bound", "compare_numbers", "words"]

LEVELS = (0.05, 0.5, 0.95)
"""Quantiles that are published of every parameter: the median and the ends of its 90 % interval."""

ALPHA = 0.01
"""Chance that a profile is called different although its numbers come from the same posterior."""


def bound(numbers: int, alpha: float = ALPHA) -> float:
    """Largest |z| that counts as Monte-Carlo error among so many numbers.

    Quantiles of one parameter, and parameters of one fit, are correlated; Sidak's bound then is wider than needed.
    """
    each = -np.expm1(np.log1p(-alpha) / max(numbers, 1))
    return float(scipy.stats.norm.isf(each / 2))


def words(numbers: int, alpha: float = ALPHA) -> str:
    """The rule, in words."""
    return (
        f"the shares of the second sample below the {numbers} published medians and interval ends differ from their "
        f"levels by at most {bound(numbers, alpha):.2f} Monte-Carlo standard errors, as two samples of one posterior "
        f"do with a probability of {1 - alpha:.0%}"
    )


def compare_numbers(
    published: Sequence[Quantity],
    again: Sequence[Quantity],
    chains: tuple[int, int],
    *,
    survivors: float | None = None,
    alpha: float = ALPHA,
) -> pd.DataFrame:
    """Compare the quantiles of named parameters of two posterior samples.

    Parameters
    ----------
    published, again
        The same parameters in the same order, draws of all chains joined.
    chains
        How many chains each has.
    survivors
        Effective number of draws that an update left of its fit, where both samples went through one.
    alpha
        Of `bound`.

    Returns
    -------
    DataFrame
        One row per parameter and level: parameter, target, label, unit, level, published, refit, z, same.
    """
    old, new = (
        np.stack([np.asarray(quantity.draws, dtype=float).reshape(n, -1) for quantity in some], axis=-1)
        for some, n in zip((published, again), chains, strict=True)
    )
    values = [np.quantile(draws.reshape(-1, draws.shape[-1]), LEVELS, axis=0) for draws in (old, new)]
    z = np.stack([_difference(old, new, level, row, survivors) for level, row in zip(LEVELS, values[0], strict=True)])
    most = bound(z.size, alpha)
    return pd.DataFrame(
        [
            {
                "parameter": quantity.name,
                "target": quantity.target,
                "label": quantity.label,
                "unit": quantity.unit,
                "level": level,
                "published": float(values[0][row, column]),
                "refit": float(values[1][row, column]),
                "z": float(z[row, column]),
                "same": bool(abs(z[row, column]) <= most),
            }
            for column, quantity in enumerate(published)
            for row, level in enumerate(LEVELS)
        ]
    )


def _difference(old: Floats, new: Floats, level: float, value: Floats, survivors: float | None) -> Floats:
    """Share of the new sample below the old one's quantiles, less their level, in standard errors, (parameter,)."""
    # Half of what is equal: a parameter that no draw moves is the same, if it is.
    below = ((new < value).mean(axis=(0, 1)) + (new <= value).mean(axis=(0, 1))) / 2.0
    still = (new == value).all(axis=(0, 1)) & (old == value).all(axis=(0, 1))
    sizes = [_effective(draws, level, survivors) for draws in (old, new)]
    error = 0.5 * np.sqrt(1.0 / sizes[0] + 1.0 / sizes[1])
    return np.where(still, 0.0, (np.arcsin(np.sqrt(below)) - np.arcsin(np.sqrt(level))) / error)


def _effective(draws: Floats, level: float, survivors: float | None) -> Floats:
    """Effective sample size for a quantile of every parameter, of draws (chain, draw, parameter)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        at_quantile = array_stats.ess(draws, method="quantile", prob=level, chain_axis=0, draw_axis=1)
        bulk = array_stats.ess(draws, method="bulk", chain_axis=0, draw_axis=1)
    n = float(draws.shape[0] * draws.shape[1])
    # Estimates of short chains scatter, and the largest difference finds the largest of them: the smaller of two.
    size = np.minimum(np.asarray(at_quantile, dtype=float), np.asarray(bulk, dtype=float))
    # Draws that are all the same have no effective size: each counts. Those that an update copied and moved are fewer
    # than they seem.
    size = np.where(np.isfinite(size), size, n)
    return size if survivors is None else size * min(1.0, survivors / n)
