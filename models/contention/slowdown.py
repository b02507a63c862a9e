"""How much slower work runs beside others: predicted slowdowns with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from bayesperf.configurations import records
from bayesperf.errors import InputError
from bayesperf.model import Draws, Floats, Request
from bayesperf.models.contention.alone import BESIDE
from bayesperf.models.contention.catalogue import shape_of
from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.levels import TAIL
from bayesperf.models.contention.predict import slowdowns
from bayesperf.models.roofline import Roofline
from bayesperf.schema import validate_workloads

if TYPE_CHECKING:
    from bayesperf.model import PerformanceModel

__all__ = ["slowdown"]


class Fit(Protocol):
    """What is needed of a profile."""

    @property
    def model(self) -> PerformanceModel:
        """The fitted model."""

    @property
    def inference(self) -> Any:
        """The fit."""

    @property
    def spec_sheets(self) -> pd.DataFrame | None:
        """Spec sheets of the fit."""

    def draws(self, group: str = "posterior", limit: int | None = None) -> Draws:
        """Posterior draws."""


def slowdown(
    profile: Fit,
    workloads: pd.DataFrame,
    *,
    interval: float = 0.9,
    draws: int = 1000,
    seed: int = 0,
    error: Floats | float = 0.0,
) -> pd.DataFrame:
    """Predict the ratio of the time beside others to the time alone.

    Errors of the time alone cancel in it, so it is known better than either. The interval is of a ratio of two
    measurements, noise of both included.

    Parameters
    ----------
    profile
        A profile of the model ``contention``.
    workloads
        Workloads with ``target`` and ``corunners``.
    interval
        Probability of the interval.
    draws, seed
        As of `Profile.predict`.
    error
        Relative standard error of measured ratios that the interval is to be compared with, (row,) or one for all.

    Returns
    -------
    DataFrame
        The workloads, with ``slowdown``, ``slowdown_lower`` and ``slowdown_upper``.

    Raises
    ------
    InputError
        The profile is of another model, or a workload lacks its target or co-runners.
    """
    encoded = profile.inference.encoded
    if not isinstance(encoded, Encoded):
        raise InputError(f"slowdowns need a profile of model 'contention', this is of {profile.model.name!r}")
    table = validate_workloads(workloads)
    for name in ("target", "corunners"):
        if name not in table or table[name].isna().any():
            raise InputError(f"slowdowns need the column {name!r} in every row")
    rng, chosen = np.random.default_rng(seed), profile.draws(limit=draws)
    found = slowdowns(encoded, chosen, table, _log_alone(profile, encoded, chosen, table, rng), rng)
    scale = np.sqrt(found.noise**2 + found.alone**2 + np.asarray(error, dtype=float) ** 2)
    noise = scale * rng.standard_t(TAIL, size=scale.shape)
    values = np.exp(found.log + found.wrong * rng.standard_normal(found.log.shape) + noise)
    tail = (1.0 - interval) / 2.0
    lower, median, upper = np.quantile(values, [tail, 0.5, 1.0 - tail], axis=0)
    return table.assign(slowdown=median, slowdown_lower=lower, slowdown_upper=upper)


def _log_alone(profile: Fit, encoded: Encoded, draws: Draws, table: pd.DataFrame, rng: np.random.Generator) -> Floats:
    """Log time that each is expected to take alone, (row,): by the roofline, NaN of those that were measured alone."""
    lacking = np.array([encoded.catalogue.exact(row["target"], shape_of(row)) is None for row in records(table)])
    found = np.full(len(table), np.nan)
    if lacking.any():
        victims = table[lacking].drop(columns=[name for name in BESIDE if name in table]).reset_index(drop=True)
        request = Request(effect="none")
        alone = Roofline().predict(encoded.solo, draws, victims, request, profile.spec_sheets, rng)
        found[lacking] = np.median(alone.log_time, axis=0)
    return found
