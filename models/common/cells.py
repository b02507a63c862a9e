"""Pieces of a PyMC model that hierarchies share: members of a level, spreads, noise and campaigns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt

__all__ = ["MIN_MEMBERS", "NoisePriors", "campaign_effects", "cells", "level_spread", "noise_scales", "sampled_members"]

MIN_MEMBERS = 3
"""A level of which the rows determine fewer members does not teach its own spread: it is fixed at the prior median.
Others may lie anywhere without the rows objecting, such as compute rates of operations that memory bounds."""

Pair = tuple[float, float]


class NoisePriors(Protocol):
    """Priors that `noise_scales` and `campaign_effects` read; all are on log scales, see the models' own `priors`."""

    @property
    def misfit(self) -> Pair:
        """Of what the model gets wrong about a configuration."""

    @property
    def repeat(self) -> Pair:
        """Of the difference between repeats."""

    @property
    def tail(self) -> float:
        """Degrees of freedom of the noise."""

    @property
    def tail_rows(self) -> int:
        """From how many observations they are learned."""

    @property
    def campaign(self) -> Pair:
        """Of the spread between campaigns."""

    @property
    def campaign_vector(self) -> float:
        """Scale of a campaign's effect on each term."""


def level_spread(name: str, median: float, members: int) -> Any:
    """Scale of a level: learned from enough members, else fixed at the prior median (and stored as if drawn)."""
    if members >= MIN_MEMBERS:
        return pm.LogNormal(name, np.log(median), 0.5)
    return pm.Deterministic(name, pt.as_tensor(np.float64(median)))


def cells(name: str, location: Any, scale: Any, informed: Any, dim: str | tuple[str, ...], leaning: Any = 0.0) -> Any:
    """Hierarchical members, named, on their dim; see `sampled_members`."""
    return pm.Deterministic(name, sampled_members(name, location, scale, informed, dim, leaning)[1], dims=dim)


def sampled_members(
    name: str, location: Any, scale: Any, informed: Any, dim: str | tuple[str, ...], leaning: Any = 0.0
) -> tuple[Any, Any]:
    """What is sampled of members, and their values: centred where their data determine them, non-centred where the
    prior does.

    The centred are sampled less what they lean on: what their data determine is the difference.
    """
    centred = pt.as_tensor(informed)
    where = pt.switch(centred, location - leaning, 0.0)
    raw = pm.Normal(f"{name}_raw", where, pt.switch(centred, scale, 1.0), dims=dim)
    return raw, pt.switch(centred, raw + leaning, location + scale * raw)


def noise_scales(
    p: dict[str, Any], priors: NoisePriors, spreads: Mapping[str, float], centred: Mapping[str, Any], dim: str,
    observations: int,
) -> None:  # fmt: skip
    """Add the scales of noise by cell, ``misfit`` and ``repeat`` as far as `spreads` between cells name them, and the
    degrees of freedom, ``tail``, to the parameters `p`.
    """
    for name, between in spreads.items():
        p[f"{name}_mean"] = pm.Normal(f"{name}_mean", *getattr(priors, name))
        log_scale = cells(f"log_{name}", p[f"{name}_mean"], between, centred[name], dim)
        p[name] = pm.Deterministic(name, pt.exp(log_scale), dims=dim)
    if observations >= priors.tail_rows:
        p["tail"] = pm.Deterministic("tail", 2.0 + pm.LogNormal("tail_raw", np.log(priors.tail - 2.0), 0.5))
    else:
        # It trades off with the scale.
        p["tail"] = pm.Deterministic("tail", pt.as_tensor(np.float64(priors.tail)))


def campaign_effects(p: dict[str, Any], priors: NoisePriors) -> None:
    """Add campaign effects, for tables in which some target was measured in more than one campaign.

    With one campaign each, their spread cannot be learned and sampling it only makes divergences: parameters are
    then those of that campaign, and the prediction for a fresh one adds the difference of two effects.
    """
    p["campaign_spread"] = pm.LogNormal("campaign_spread", *priors.campaign)
    p["campaign_vector_spread"] = pm.HalfNormal("campaign_vector_spread", priors.campaign_vector)
    common = pm.Normal("campaign_raw", 0.0, 1.0, dims="campaign_cell")
    vector = pm.Normal("campaign_vector_raw", 0.0, 1.0, dims=("campaign_cell", "term"))
    p["campaign"] = pm.Deterministic("campaign", p["campaign_spread"] * common, dims="campaign_cell")
    p["campaign_vector"] = pm.Deterministic(
        "campaign_vector", p["campaign_vector_spread"] * vector, dims=("campaign_cell", "term")
    )
