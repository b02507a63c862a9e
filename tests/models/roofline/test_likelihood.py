"""The likelihood of an update is the one that the sampler has."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from bayesperf.inference.sampling import log_densities, sample_prior
from bayesperf.models.roofline.build import build
from bayesperf.models.roofline.encode import encode
from bayesperf.models.roofline.likelihood import log_likelihood
from tests.tables import products_table, roofline_table


@pytest.mark.parametrize("table", [roofline_table(2, campaigns=("a", "b")), products_table(1)])
def test_it_is_that_of_the_model(table: pd.DataFrame) -> None:
    encoded = encode(table, None)
    model = build(encoded)
    tree = sample_prior(model, draws=20, seed=1)
    prior = tree["prior"].to_dataset()
    tree["posterior"] = tree["prior"]
    terms = log_densities(model, tree)["log_likelihood"].to_dataset()
    expected = sum(v.sum([d for d in v.dims if d not in ("chain", "draw")]) for v in terms.data_vars.values())
    draws = {str(name): np.asarray(v, dtype=float)[0] for name, v in prior.data_vars.items()}
    np.testing.assert_allclose(log_likelihood(np, draws, encoded, encoded), np.asarray(expected)[0], rtol=1e-9)
    with jax.enable_x64(True):
        in_jax = log_likelihood(jnp, {n: jnp.asarray(v) for n, v in draws.items()}, encoded, encoded)
    np.testing.assert_allclose(np.asarray(in_jax), np.asarray(expected)[0], rtol=1e-9)
