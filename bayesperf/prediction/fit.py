"""`bayesperf.fit`: the public way from measurements to a profile."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from bayesperf.inference.infer import infer
from bayesperf.model import PerformanceModel
from bayesperf.prediction.profile import Profile

__all__ = ["fit"]


def fit(
    table: pd.DataFrame | Sequence[pd.DataFrame],
    targets: pd.DataFrame | None = None,
    model: str | PerformanceModel = "roofline",
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    progress: bool = False,
    attempts: int = 2,
) -> Profile:
    """Infer a model's parameters from measurements.

    Parameters
    ----------
    table
        Measurements (see the contract), or several tables; rows whose role is ``heldout`` are never fitted.
    targets
        Spec sheets, one row per device, or None.
    model
        Name of an installed model, or a model.
    draws, tune, chains
        Length of the sampling.
    seed
        Makes the fit repeatable; drawn and recorded when None.
    progress
        Show progress bars.
    attempts
        How often to sample, each time twice as long, until the diagnostics gate passes.

    Returns
    -------
    Profile
        ``profile.converged`` says whether the gate passed; if not, ``profile.gate`` says what to do.

    Raises
    ------
    TableError
        A row breaks the contract.
    CeilingError
        A rate is physically impossible, and no rule has marked the row.
    """
    return Profile(
        infer(
            table,
            targets,
            model,
            draws=draws,
            tune=tune,
            chains=chains,
            seed=seed,
            progress=progress,
            attempts=attempts,
        )
    )
