"""The likelihood of coded rows under draws of all members, as `build` writes it for the sampler.

Densities are SciPy's, in the array namespace's version: ``xp`` is `jax.numpy` or `numpy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.models.common.observed import widened
from bayesperf.models.roofline.coded import Encoded, Observations
from bayesperf.models.roofline.hierarchy import lacking_variance, members_of, row_terms
from bayesperf.models.roofline.physics import smooth_roofline

__all__ = ["log_likelihood"]


def log_likelihood(xp: Any, p: Mapping[str, Any], new: Observations, encoded: Encoded) -> Any:
    """Log likelihood of the observations, summed, (draw,).

    Parameters
    ----------
    xp
        Array namespace.
    p
        Draws of every member of `encoded`, (draw, ...).
    new
        Observations, coded in the labels of `encoded`.
    encoded
        Labels and sheets.
    """
    t, gamma = _densities(xp)
    codes, members = new.codes, members_of(encoded.labels)
    terms = row_terms(xp, p, codes, members, encoded.sheets)
    log_time = smooth_roofline(xp, *terms, p["sharpness"].reshape(-1, 1))
    if "campaign" in p:
        log_time = log_time + p["campaign"][:, codes.campaign]
    tail = xp.broadcast_to(p["tail"].reshape(-1, 1), (len(p["sharpness"]), 1))
    variance = p["misfit"][:, codes.noise] ** 2 + new.within + lacking_variance(p, codes, members)
    if "repeat" in p:
        variance = variance + p["repeat"][:, codes.noise] ** 2 * new.repeat_weight
    total = t.logpdf(new.log_time, tail, log_time, xp.sqrt(variance)).sum(axis=1)
    scatter = new.scatter
    if "repeat" in p and len(scatter.dof):
        expected = widened(p["repeat"][:, scatter.cell], tail, scatter.within)
        total = total + gamma.logpdf(scatter.square, scatter.dof / 2.0, 0.0, 2.0 * expected).sum(axis=1)
    return total


def _densities(xp: Any) -> tuple[Any, Any]:
    if xp is np:
        from scipy.stats import gamma, t
    else:
        from jax.scipy.stats import gamma, t
    return t, gamma
