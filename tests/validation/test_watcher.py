"""The watcher holds its level at any time, finds changes quickly, and says when and by how much."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesperf.errors import InputError, TableError, UnconvergedError, UnknownNameError
from bayesperf.model import Floats
from bayesperf.prediction.profile import Profile
from bayesperf.validation.changepoint import ChangePoints, _Windows, log_remaining, log_weight, make_grid
from bayesperf.validation.offsets import Offsets
from tests.exact import PRIOR, World, exact_profile

NOISE, SHIFT, TOLERANCE = 0.06, float(np.log(1.2)), float(np.log(1.1))
WARM, WITHIN = 150, 30


def _run(test: ChangePoints, rng: np.random.Generator, rows: int, level: Floats | float, tail: float = 5.0) -> Floats:
    """Feed every stream so many rows; the largest log e-value of each."""
    runs, highest = len(test.log_e), np.full(len(test.log_e), -np.inf)
    for at in range(rows):
        here = level[at] if isinstance(level, np.ndarray) else level
        test.step(here + NOISE * rng.standard_t(tail, size=runs), np.full(runs, NOISE))
        highest = np.maximum(highest, test.log_e)
    return highest


# The core.


def test_weights_sum_to_one_over_all_rows_to_come() -> None:
    seen = sum(np.exp(log_weight(row)) for row in range(1, 2001))
    assert seen + np.exp(log_remaining(2000)) == pytest.approx(1.0, abs=1e-12)
    assert log_weight(10**6) > np.log(1e-8)


@pytest.mark.parametrize("drift", [1e-4, 3e-4, 5e-3])
def test_drift_keeps_mass_and_has_the_variance_of_the_walk(drift: float) -> None:
    grid = make_grid(drift)
    mass = np.zeros(len(grid.nodes))
    mass[len(mass) // 2] = 1.0
    for _ in range(100):
        mass = grid.drifted(mass)
    assert mass.min() >= 0
    assert mass.sum() == pytest.approx(1.0)
    assert mass @ grid.nodes == pytest.approx(0.0, abs=1e-12)
    assert mass @ grid.nodes**2 == pytest.approx(100 * drift**2, rel=1e-6)


def test_the_largest_density_within_a_distance_is_found() -> None:
    grid, rng = make_grid(3e-4), np.random.default_rng(1)
    mass = rng.random((3, len(grid.nodes)))
    near = np.abs(grid.nodes[:, None] - grid.nodes) <= TOLERANCE + 1e-12
    expected = np.where(near, (mass / grid.width)[:, None, :], -np.inf).max(axis=2) * grid.width
    np.testing.assert_allclose(_Windows(grid, TOLERANCE).largest(mass), expected)


@pytest.mark.parametrize("tolerance", [0.0, TOLERANCE])
def test_few_streams_without_a_change_ever_raise(tolerance: float) -> None:
    """100 streams of 300 rows of Student-t noise that drift by 1 %: at most 5 % ever pass 20."""
    rng = np.random.default_rng(2)
    test = ChangePoints(100, tolerance=tolerance)
    highest = _run(test, rng, 300, np.linspace(0.0, 0.01, 300)[:, None] * rng.choice([-1, 1], 100))
    assert (highest > np.log(20)).mean() <= 0.05
    assert np.exp(test.log_e).mean() < 1.5
    # A test that never speaks would pass the lines above.
    assert test.log_e.max() > test.log_e.min()


def test_a_change_is_raised_within_thirty_rows() -> None:
    rng = np.random.default_rng(3)
    test = ChangePoints(200)
    before = _run(test, rng, WARM, 0.0)
    level = np.broadcast_to(SHIFT * rng.choice([-1.0, 1.0], 200), (WITHIN, 200)).copy()
    highest = _run(test, rng, WITHIN, level)
    assert ((before < np.log(100)) & (highest >= np.log(100))).mean() >= 0.9


def test_a_change_of_the_tolerance_is_granted_and_a_larger_one_is_not() -> None:
    rng = np.random.default_rng(4)
    test = ChangePoints(100, tolerance=TOLERANCE)
    _run(test, rng, WARM, 0.0)
    assert (_run(test, rng, 100, TOLERANCE) >= np.log(100)).mean() <= 0.02
    test = ChangePoints(100, tolerance=TOLERANCE)
    _run(test, rng, WARM, 0.0)
    assert (_run(test, rng, 60, 2 * SHIFT) >= np.log(100)).mean() >= 0.95


def test_noise_twice_as_wide_as_told_is_noticed_and_not_raised() -> None:
    rng = np.random.default_rng(5)
    test = ChangePoints(100)
    highest = np.full(100, -np.inf)
    for _ in range(400):
        test.step(2 * NOISE * rng.standard_t(5.0, size=100), np.full(100, NOISE))
        highest = np.maximum(highest, test.log_e)
    assert (highest > np.log(100)).mean() <= 0.05
    assert np.median(test.factor) == pytest.approx(2.0, rel=0.15)


def test_the_jump_is_dated_and_measured() -> None:
    """30 changes at known rows: their 90 % intervals cover when and by how much in at least 75 %."""
    rng, when, size = np.random.default_rng(6), [], []
    for _ in range(30):
        test = ChangePoints(blocks=64)
        rows, shift = int(rng.integers(40, 90)), float(rng.choice([-1, 1]) * rng.uniform(0.15, 0.5))
        _run(test, rng, rows, 0.0)
        _run(test, rng, 30, shift)
        jump = test.jump()
        when.append(jump.since[0] <= rows + 1 <= jump.since[2])
        size.append(jump.size[0] - 0.01 <= shift <= jump.size[2] + 0.01)
    assert np.mean(when) >= 0.75
    assert np.mean(size) >= 0.75


def test_blocks_merge_without_losing_mass() -> None:
    rng = np.random.default_rng(7)
    few, many = ChangePoints(blocks=4), ChangePoints(blocks=200)
    for _ in range(60):
        row, scale = NOISE * rng.standard_t(5.0, size=1), np.full(1, NOISE)
        few.step(row, scale)
        many.step(row, scale)
    np.testing.assert_allclose(few.log_e, many.log_e, rtol=1e-9, atol=1e-9)


# Standing errors.


def test_standing_errors_are_the_exact_posterior_of_a_gaussian() -> None:
    rng = np.random.default_rng(8)
    signal = rng.multivariate_normal(np.zeros(2), [[0.04, 0.03], [0.03, 0.04]], size=400)
    offsets, misfit, noise = Offsets(400), 0.05, 0.1
    rows = [("a", 0.3), ("b", -0.1), ("a", 0.25)]
    for key, column in zip("ab", signal.T, strict=True):
        offsets.add(key, column, misfit)
    for key, error in rows:
        offsets.learn(key, error, noise, 1e12)
    prior = np.cov(signal.T) + misfit**2 * np.eye(2)
    pick = np.array([[key == name for name in "ab"] for key, _ in rows], dtype=float)
    gain = prior @ pick.T @ np.linalg.inv(pick @ prior @ pick.T + noise**2 * np.eye(3))
    mean, covariance = gain @ [error for _, error in rows], prior - gain @ pick @ prior
    for at, key in enumerate("ab"):
        np.testing.assert_allclose(offsets.predict(key), (mean[at], covariance[at, at]), rtol=1e-6)


def test_the_configuration_seen_longest_ago_is_forgotten() -> None:
    offsets, rng = Offsets(10), np.random.default_rng(9)
    for key in range(300):
        offsets.add(key, rng.standard_normal(10), 0.1)
    assert 0 not in offsets
    assert 299 in offsets
    assert np.isfinite(offsets.predict(299)).all()


# The watcher of a profile.


def _stream(rng: np.random.Generator, world: World, rows: int, shift: float = 0.0) -> pd.DataFrame:
    """Rows of three sizes in one new campaign."""
    size = rng.choice([1e7, 5e7, 3e8], rows)
    own = {1e7: 0.05, 5e7: -0.05, 3e8: 0.02}
    errors = 0.04 + shift + np.array([own[s] for s in size]) + world.repeat * rng.standard_t(5.0, size=rows)
    return pd.DataFrame({"op": "copy", "flops": 0.0, "bytes": size, "time_s": np.exp(np.log(size) - PRIOR[0] + errors)})


WORLD = World(campaign=0.03, misfit=0.04, repeat=0.03)


@pytest.fixture
def watched() -> tuple[np.random.Generator, Profile]:
    """A profile of one target, and random numbers for its stream."""
    rng = np.random.default_rng(10)
    return rng, exact_profile(WORLD, WORLD.measure(rng, {"gpu": PRIOR[0]}, campaigns=["monday"]), 10)


def test_standing_errors_are_learned_and_a_change_is_raised(watched: tuple[np.random.Generator, Profile]) -> None:
    rng, profile = watched
    watcher = profile.watch(tolerance=0.0)
    calm = watcher.update(_stream(rng, WORLD, 150))
    assert not calm.raised
    assert calm.rows == 150
    assert "no change" in str(calm)
    changed = watcher.update(_stream(rng, WORLD, 30, SHIFT))
    assert changed.raised
    assert changed.raised_at is not None
    assert changed.since_lower is not None
    assert changed.since_upper is not None
    assert changed.shift_lower is not None
    assert changed.shift_upper is not None
    assert 151 <= changed.raised_at <= 170
    assert changed.since_lower <= 151 <= changed.since_upper
    assert changed.shift_lower - 0.02 < 0.2 < changed.shift_upper + 0.02
    assert f"raised at row {changed.raised_at}" in str(changed)
    # It stays raised, whatever comes.
    assert watcher.update(_stream(rng, WORLD, 5)).raised_at == changed.raised_at


def test_rows_one_by_one_are_the_same_as_a_table(watched: tuple[np.random.Generator, Profile]) -> None:
    rng, profile = watched
    rows = _stream(rng, WORLD, 20)
    whole, single = (profile.watch("gpu") for _ in range(2))
    whole.update(rows)
    for row in rows.to_dict(orient="records"):
        single.update({str(name): value for name, value in row.items()})
    assert whole.state == single.state == whole.state


def test_bad_rows_are_refused_and_none_is_taken(watched: tuple[np.random.Generator, Profile]) -> None:
    rng, profile = watched
    watcher = profile.watch()
    rows = _stream(rng, WORLD, 3)
    with pytest.raises(TableError, match="row 2, column time_s"):
        watcher.update(rows.assign(time_s=[1e-3, 1e-3, -1.0]))
    with pytest.raises(InputError, match="this watch is of gpu"):
        watcher.update(rows.assign(target="cpu"))
    with pytest.raises(TableError, match="time_s"):
        watcher.update({"op": "copy", "flops": 0.0, "bytes": 1e7})
    assert watcher.state.rows == 0
    assert watcher.update(rows.assign(corunners=pd.Series(["copy:1", None, None], dtype=object))).skipped == 1
    assert watcher.state.rows == 2


@pytest.mark.parametrize(
    "options", [{"tolerance": -0.1}, {"tolerance": 1.5}, {"alpha": 0.0}, {"drift": 0.0}, {"draws": 2}, {"seed": -1}]
)
def test_settings_that_make_no_sense_are_refused(
    watched: tuple[np.random.Generator, Profile], options: dict[str, float]
) -> None:
    with pytest.raises(InputError):
        watched[1].watch(**options)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no option named 'tolerence'; there are: tolerance"):
        watched[1].watch(tolerence=0.2)  # type: ignore[call-arg]


def test_an_unconverged_profile_watches_only_when_asked_to() -> None:
    rng = np.random.default_rng(11)
    table = WORLD.measure(rng, {"gpu": PRIOR[0]}, campaigns=["monday"])
    profile = exact_profile(WORLD, table, 11, passed=False)
    with pytest.raises(UnconvergedError, match="R-hat"):
        profile.watch()
    assert profile.watch(allow_unconverged=True).update(_stream(rng, WORLD, 2)).rows == 2
