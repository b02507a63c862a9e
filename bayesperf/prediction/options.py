"""Options that every kind of prediction shares, and the circumstances that they ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from bayesperf.errors import InputError, UnknownNameError
from bayesperf.model import Request

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PredictOptions", "check_options", "request_of"]


class PredictOptions(TypedDict, total=False):
    """Options of `Profile.predict`, which says what they mean and what their defaults are."""

    campaign: str | None
    stack: str | None
    mean: bool
    draws: int
    seed: int
    targets: pd.DataFrame | None
    allow_unconverged: bool


def check_options(given: Iterable[str], known: type) -> None:
    """Refuse options, by their names, that `known`, a typed dictionary, does not have.

    Raises
    ------
    UnknownNameError
        Lists those that there are: a misspelt tolerance must not leave the default in place.
    """
    for name in given:
        if name not in known.__annotations__:
            raise UnknownNameError("option", name, known.__annotations__)


def request_of(campaign: str | None, stack: str | None, mean: bool) -> Request:
    """Circumstances asked for: a measured campaign, the mean over campaigns, or a fresh one.

    Raises
    ------
    InputError
        A campaign and the mean at once, or what is no name.
    """
    for kind, name in (("campaign", campaign), ("stack", stack)):
        if name is not None and not isinstance(name, str):
            raise InputError(f"a {kind} is given by its name, not by {name!r}")
    if mean and campaign is not None:
        raise InputError("the mean over campaigns (mean=, --mean) and one campaign exclude each other: name one")
    return Request(campaign, stack, "mean" if mean else "fresh")
