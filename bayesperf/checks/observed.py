"""Predictive distributions of configurations that were measured, as the checks need them: of each configuration's
median over repeats, in log time, without sampling anything anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.special

from bayesperf.configurations import Configurations, configurations
from bayesperf.errors import InputError
from bayesperf.model import Draws, Floats, Request
from bayesperf.schema import SHAPE_COLUMNS

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = [
    "LOG_TIME",
    "MEASURED",
    "Predictive",
    "fitted_blocks",
    "fitted_configurations",
    "labels_of",
    "predictive_of",
]

LOG_TIME = "log_time"
"""Name of the observations in every group that the checks hand to ArviZ."""

MEASURED = Request(effect="none", own=True)
"""Each configuration in the campaign and stack that it was measured in."""

MOST_VALUES = 4_000_000
"""Draws times configurations held at a time: 32 MB an array."""


@dataclass(frozen=True)
class Predictive:
    """Predictive distribution of configurations, one Student-t per draw.

    Parameters
    ----------
    observed
        Log of the measured time, the median over repeats, (configuration,), log seconds.
    log_time
        Log time without noise, (draw, configuration), log seconds.
    scale
        Scale of the noise of that median, (draw, configuration).
    tail
        Degrees of freedom, (draw,).
    notes
        What was assumed.
    """

    observed: Floats
    log_time: Floats
    scale: Floats
    tail: Floats
    notes: tuple[str, ...] = ()

    def pit(self) -> Floats:
        """Probability of a time at most as long as the measured one, over all draws, (configuration,)."""
        return np.asarray(scipy.special.stdtr(self.tail[:, None], self._standardised()).mean(axis=0))

    def log_density(self) -> Floats:
        """Log density of the measured log time under each draw, (draw, configuration)."""
        tail = self.tail[:, None]
        norm = scipy.special.gammaln((tail + 1) / 2) - scipy.special.gammaln(tail / 2) - 0.5 * np.log(tail * np.pi)
        return np.asarray(norm - np.log(self.scale) - (tail + 1) / 2 * np.log1p(self._standardised() ** 2 / tail))

    def draw(self, rng: np.random.Generator) -> Floats:
        """One measurement of every configuration under each draw, (draw, configuration), log seconds."""
        return np.asarray(self.log_time + self.scale * rng.standard_t(self.tail[:, None], size=self.scale.shape))

    def _standardised(self) -> Floats:
        return (self.observed - self.log_time) / self.scale


def fitted_configurations(profile: Profile) -> Configurations:
    """Configurations as the model observed them, one entry per observation, in the model's order."""
    seen = profile.model.observations(profile.inference.encoded)
    place = {name: at for at, ids in enumerate(seen["measurement_ids"]) for name in ids}
    code = profile.table["measurement_id"].map(place)
    known = code.notna().to_numpy()
    summary = configurations(profile.table[known], code[known].to_numpy(np.intp))
    if len(summary.ids) != len(seen):
        raise InputError(
            f"model {profile.model_name!r} names {len(seen) - len(summary.ids)} observations whose measurements are "
            "not in the profile's table; its `observations` must list fitted measurement ids"
        )
    # What the model calls the time of a configuration is what it was fitted to.
    return replace(summary, log_time=seen["log_time"].to_numpy(float))


def predictive_of(
    profile: Profile, summary: Configurations, request: Request, draws: Draws, rng: np.random.Generator
) -> Predictive:
    """Predict the median over repeats of measured configurations.

    Parameters
    ----------
    profile
        The fit.
    summary
        Configurations, fitted or held out.
    request
        In which campaign: `MEASURED`, or a fresh one.
    draws
        Posterior draws.
    rng
        Of whatever was not measured, such as the effect of a fresh campaign.
    """
    inference = profile.inference
    said = inference.model.predict(inference.encoded, draws, summary.first, request, profile.spec_sheets, rng)
    scale = np.sqrt(said.misfit**2 + (said.repeat**2 + summary.within) * summary.weight)
    return Predictive(summary.log_time, said.log_time, scale, np.asarray(said.tail, dtype=float), tuple(said.notes))


def fitted_blocks(
    profile: Profile, summary: Configurations, draws: Draws
) -> Iterator[tuple[npt.NDArray[np.intp], Predictive]]:
    """Predictive distributions of fitted configurations, block by block, so that large tables fit into memory.

    Nothing about a fitted configuration in its own campaign is random but the noise, so blocks change nothing.

    Yields
    ------
    tuple
        Positions of the block's configurations, and their predictive distribution.
    """
    rng = np.random.default_rng(0)
    size = max(1, MOST_VALUES // len(next(iter(draws.values()))))
    for start in range(0, len(summary.ids), size):
        at = np.arange(start, min(start + size, len(summary.ids)))
        yield at, predictive_of(profile, _some(summary, at), MEASURED, draws, rng)


def _some(summary: Configurations, at: npt.NDArray[np.intp]) -> Configurations:
    return Configurations(
        first=summary.first.iloc[at].reset_index(drop=True),
        code=np.arange(len(at)),
        ids=[summary.ids[i] for i in at],
        log_time=summary.log_time[at],
        count=summary.count[at],
        weight=summary.weight[at],
        square=summary.square[at],
        within=summary.within[at],
    )


def labels_of(first: pd.DataFrame) -> pd.DataFrame:
    """Columns that name a configuration to a reader: target, operation, circumstances, work and shape."""
    names = ("target", "op", "dtype", "campaign", "stack", "condition", "flops", "bytes", *SHAPE_COLUMNS)
    return first[[name for name in names if name in first and first[name].notna().any()]].copy()
