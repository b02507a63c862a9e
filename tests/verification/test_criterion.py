"""The criterion keeps its promise on autocorrelated chains, and finds what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from bayesperf.model import Floats, Quantity
from bayesperf.verification.criterion import bound, compare_numbers

CHAINS, DRAWS, PARAMETERS = 4, 250, 8


def chains(rng: np.random.Generator, correlation: float) -> Floats:
    """Stationary AR(1) chains of standard normal draws, (parameter, chain * draw)."""
    noise = np.sqrt(1 - correlation**2) * rng.standard_normal((DRAWS, PARAMETERS, CHAINS))
    draws = np.empty_like(noise)
    draws[0] = rng.standard_normal((PARAMETERS, CHAINS))
    for at in range(1, DRAWS):
        draws[at] = correlation * draws[at - 1] + noise[at]
    return np.ascontiguousarray(draws.transpose(1, 2, 0)).reshape(PARAMETERS, -1)


def quantities(draws: Floats) -> list[Quantity]:
    return [Quantity("rate", "t", str(at), "1", np.exp(0.1 * d), np.arange(1)) for at, d in enumerate(draws)]


@pytest.mark.parametrize(
    ("correlation", "pairs"),
    [
        (0.6, 30),
        pytest.param(0.0, 400, marks=pytest.mark.slow),
        pytest.param(0.6, 400, marks=pytest.mark.slow),
    ],
)
def test_two_samples_of_one_posterior_are_called_the_same(correlation: float, pairs: int) -> None:
    rng, alpha = np.random.default_rng(7), 0.05
    alarms = 0
    for _ in range(pairs):
        one, other = (quantities(chains(rng, correlation)) for _ in range(2))
        alarms += not compare_numbers(one, other, (CHAINS, CHAINS), alpha=alpha)["same"].all()
    # Two standard errors of so many pairs above the nominal rate.
    assert alarms / pairs <= alpha + 2 * np.sqrt(alpha * (1 - alpha) / pairs)


def test_a_shift_or_a_narrower_interval_is_found() -> None:
    rng = np.random.default_rng(8)
    draws = chains(rng, 0.3)
    shifted, narrower = chains(rng, 0.3), chains(rng, 0.3)
    shifted[2] += 0.5
    narrower[5] *= 0.7
    found = compare_numbers(quantities(draws), quantities(shifted), (CHAINS, CHAINS))
    assert set(found.loc[~found["same"], "label"]) == {"2"}
    found = compare_numbers(quantities(draws), quantities(narrower), (CHAINS, CHAINS))
    assert set(found.loc[~found["same"], "label"]) == {"5"}
    assert set(found.loc[~found["same"], "level"]) == {0.05, 0.95}


def test_draws_that_an_update_copied_count_as_fewer() -> None:
    rng = np.random.default_rng(9)
    one, other = quantities(chains(rng, 0.0)), quantities(chains(rng, 0.0))
    plain, fewer = (compare_numbers(one, other, (4, 4), survivors=n)["z"].abs() for n in (None, 250.0))
    assert np.allclose(plain, 2.0 * fewer)


def test_parameters_that_do_not_move_agree_only_if_equal() -> None:
    still = [Quantity("rate", "t", "fixed", "1", np.full(CHAINS * DRAWS, 2.0), np.arange(1))]
    moved = [Quantity("rate", "t", "fixed", "1", np.full(CHAINS * DRAWS, 2.1), np.arange(1))]
    assert compare_numbers(still, still, (CHAINS, CHAINS))["same"].all()
    assert not compare_numbers(still, moved, (CHAINS, CHAINS))["same"].any()


def test_the_bound_grows_with_the_number_of_numbers() -> None:
    assert bound(1, 0.05) == pytest.approx(1.96, abs=0.005)
    assert bound(100) > bound(10) > bound(1)
