"""Which parameters rest on the prior: power-scaling sensitivity (Kallioinen, Paananen, Buerkner and Vehtari 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import arviz_stats as azs
import numpy as np
import pandas as pd
import xarray as xr
from pytensor.graph.traversal import ancestors

from bayesperf.errors import UnknownNameError
from bayesperf.model import Floats

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["THRESHOLD", "sensitivity", "top_level_priors"]

THRESHOLD = 0.05
"""Sensitivity from which it counts: the authors' choice."""

BOTH = "prior and data both count, and may disagree: compare them"
PRIOR = "prior, hardly data: measure what informs it"
NEITHER = "not sensitive"


def sensitivity(profile: Profile, priors: Sequence[str] | None = None, threshold: float = THRESHOLD) -> pd.DataFrame:
    """How much each named parameter moves when the prior, or the likelihood, is made a little stronger or weaker.

    No refit: the draws are reweighted, from the stored log prior and log likelihood.

    Parameters
    ----------
    profile
        A fit.
    priors
        Names of the variables whose priors are scaled, as in ``profile.tree["log_prior"]``; the top-level ones when
        None. The distribution of a hierarchy's members is no prior in this sense: the data teach its spread, and
        scaling it as well would call every member sensitive.
    threshold
        Sensitivity from which it counts.

    Returns
    -------
    DataFrame
        One row per named parameter: parameter, target, label, prior, likelihood (sensitivities), prior_noise,
        likelihood_noise (the largest that the same draws show when paired with another chain's densities, with which
        they have nothing to do), diagnosis (in words; what does not exceed its noise does not count).

    Raises
    ------
    UnknownNameError
        A prior that the profile does not have.
    """
    known = [str(name) for name in profile.tree["log_prior"].data_vars]
    for name in priors or ():
        if name not in known:
            raise UnknownNameError("prior", name, known)
    posterior = profile.tree["posterior"].to_dataset()
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    quantities = profile.model.quantities(profile.inference.encoded, profile.draws())
    values = np.stack([np.log(q.draws).reshape(shape) for q in quantities], axis=-1)
    turned = np.stack([np.roll(values, by, axis=0) for by in range(shape[0])], axis=-1)
    coords = {"chain": posterior["chain"], "draw": posterior["draw"]}
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset({"value": (("chain", "draw", "quantity", "turn"), turned)}, coords=coords),
            "log_prior": profile.tree["log_prior"].to_dataset(),
            "log_likelihood": profile.tree["log_likelihood"].to_dataset(),
        }
    )
    prior = _sense(tree, "prior", list(priors or top_level_priors(profile)))
    likelihood = _sense(tree, "likelihood", None)
    noise = [values[:, 1:].max(axis=1, initial=0.0) for values in (prior, likelihood)]
    found = zip((prior, likelihood), noise, strict=True)
    moved, informed = (values[:, 0] >= np.maximum(threshold, floor) for values, floor in found)
    return pd.DataFrame(
        {
            "parameter": [q.name for q in quantities],
            "target": [q.target for q in quantities],
            "label": [q.label for q in quantities],
            "prior": prior[:, 0],
            "likelihood": likelihood[:, 0],
            "prior_noise": noise[0],
            "likelihood_noise": noise[1],
            "diagnosis": np.select([moved & informed, moved], [BOTH, PRIOR], NEITHER),
        }
    )


def _sense(tree: xr.DataTree, group: str, names: list[str] | None) -> Floats:
    """Sensitivity of every quantity to a group's density, and of its turned draws, (quantity, turn)."""
    found = azs.psense(tree, group=group, group_var_names=names)["value"]
    return np.asarray(found.transpose("quantity", "turn").values, dtype=float)


def top_level_priors(profile: Profile) -> list[str]:
    """Names of the variables that are no members of a hierarchy, in the model's order.

    Members are those whose prior depends on another sampled variable, and arrays named ``*_raw``: standardised members,
    by PyMC's habit.
    """
    model = profile.model.build(profile.inference.encoded)
    free = set(model.free_RVs)
    top = [
        variable.name
        for variable in model.free_RVs
        if not (free - {variable}) & set(ancestors([variable]))
        and not (variable.ndim and variable.name.endswith("_raw"))
    ]
    return top or [variable.name for variable in model.free_RVs]
