"""Verdicts: each reason, and the advice that goes with it."""

from __future__ import annotations

import numpy as np
import pytest

from bayesperf.validation.verdicts import Shift, judge, realised_shift

TOLERANCE = float(np.log(1.1))


def _shift(residual: np.ndarray, noise: float = 0.05, parameters: float = 0.0, campaign: float = 0.0) -> Shift:
    # Two draws of these variances, the same for all rows.
    shared, fresh = (np.outer([1, -1], np.full(len(residual), s / np.sqrt(2))) for s in
                     (parameters, np.hypot(parameters, campaign)))  # fmt: skip
    return realised_shift(residual, np.full(len(residual), noise**2), shared, fresh)


def test_a_small_shift_known_well_transfers() -> None:
    rng = np.random.default_rng(1)
    verdict = judge(0.6, _shift(0.01 + 0.05 * rng.standard_normal(30)), 30, tolerance=TOLERANCE, alpha=0.05)
    assert verdict.name == "transfers"


def test_residuals_narrower_than_predicted_transfer_and_are_told() -> None:
    rng = np.random.default_rng(1)
    verdict = judge(0.6, _shift(0.01 * rng.standard_normal(30)), 30, tolerance=TOLERANCE, alpha=0.05)
    assert verdict.name == "transfers"
    assert "wider than needed" in verdict.reason


def test_residuals_wider_than_predicted_do_not_transfer() -> None:
    rng = np.random.default_rng(1)
    verdict = judge(0.6, _shift(0.1 * rng.standard_normal(200)), 200, tolerance=TOLERANCE, alpha=0.05)
    assert verdict.name == "undecided"


def test_an_impossible_group_fails() -> None:
    verdict = judge(0.001, _shift(np.full(10, 0.6)), 10, tolerance=TOLERANCE, alpha=0.05)
    assert verdict.name == "fails"
    assert "+82%" in verdict.reason


def test_few_rows_are_undecided_and_say_how_many_more() -> None:
    residual = np.array([0.08, -0.06, 0.1, -0.04])
    verdict = judge(0.5, _shift(residual, noise=0.08), 4, tolerance=TOLERANCE, alpha=0.05)
    assert verdict.name == "undecided"
    assert "more configurations" in verdict.advice


def test_an_interval_that_just_does_not_fit_asks_for_a_row_or_two() -> None:
    # Twelve rows were enough by the normal law and are not by Student's: that is no reason to ask for other rows.
    residual = 0.08 * np.tile([-1.0, 1.0], 6) * np.sqrt(11 / 12) + TOLERANCE - 1.75 * 0.08 / np.sqrt(12)
    verdict = judge(0.5, _shift(residual, noise=0.08), 12, tolerance=TOLERANCE, alpha=0.05)
    assert verdict.name == "undecided"
    assert verdict.advice == "about 1 more configuration of this regime would decide"
    rows = np.tile(residual, 2)
    assert judge(0.5, _shift(rows, noise=0.08), 24, tolerance=TOLERANCE, alpha=0.05).name == "transfers"


@pytest.mark.parametrize(("shift", "words"), [(7.0, "measured 1,097 times"), (-7.0, "predicted 1,097 times")])
def test_a_factor_of_a_thousand_asks_for_units_first(shift: float, words: str) -> None:
    verdict = judge(0.001, _shift(np.full(10, shift)), 10, tolerance=TOLERANCE, alpha=0.05)
    assert words in verdict.reason
    assert verdict.advice.startswith("first check the units (time_s in seconds")


def test_a_shift_that_the_campaign_explains_asks_for_campaigns() -> None:
    verdict = judge(0.3, _shift(np.full(30, 0.2), campaign=0.2), 30, tolerance=TOLERANCE, alpha=0.05)
    assert verdict.name == "undecided"
    assert verdict.advice.startswith("more campaigns, not rows")


def test_a_shift_that_parameters_explain_asks_for_fitted_rows() -> None:
    verdict = judge(0.3, _shift(np.full(30, 0.2), parameters=0.3), 30, tolerance=TOLERANCE, alpha=0.05)
    assert verdict.advice.startswith("fit more rows of these operations")


def test_one_row_never_transfers() -> None:
    assert judge(0.9, _shift(np.zeros(1)), 1, tolerance=TOLERANCE, alpha=0.05).name == "undecided"


def test_coverage_of_the_realised_shift() -> None:
    """The 90 % interval covers the campaign's true shift in 90 % of 1,000 simulated groups, or a little more."""
    rng = np.random.default_rng(2)
    inside = []
    for _ in range(1000):
        truth = rng.normal(0, 0.1)
        shift = _shift(truth + 0.05 * rng.standard_normal(12))
        inside.append(shift.lower <= truth <= shift.upper)
    standard_error = np.sqrt(0.9 * 0.1 / 1000)
    assert 0.9 - 2 * standard_error <= np.mean(inside) <= 0.98


def test_spread_ratio_tells_wide_from_narrow() -> None:
    rng = np.random.default_rng(3)
    assert _shift(0.15 * rng.standard_normal(200)).spread_ratio == pytest.approx(3.0, rel=0.2)
    assert _shift(0.05 * rng.standard_normal(200)).spread_ratio == pytest.approx(1.0, rel=0.2)
