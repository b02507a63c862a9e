"""Leave-one-out of configurations from the stored log likelihood (PSIS-LOO, Vehtari, Gelman and Gabry 2017)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import arviz_stats as azs
import numpy as np
import pandas as pd
import xarray as xr
from arviz_stats.base import array_stats

from bayesperf.checks.adjust import holm
from bayesperf.checks.observed import LOG_TIME
from bayesperf.checks.predictive import observations, observed_name, posterior_predictive

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["ROW_WISE", "Loo", "LooPit", "loo", "loo_pit"]

ROW_WISE = (
    "Row-wise: one configuration is left out while all others of its campaign and target stay, so their shared effects "
    "are taken as known, not integrated out. This judges the fit of this campaign; for another campaign or target use "
    "leave_out(by='campaign') or leave_out(by='target')."
)

LEAST = 5
"""Configurations of a group below which its LOO-PIT values are not tested."""


@dataclass(frozen=True)
class Loo:
    """Leave-one-out log score of the fitted configurations.

    Parameters
    ----------
    elpd
        ArviZ's ``ELPDDataLOO``: elpd, se, p, and by observation elpd_i and pareto_k. Densities are of log time.
    groups
        One row per target and operation: n, elpd (mean a configuration), se (of that mean), worst_k, bad_k (how many
        are above ArviZ's ``good_k``).
    notes
        What the numbers mean, and ArviZ's warnings.
    """

    elpd: Any
    groups: pd.DataFrame
    notes: tuple[str, ...]


@dataclass(frozen=True)
class LooPit:
    """Leave-one-out probability integral transform of the fitted configurations.

    Parameters
    ----------
    pit
        Probability of a time at most as long, given all other configurations, (observation,); uniform where predictions
        are calibrated.
    p
        Of uniformity over all, by ArviZ's test for dependent values (``pot_c``).
    groups
        One row per target and operation with enough configurations: n, p (adjusted over groups, Holm).
    notes
        As of `Loo`.
    """

    pit: xr.DataArray
    p: float
    groups: pd.DataFrame
    notes: tuple[str, ...]


def loo(profile: Profile) -> Loo:
    """Estimate how well each configuration is predicted from all others.

    Parameters
    ----------
    profile
        A fit.

    Returns
    -------
    Loo
        With the Pareto k of every configuration: where it is above ``good_k``, importance sampling cannot say what the
        posterior without that configuration is, and its score is not to be trusted.
    """
    with _noted() as said:
        elpd = azs.loo(_tree(profile), pointwise=True, var_name=LOG_TIME)
    table = pd.DataFrame({"elpd": elpd.elpd_i.values, "k": elpd.pareto_k.values, **_names(profile)})
    by = table.groupby(["target", "op"], sort=False)
    groups = by.agg(n=("elpd", "size"), elpd=("elpd", "mean"), se=("elpd", "sem"), worst_k=("k", "max"))
    groups["bad_k"] = by["k"].agg(lambda k: int((k > elpd.good_k).sum()))
    return Loo(elpd, groups.reset_index(), (ROW_WISE, *_about_k(elpd), *said))


def loo_pit(profile: Profile, seed: int = 0) -> LooPit:
    """Where each configuration lies in its prediction from all others.

    Parameters
    ----------
    profile
        A fit.
    seed
        Of the replicated noise.
    """
    tree = _tree(profile)
    with _noted() as said:
        elpd = azs.loo(tree, pointwise=True, var_name=LOG_TIME)
        predictive = posterior_predictive(profile, draws=None, seed=seed)
        tree = xr.DataTree.from_dict({**_groups(tree), **_groups(predictive)})
        weights, k = ({LOG_TIME: v} for v in (elpd.log_weights, elpd.pareto_k))
        found = azs.loo_pit(
            tree, var_names=LOG_TIME, log_weights=xr.Dataset(weights), pareto_k=xr.Dataset(k), pareto_pit=True
        )[LOG_TIME]
        names = pd.DataFrame(_names(profile))
        p = _uniform(found.values)
        groups = [
            {"target": target, "op": op, "n": len(part), "p": _uniform(found.values[part.index])}
            for (target, op), part in names.groupby(["target", "op"], sort=False)
            if len(part) >= LEAST
        ]
    table = pd.DataFrame(groups, columns=["target", "op", "n", "p"])
    return LooPit(found, p, table.assign(p=holm(table["p"])), (ROW_WISE, *_about_k(elpd), *said))


def _uniform(pit: Any) -> float:
    return float(array_stats.uniformity_test(np.asarray(pit, dtype=float), method="pot_c")[0])


def _tree(profile: Profile) -> xr.DataTree:
    name = observed_name(profile)
    likelihood = profile.tree["log_likelihood"].to_dataset()[[name]].rename({name: LOG_TIME})
    groups = {"posterior": profile.tree["posterior"].to_dataset(), "log_likelihood": likelihood}
    return xr.DataTree.from_dict({**groups, "log_likelihood": likelihood.assign_coords(observations(profile))})


def _groups(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    return {name: node.to_dataset() for name, node in tree.children.items()}


def _names(profile: Profile) -> dict[str, Any]:
    seen = profile.model.observations(profile.inference.encoded)
    return {name: seen[name].to_numpy() for name in ("target", "op")}


def _about_k(elpd: Any) -> list[str]:
    bad = int((elpd.pareto_k.values > elpd.good_k).sum())
    if not bad:
        return []
    return [
        f"{bad} of {elpd.n_data_points} configurations have a Pareto k above {elpd.good_k:.2f}: each moves the "
        "posterior so much that its leave-one-out prediction is not known. They are outliers, or alone in their cell: "
        "see the column bad_k, and leave_out(by='op') for an exact refit."
    ]


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Collect warnings as texts: they are part of the result, where a log would lose them."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += dict.fromkeys(str(w.message) for w in caught)
