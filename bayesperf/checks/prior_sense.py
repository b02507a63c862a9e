"""Which parameters rest on the prior: power-scaling sensitivity (Kallioinen, Paananen, Buerkner and Vehtari 2024)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import arviz_stats as azs
import numpy as np
import pandas as pd
import xarray as xr
from pytensor.graph.traversal import ancestors

from bayesperf.errors import UnknownNameError

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["THRESHOLD", "sensitivity", "top_level_priors"]

THRESHOLD = 0.05
"""Sensitivity from which it counts: the authors' choice."""

_WORDS = {
    "potential prior-data conflict": "prior and data pull apart: look at its rows, or at this prior",
    "potential strong prior / weak likelihood": "prior, hardly data: measure what informs it",
    "✓": "not sensitive",
}


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
        One row per named parameter: parameter, target, label, prior, likelihood (sensitivities), diagnosis (in words).

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
    coords = {"chain": posterior["chain"], "draw": posterior["draw"], "quantity": np.arange(len(quantities))}
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset({"log_value": (("chain", "draw", "quantity"), values)}, coords=coords),
            "log_prior": profile.tree["log_prior"].to_dataset(),
            "log_likelihood": profile.tree["log_likelihood"].to_dataset(),
        }
    )
    # It points to a web page whenever anything is sensitive; our table says what it means.
    logging.getLogger("arviz_stats.psense").setLevel(logging.ERROR)
    found = azs.psense_summary(
        tree, prior_var_names=list(priors or top_level_priors(profile)), threshold=threshold, round_to=3
    )
    return pd.DataFrame(
        {
            "parameter": [q.name for q in quantities],
            "target": [q.target for q in quantities],
            "label": [q.label for q in quantities],
            "prior": found["prior"].to_numpy(float),
            "likelihood": found["likelihood"].to_numpy(float),
            "diagnosis": [_WORDS[text] for text in found["diagnosis"]],
        }
    )


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
