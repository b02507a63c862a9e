"""Options that every kind of prediction shares, and the circumstances that they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from bayesperf.errors import InputError
from bayesperf.model import Request

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PredictOptions", "request_of"]


class PredictOptions(TypedDict, total=False):
    """Options of `Profile.predict`, which says what they mean and what their defaults are."""

    campaign: str | None
    stack: str | None
    mean: bool
    draws: int
    seed: int
    targets: pd.DataFrame | None
    allow_unconverged: bool


def request_of(campaign: str | None, stack: str | None, mean: bool) -> Request:
    """Circumstances asked for: a measured campaign, the mean over campaigns, or a fresh one.

    Raises
    ------
    InputError
        A campaign and the mean at once.
    """
    if mean and campaign is not None:
        raise InputError("the mean over campaigns (mean=, --mean) and one campaign exclude each other: name one")
    return Request(campaign, stack, "mean" if mean else "fresh")
