"""The test for two groups of residuals: how often it calls one group two, and how often it finds two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bayesperf.checks import repeat_modes, two_modes
from bayesperf.checks.mixture import Modes

Draw = Callable[[np.random.Generator, int], np.ndarray]

NULLS: dict[str, Draw] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "student": lambda rng, n: rng.standard_t(5.0, n),
    "heavy": lambda rng, n: rng.standard_t(2.0, n),
    # A few configurations that a model gets very wrong, each in its own way.
    "contaminated": lambda rng, n: rng.standard_normal(n) * np.where(rng.random(n) < 0.1, 8.0, 1.0),
    "skewed": lambda rng, n: rng.gamma(3.0, size=n),
    "very skewed": lambda rng, n: rng.exponential(size=n),
}


def _called_two(found: Modes) -> bool:
    return found.separate and found.p < 0.05


def _alarms(name: str, sizes: tuple[int, ...], repetitions: int) -> float:
    rng = np.random.default_rng(1)
    called = [_called_two(two_modes(NULLS[name](rng, n))) for n in sizes for _ in range(repetitions)]
    return float(np.mean(called))


@pytest.mark.parametrize("name", ["normal", "heavy", "skewed"])
def test_one_group_is_seldom_called_two(name: str) -> None:
    """At most the nominal 5 % plus two standard errors."""
    assert _alarms(name, (12, 40), 30) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", NULLS)
def test_one_group_is_seldom_called_two_whatever_its_shape(name: str) -> None:
    """The same with more simulations, for each kind of noise; an exponential is the worst that we know of."""
    limit = 0.1 if name == "very skewed" else 0.05
    assert _alarms(name, (10, 25, 100), 200) <= limit + 2 * np.sqrt(limit * (1 - limit) / 600)


def test_p_values_hold_their_level_where_the_model_is_right() -> None:
    rng = np.random.default_rng(2)
    p = np.array([two_modes(rng.standard_t(4.0, 12)).p for _ in range(120)])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(p <= level) <= level + 2.5 * np.sqrt(level * (1 - level) / len(p))
    # A test that never speaks would pass the lines above.
    assert np.mean(p <= 0.5) >= 0.25


@pytest.mark.parametrize(
    ("n", "share", "gap", "power"), [(12, 0.5, 8.0, 0.7), (30, 0.3, 6.0, 0.9), (60, 0.2, 6.0, 0.9)]
)
def test_two_groups_are_found(n: int, share: float, gap: float, power: float) -> None:
    """A gap of so many standard deviations of each group."""
    rng = np.random.default_rng(3)
    found = [two_modes(rng.standard_normal(n) + gap * (np.arange(n) < share * n)) for _ in range(30)]
    assert np.mean([_called_two(f) for f in found]) >= power
    assert np.median([f.gap for f in found]) == pytest.approx(gap, rel=0.1)
    assert np.median([f.share for f in found]) == pytest.approx(share, abs=0.06)


def test_a_gap_smaller_than_the_noise_is_no_gap() -> None:
    rng = np.random.default_rng(4)
    found = [two_modes(rng.standard_normal(40) + 1.5 * (np.arange(40) < 20)) for _ in range(20)]
    assert np.mean([_called_two(f) for f in found]) <= 0.1


def _repeats(rng: np.random.Generator, counts: tuple[int, ...], jump: float, share: float) -> list[np.ndarray]:
    """Repeats of configurations whose own times differ by far more than any jump."""
    return [100 * rng.standard_normal() + rng.standard_t(5.0, n) + jump * (rng.random(n) < share) for n in counts]


@pytest.mark.parametrize("counts", [(2,) * 12, (2, 3, 5, 1) * 3])
def test_steady_repeats_are_seldom_called_two_levels(counts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    called = [_called_two(repeat_modes(_repeats(rng, counts, 0.0, 0.0))) for _ in range(40)]
    assert np.mean(called) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(called))


@pytest.mark.parametrize("counts", [(2,) * 16, (3,) * 12])
def test_repeats_that_jump_are_found(counts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(6)
    found = [repeat_modes(_repeats(rng, counts, 20.0, 0.3)) for _ in range(20)]
    assert np.mean([_called_two(f) for f in found]) >= 0.9


@pytest.mark.parametrize("values", [np.zeros(20), np.arange(3.0), np.array([])])
def test_what_cannot_be_tested_is_not(values: np.ndarray) -> None:
    found = two_modes(values)
    assert np.isnan(found.p)
    assert not found.separate


def test_times_of_a_coarse_clock_do_not_break_it() -> None:
    rng = np.random.default_rng(7)
    found = two_modes(np.round(rng.standard_normal(40)))
    assert np.isfinite([found.p, found.gap, found.share]).all()
    assert np.isfinite(two_modes(np.repeat([0.0, 1.0], 20)).p)
