"""The group test holds its family-wise level where rows share parameters and a campaign, and finds shifts."""

from __future__ import annotations

import numpy as np
import pytest

from bayesperf.validation.grouptest import GroupResult, _whitener, family_wise, group_statistics, replicate

GROUPS = [np.arange(0, 12), np.arange(12, 20), np.arange(20, 26)]
SIGMA, CAMPAIGN, REPLICATES = 0.05, 0.03, 400


def _design(rng: np.random.Generator) -> np.ndarray:
    """Sensitivities of 26 rows to compute, memory and overhead: one regime each, mixed at the edges."""
    shares = rng.dirichlet([0.3, 0.3, 0.3], size=26)
    for column, rows in enumerate(GROUPS):
        shares[rows, column] += 4.0
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _adjusted(rng: np.random.Generator, shift: np.ndarray, tolerance: float, sigma: float = SIGMA) -> np.ndarray:
    """Adjusted p-values of one simulated fit and held-out campaign, with an exact Gaussian posterior."""
    shares = _design(rng)
    spread = np.array([0.02, 0.03, 0.1])
    truth, campaign = rng.normal(0, spread), rng.normal(0, CAMPAIGN)
    # The posterior of a conjugate fit is centred on a noisy estimate with its own spread: exact, no sampler.
    estimate = truth + rng.normal(0, spread)
    centre, width = estimate / 2, spread / np.sqrt(2)
    draws = rng.normal(centre, width, size=(REPLICATES, 3))
    signal = draws @ shares.T + rng.normal(0, CAMPAIGN, size=(REPLICATES, 1))
    tail = np.full(REPLICATES, 5.0)
    replicates = replicate(signal, np.full(signal.shape, SIGMA), tail, rng)
    observed = shares @ truth + campaign + shift + sigma * rng.standard_t(5.0, size=26)
    lower, upper = np.quantile(replicates.values, [0.05, 0.95], axis=0) - replicates.mean
    residual = observed - replicates.mean
    results = []
    for rows in GROUPS:
        directions = [np.ones(len(rows)), *shares[rows].T]
        bounds = (lower[rows], upper[rows])
        results.append(group_statistics(residual[rows], replicates, rows, directions, bounds, tolerance))
    return family_wise(results)


def test_family_wise_false_alarms_stay_at_the_nominal_level() -> None:
    """400 independent fits and campaigns at 5 %, nothing granted: at most 5 % plus two standard errors."""
    rng = np.random.default_rng(20)
    alarms = np.array([_adjusted(rng, np.zeros(26), 0.0).min() < 0.05 for _ in range(400)])
    assert alarms.mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)
    # A test that never speaks would pass the line above.
    assert alarms.mean() >= 0.01


def test_a_granted_tolerance_only_lowers_the_alarms() -> None:
    rng = np.random.default_rng(21)
    alarms = np.array([_adjusted(rng, np.zeros(26), np.log(1.1)).min() < 0.05 for _ in range(100)])
    assert alarms.mean() <= 0.05


def test_a_shift_of_one_group_is_found_there() -> None:
    rng = np.random.default_rng(22)
    shift = np.zeros(26)
    shift[GROUPS[1]] = 0.5
    found = np.array([_adjusted(rng, shift, np.log(1.1)) < 0.05 for _ in range(60)])
    assert found[:, 1].mean() >= 0.9
    assert found[:, 0].mean() <= 0.15


def test_noise_four_times_as_wide_is_found() -> None:
    rng = np.random.default_rng(23)
    found = np.array([_adjusted(rng, np.zeros(26), 0.0, sigma=4 * SIGMA).min() < 0.05 for _ in range(40)])
    assert found.mean() >= 0.9


def test_a_group_predicted_better_than_promised_is_no_failure() -> None:
    rng = np.random.default_rng(26)
    p = np.array([_adjusted(rng, np.zeros(26), 0.0, sigma=1e-4).min() for _ in range(40)])
    assert np.mean(p < 0.05) <= 0.1


def test_single_rows_and_coinciding_directions_are_tested_too() -> None:
    rng = np.random.default_rng(24)
    replicates = replicate(rng.normal(size=(200, 1)), np.full((200, 1), 0.1), np.full(200, 5.0), rng)
    rows, bounds = np.array([0]), (np.array([-2.0]), np.array([2.0]))
    result = group_statistics(np.array([6.0]), replicates, rows, [np.ones(1), np.ones(1)], bounds, 0.1)
    assert np.isfinite(result.observed)
    assert result.observed > np.quantile(result.replicated, 0.95)


def test_more_rows_than_replicates_are_judged_alike() -> None:
    """The covariance is never formed where rows outnumber replicates; the statistics are the same."""
    rng = np.random.default_rng(27)
    noise, shared = rng.uniform(0.5, 2.0, 40), rng.normal(size=(12, 40))
    vectors = rng.normal(size=(40, 5))
    # Replicates of nothing in front: the same covariance, formed.
    few, many = (_whitener(noise, draws)(vectors) for draws in (shared, np.vstack([np.zeros((30, 40)), shared])))
    expected = vectors.T @ np.linalg.solve(shared.T @ shared + np.diag(noise), vectors)
    np.testing.assert_allclose(few.T @ few, expected)
    np.testing.assert_allclose(many.T @ many, expected)


@pytest.mark.parametrize("count", [1, 5])
def test_adjustment_never_lowers_a_p_value(count: int) -> None:
    rng = np.random.default_rng(25)
    results = [GroupResult(float(rng.normal() + 2), rng.normal(size=300)) for _ in range(count)]
    raw = np.array([(1 + np.sum(r.replicated >= r.observed)) / 301 for r in results])
    adjusted = family_wise(results)
    assert (adjusted >= raw - 1e-2).all()
    if count == 1:
        np.testing.assert_allclose(adjusted, raw, atol=1e-2)
