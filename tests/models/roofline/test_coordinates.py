"""What is sampled differs from what is meant, so that chains move well; the distributions meant must not differ."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from bayesperf.inference.sampling import sample_prior
from bayesperf.models.roofline.build import build
from bayesperf.models.roofline.centring import curve_leaning, term_shares
from bayesperf.models.roofline.coded import Encoded
from bayesperf.models.roofline.curve import code_curve, log_bandwidth
from bayesperf.models.roofline.encode import encode
from bayesperf.models.roofline.hierarchy import members_of, memory_location, rate_location
from bayesperf.models.roofline.priors import PRIORS
from bayesperf.schema import validate, with_ids
from tests.tables import products_table

DRAWS = 2000


def _table() -> pd.DataFrame:
    """Products, and an operation with five FLOP on every byte that either limit explains, from cache to memory."""
    sizes = np.geomspace(1e5, 1e9, 40)
    fixed = pd.DataFrame({"flops": 5 * sizes, "bytes": sizes, "working_set_bytes": sizes, "parallelism": sizes / 8,
                          "time_s": 3e-5 + sizes / np.where(sizes > 1e7, 2e10, 8e10)})  # fmt: skip
    rows = [fixed.assign(target=t, op="softmax", dtype="float32", campaign="monday") for t in ("a", "b", "c")]
    products = products_table(1, targets=("a", "b", "c")).drop(
        columns=["measurement_id", "provenance_id"], errors="ignore"
    )
    return with_ids(validate(pd.concat([products, *rows], ignore_index=True)), source="both")


@pytest.fixture(scope="module")
def encoded() -> Encoded:
    return encode(_table(), None)


@pytest.fixture(scope="module")
def prior(encoded: Encoded) -> xr.Dataset:
    return sample_prior(build(encoded), draws=DRAWS, seed=3)["prior"].to_dataset().isel(chain=0)


def test_only_rates_of_one_intensity_contest_with_a_bandwidth(encoded: Encoded) -> None:
    memory, rate = encoded.labels.of("memory"), encoded.labels.of("rate")
    pairs = [(memory[cell], rate[code]) for cell, code in enumerate(encoded.contested.rate) if code >= 0]
    assert pairs == [((t, "softmax"), (t, "softmax", "float32")) for t in ("a", "b", "c")]
    assert encoded.contested.intensity[encoded.contested.rate >= 0] == pytest.approx(np.log(5.0))


def test_rates_and_bandwidths_keep_their_independent_priors(encoded: Encoded, prior: xr.Dataset) -> None:
    draws = {name: prior[name].to_numpy() for name in ("unit_rate", "operation_rate", "main", "operation_memory")}
    members = members_of(encoded.labels)
    rate = (prior["rate"].to_numpy() - rate_location(draws, members)) / PRIORS.cell_spread
    memory = (prior["memory"].to_numpy() - memory_location(draws, members)) / PRIORS.memory_cell_spread
    for values in (*rate.T, *memory.T):
        assert stats.kstest(values, "norm").pvalue > 1e-4
    together = np.corrcoef(np.hstack([rate, memory]).T)
    apart = together[~np.eye(len(together), dtype=bool)]
    # Of 66 correlations of 2,000 independent draws, the largest stays below this in all but 1 in 1,000 cases.
    assert np.abs(apart).max() < 4.3 / np.sqrt(DRAWS)


def test_the_discrepancy_keeps_its_prior(encoded: Encoded, prior: xr.Dataset) -> None:
    assert encoded.leaning["curve"].any()
    common = prior["discrepancy_common"].to_numpy()[:, members_of(encoded.labels).shape_cell_common]
    scale = prior["shape_cell_scale"].to_numpy()[:, members_of(encoded.labels).shape_cell_op]
    standard = (prior["discrepancy"].to_numpy() - common) / scale[:, :, None]
    for values in standard.reshape(DRAWS, -1).T:
        assert stats.kstest(values, "norm").pvalue > 1e-5


def test_coefficients_take_over_what_they_can_express_of_a_curve(encoded: Encoded) -> None:
    codes, curves, informed = encoded.codes, encoded.sheets.curves, encoded.informed
    shares = term_shares(codes, encoded.labels, encoded.log_time)
    taken = curve_leaning(codes, encoded.labels, curves, shares, informed)
    drop = np.full((1, len(curves.mean)), 0.3)
    placed = code_curve(curves, codes.target, codes.log_working_set)
    curve = log_bandwidth(np, np.zeros(len(codes.target)), drop, np.zeros_like(drop), placed)[0]
    cell = encoded.labels.find("shape_cell", [("a", "softmax")])[0]
    known = informed["shape_cell"][cell]
    assert known.any()
    assert not taken[cell][~known].any()
    rows = codes.shape_cell == cell
    phi = np.minimum(np.exp(shares.memory[rows]), 1.0)[:, None] * codes.phi[np.ix_(rows, known)]
    left = np.minimum(np.exp(shares.memory[rows]), 1.0) * curve[rows] - phi @ (taken[cell][known] @ drop[0])
    # Nothing of what is left lies in the direction of the features, but for the ridge.
    assert np.abs(phi.T @ left).max() < 0.2 * np.abs(phi.T @ curve[rows]).max()
