"""The slope on synthetic timings: its interval covers, and what is no straight line is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from bayesperf.errors import MeasurementError
from bayesperf.measure.slope import Round, fit_slope, robust_spread, round_slopes

COUNTS = (10, 20, 40)
SLOPE, INTERCEPT = 1e-4, 5e-4


def make_rounds(seconds: Callable[[int, int], float], rounds: int = 9, seed: int = 0) -> list[Round]:
    """Rounds of COUNTS in random order; `seconds` gets the iterations and the ordinal of the call."""
    rng, made, call = np.random.default_rng(seed), [], 0
    for _ in range(rounds):
        order = tuple(int(c) for c in rng.permutation(COUNTS))
        times = []
        for count in order:
            times.append(seconds(count, call))
            call += 1
        made.append(Round(order, tuple(times)))
    return made


def straight(count: int, call: int) -> float:
    return INTERCEPT + SLOPE * count


def test_exact_line() -> None:
    fit = fit_slope(make_rounds(straight))
    assert fit.slope_s == pytest.approx(SLOPE, rel=1e-9)
    assert fit.intercept_s == pytest.approx(INTERCEPT, rel=1e-9)
    assert fit.slope_se_s < 1e-12
    assert (fit.rounds, fit.outliers) == (9, 0)


@pytest.mark.parametrize("rounds", [5, 9, 20])
def test_interval_covers(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    trials, hits = 600, 0
    quantile = float(scipy.stats.t.ppf(0.95, rounds - 1))
    for _ in range(trials):
        made = make_rounds(lambda n, call: straight(n, call) * (1 + 0.02 * rng.standard_normal()), rounds)
        fit = fit_slope(made)
        hits += abs(fit.slope_s - SLOPE) <= quantile * fit.slope_se_s
    # 600 trials at 0.90: Monte-Carlo standard error 0.012; a median's error is itself estimated, hence the lower bound.
    assert 0.84 < hits / trials < 0.975


def test_noise_widens_the_interval() -> None:
    errors = []
    for noise in (0.01, 0.1):
        rng = np.random.default_rng(3)
        made = make_rounds(lambda n, call: straight(n, call) * (1 + noise * rng.standard_normal()), 30)  # noqa: B023
        errors.append(fit_slope(made).slope_se_s)
    assert errors[1] > 5 * errors[0]


def test_wild_rounds_are_labelled_and_hardly_move_the_slope() -> None:
    rng = np.random.default_rng(5)

    def hiccups(count: int, call: int) -> float:
        late = 20 * INTERCEPT if call in (4, 31) else 0.0
        return straight(count, call) * (1 + 0.003 * rng.standard_normal()) + late

    fit = fit_slope(make_rounds(hiccups, 15))
    assert fit.slope_s == pytest.approx(SLOPE, rel=0.02)
    assert fit.outliers >= 1
    assert fit.rounds == 15


def test_time_that_does_not_grow_is_refused() -> None:
    rng = np.random.default_rng(6)
    with pytest.raises(MeasurementError) as caught:
        fit_slope(make_rounds(lambda n, call: INTERCEPT * (1 + 0.01 * rng.standard_normal())))
    assert caught.value.reason == "does-not-grow"


def test_time_that_shrinks_is_refused() -> None:
    with pytest.raises(MeasurementError, match="does not grow"):
        fit_slope(make_rounds(lambda n, call: 1.0 - 1e-3 * n))


def test_curve_is_refused() -> None:
    rng = np.random.default_rng(7)
    with pytest.raises(MeasurementError) as caught:
        fit_slope(make_rounds(lambda n, call: 1e-6 * n**2 * (1 + 0.005 * rng.standard_normal())))
    assert caught.value.reason == "nonlinear"


@pytest.mark.parametrize("per_call", [0.02, -0.01])
def test_drifting_clock_is_refused(per_call: float) -> None:
    rng = np.random.default_rng(8)
    with pytest.raises(MeasurementError) as caught:
        fit_slope(
            make_rounds(lambda n, call: straight(n, call) * (1 + per_call * call) * (1 + 0.005 * rng.standard_normal()))
        )
    assert caught.value.reason == "drift"


def with_a_burst(seed: int) -> list[Round]:
    """Rounds on a machine that is slower for a while, not ever slower."""
    rng = np.random.default_rng(seed)
    at, length = rng.integers(0, 30), rng.integers(3, 15)

    def seconds(count: int, call: int) -> float:
        return straight(count, call) * (1.6 if at <= call < at + length else 1.0) * (1 + 0.03 * rng.random())

    return make_rounds(seconds, 12)


def test_bursts_of_other_work_are_no_drift() -> None:
    refused = 0
    for seed in range(200):
        try:
            fit_slope(with_a_burst(seed))
        except MeasurementError:
            refused += 1
    assert refused <= 4


def test_too_few_rounds_are_refused() -> None:
    with pytest.raises(MeasurementError) as caught:
        fit_slope(make_rounds(straight, rounds=2))
    assert caught.value.reason == "too-few-samples"


@pytest.mark.parametrize("size", [3, 5, 8, 40])
def test_robust_spread_is_nearly_unbiased(size: int) -> None:
    rng = np.random.default_rng(size)
    mean = np.mean([robust_spread(rng.standard_normal(size)) for _ in range(3000)])
    assert mean == pytest.approx(1.0, abs=0.06)


def test_round_slopes_shape() -> None:
    slopes, intercepts = round_slopes(make_rounds(straight, rounds=4))
    assert slopes.shape == intercepts.shape == (4,)
