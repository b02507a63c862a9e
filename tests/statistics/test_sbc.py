"""Simulation-based calibration of the shipped roofline in a small configuration (Talts et al. 2018).

Parameters are drawn from the prior, a table from the likelihood, the posterior by NUTS; over many simulations the rank
of the truth among the draws is uniform, whatever the prior. The model is compiled once and its data are swapped, which
takes a second a fit where a fresh compilation takes half a minute.
"""

from __future__ import annotations

import numpy as np
import nutpie
import pytest
import scipy.stats
import xarray as xr

from bayesperf.inference.sampling import compile_model, deriver, sample_prior
from bayesperf.models.roofline.build import build
from bayesperf.models.roofline.encode import encode
from tests.tables import roofline_table

SIMULATIONS, DRAWS = 200, 250
SCALARS = ("scale", "main", "sharpness", "misfit_mean", "repeat_mean", "rate", "memory", "overhead", "drop", "launch")


def _ranks(truth: xr.Dataset, posterior: xr.Dataset, thin: int) -> dict[str, np.ndarray]:
    """Rank of every member of every named parameter among thinned draws."""
    thinned = posterior.isel(draw=slice(None, None, thin)).stack(sample=("chain", "draw"))
    return {name: np.asarray((thinned[name] < truth[name]).sum("sample")).ravel() for name in SCALARS}


@pytest.mark.slow
def test_ranks_are_uniform() -> None:
    encoded = encode(roofline_table(1), None)
    model = build(encoded)
    compiled, derive = compile_model(model), deriver(model)
    prior = sample_prior(model, draws=SIMULATIONS, seed=17)
    ranks: dict[str, list[np.ndarray]] = {}
    for at in range(SIMULATIONS):
        truth = prior["prior"].to_dataset().isel(chain=0, draw=at)
        data = prior["prior_predictive"].to_dataset().isel(chain=0, draw=at)
        again = compiled.with_data(
            observed_log_time=data["log_time"].to_numpy(), observed_scatter=data["scatter"].to_numpy()
        )
        tree = nutpie.sample(
            again, draws=DRAWS, tune=500, chains=2, seed=at, progress_bar=False, save_warmup=False, target_accept=0.9
        )
        posterior = tree["posterior"].to_dataset()
        for name, values in _ranks(truth, posterior.merge(derive(posterior)), thin=5).items():
            ranks.setdefault(name, []).append(values)
    p = {}
    for name, found in ranks.items():
        table = np.stack(found)
        for member in range(table.shape[1]):
            # Ranks 0..100 of 100 thinned draws, in ten bins; a chi-square is exact enough at 20 a bin.
            counts = np.histogram(table[:, member], bins=np.linspace(0, 101, 11))[0]
            p[f"{name}[{member}]"] = scipy.stats.chisquare(counts).pvalue
    ordered = sorted(p.items(), key=lambda item: item[1])
    # Holm over all members: the family-wise level is 1 %.
    failed = [name for position, (name, value) in enumerate(ordered) if value * (len(ordered) - position) < 0.01]
    assert not failed, ordered[:10]
