"""Discrepancy features: what the low-rank process promises of its kernel."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from bayesperf.models.roofline.discrepancy import RANK, Basis, basis_of, evaluate, features_of, process
from bayesperf.models.roofline.priors import PRIORS
from bayesperf.schema import SHAPE_COLUMNS


def measured(seed: int, n: int = 200) -> np.ndarray:
    rng = np.random.default_rng(seed)
    flops, moved = np.exp(rng.uniform(np.log(1e6), np.log(1e11), n)), np.exp(rng.uniform(np.log(1e5), np.log(1e9), n))
    return features_of(pd.DataFrame({"flops": flops, "bytes": moved}))


def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1)))


def basis(features: np.ndarray, *, common: bool) -> Basis | None:
    """With rows that are all work."""
    return basis_of(features, np.ones(len(features)), common=common)


def test_few_configurations_have_no_discrepancy() -> None:
    assert basis(np.repeat(measured(1, 20), 5, axis=0), common=False) is None


def test_features_reproduce_the_kernel_and_say_what_they_lack() -> None:
    features = measured(2)
    found = basis(features, common=True)
    assert found is not None
    assert len(found.points) <= RANK
    phi, lacking = evaluate({"op": found}, np.array(["op"] * len(features), dtype=object), features)
    plain = phi[:, : len(found.points)] + found.centre
    np.testing.assert_allclose((plain**2).sum(axis=1) + lacking, 1.0, atol=1e-6)
    at_points, lacking_there = evaluate({"op": found}, np.array(["op"] * len(found.points), dtype=object), found.points)
    plain = at_points[:, : len(found.points)] + found.centre
    np.testing.assert_allclose(plain @ plain.T, kernel(found.points, found.points), atol=1e-5)
    np.testing.assert_allclose(lacking_there, 0.0, atol=1e-5)
    assert lacking.mean() < 0.3


def test_far_from_everything_it_reverts_and_widens() -> None:
    found = basis(measured(3), common=False)
    assert found is not None
    far = features_of(pd.DataFrame({"flops": [1e20], "bytes": [1e2]}))
    phi, lacking = evaluate({"op": found}, np.array(["op"], dtype=object), far)
    np.testing.assert_allclose(phi[0], -found.centre, atol=1e-9)
    assert lacking[0] == pytest.approx(1.0)


def test_it_leaves_the_mean_to_rates() -> None:
    features = measured(4)
    found = basis(features, common=False)
    assert found is not None
    phi, _ = evaluate({"op": found}, np.array(["op"] * len(features), dtype=object), features)
    np.testing.assert_allclose(phi.mean(axis=0), 0.0, atol=1e-9)


def test_features_are_principal_axes_of_what_was_measured() -> None:
    features = measured(6)
    found = basis(features, common=False)
    assert found is not None
    phi, _ = evaluate({"op": found}, np.array(["op"] * len(features), dtype=object), features)
    covariance = np.cov(phi[:, : len(found.points)], rowvar=False)
    spread = np.diag(covariance)
    np.testing.assert_allclose(covariance, np.diag(spread), atol=1e-9)
    assert (np.diff(spread) <= 1e-12).all()


def test_other_operations_have_none() -> None:
    found = basis(measured(5), common=False)
    assert found is not None
    phi, lacking = evaluate({"op": found}, np.array(["other"], dtype=object), measured(5)[:1])
    assert not phi.any()
    assert not lacking.any()


def test_unknown_work_is_zero_and_an_unknown_shape_is_not_a_number() -> None:
    table = pd.DataFrame({"flops": [0.0, np.e**3], "bytes": [1.0, np.e], "rows": [np.nan, np.e]})
    work, shape = np.split(features_of(table), [3], axis=1)
    np.testing.assert_allclose(work, np.array([[0.0, 0.0, 0.0], [3.0, 1.0, 0.0]]) / PRIORS.discrepancy_length)
    at = SHAPE_COLUMNS.index("rows")
    assert shape[1, at] == 1.0 / PRIORS.discrepancy_shape_length
    assert np.isnan(shape[0, at])
    assert np.isnan(np.delete(shape, at, axis=1)).all()


def test_a_shape_that_is_not_told_is_taken_as_typical() -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"flops": 1e9, "bytes": 1e6, "rows": np.exp(rng.normal(6.0, 2.0, 60)), "m": np.nan})
    basis = basis_of(features_of(table), np.ones(60), common=False)
    assert basis is not None
    typical = table.iloc[[0]].assign(rows=np.exp(np.log(table["rows"]).mean()))
    asked = [typical, typical.assign(rows=np.nan), typical.drop(columns="rows"), typical.assign(m=64.0)]
    phi, lacking = zip(*(evaluate({"op": basis}, np.array(["op"]), features_of(row)) for row in asked), strict=True)
    for other in range(1, len(asked)):
        np.testing.assert_allclose(phi[other], phi[0], atol=1e-9)
        np.testing.assert_allclose(lacking[other], lacking[0], atol=1e-9)
    far, _ = evaluate({"op": basis}, np.array(["op"]), features_of(typical.assign(rows=1e30)))
    assert not np.allclose(far, phi[0], atol=1e-3)


def test_sampler_and_predictor_evaluate_the_same_process() -> None:
    rng = np.random.default_rng(6)
    weights, phi = rng.normal(size=(3, 5)), rng.normal(size=(7, 5))
    cell = np.array([0, 2, 1, 1, 0, -1, 2])
    phi[cell < 0] = 0.0
    symbol = pt.matrix("weights")
    function = pytensor.function([symbol], process(pt, symbol, cell, phi), mode=Mode("py", "fast_compile"))
    draws = np.stack([weights, 2 * weights])
    np.testing.assert_allclose(process(np, draws, cell, phi)[1], 2 * function(weights))
