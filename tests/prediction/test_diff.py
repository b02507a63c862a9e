"""Differences of profiles: few false alarms, real changes found, small ones ambiguous while campaigns are few."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.errors import InputError, UnconvergedError, UnknownNameError
from bayesperf.prediction.diff import Difference, verdict_of
from bayesperf.prediction.profile import Profile
from tests.exact import PRIOR, World, exact_profile


def _profile(
    rng: np.random.Generator, world: World, change: float = 0.0, campaigns: int = 1, name: str = ""
) -> Profile:
    days = [f"{name}{at}" for at in range(campaigns)]
    table = world.measure(rng, {"gpu": PRIOR[0] + change}, campaigns=days)
    return exact_profile(world, table, int(rng.integers(1 << 30)), draws=1000)


def _verdicts(world: World, moved: float, campaigns: int, fits: int = 16, **options: float) -> pd.Series:
    rng = np.random.default_rng(campaigns)
    found = []
    for seed in range(fits):
        old = _profile(rng, world, campaigns=campaigns, name="old")
        new = _profile(rng, world, moved, campaigns, "new")
        found.append(bp.diff(old, new, seed=seed, **options).parameters["verdict"].iloc[0])  # type: ignore[arg-type]
    return pd.Series(found)


def test_profiles_of_the_same_target_rarely_differ() -> None:
    """No change, one campaign each: a change of 5 % can be neither told nor excluded."""
    found = _verdicts(World(), 0.0, 1)
    assert (found == "ambiguous").mean() >= 0.9
    assert found.isin(["higher", "lower"]).mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(found))


@pytest.mark.slow
@pytest.mark.parametrize("campaigns", [1, 6])
@pytest.mark.parametrize("spread", [0.03, 0.1])
def test_false_alarms(campaigns: int, spread: float) -> None:
    """No change, 400 pairs of fits: fewer false alarms than the confidence promises, whatever campaigns do.

    At a spread of 10 % and one campaign each, three in four pairs would be called changed without it.
    """
    found = _verdicts(World(campaign=spread), 0.0, campaigns, fits=400)
    assert found.isin(["higher", "lower"]).mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(found))


def test_a_large_change_is_found_and_its_direction_named() -> None:
    assert (_verdicts(World(), 0.4, 1) == "higher").mean() >= 0.9
    assert (_verdicts(World(), -0.4, 1, fits=5) == "lower").mean() >= 0.9


def test_many_campaigns_decide_what_one_cannot() -> None:
    assert (_verdicts(World(), 0.11, 1) == "higher").mean() < 0.7
    assert (_verdicts(World(), 0.11, 8) == "higher").mean() >= 0.85
    assert (_verdicts(World(), 0.0, 8, change=0.1) == "unchanged").mean() >= 0.85


def test_one_named_campaign_cancels() -> None:
    world, rng = World(campaign=0.2), np.random.default_rng(3)
    old, new = _profile(rng, world, name="monday"), _profile(rng, world, name="monday")
    found = bp.diff(old, new)
    assert (found.parameters["campaign_spread"] == 0).all()
    assert "cancels" in " ".join(found.notes)
    other = bp.diff(old, _profile(rng, world, name="tuesday"))
    # Both sides add the spread between one campaign and their mean.
    assert other.parameters["campaign_spread"].iloc[0] == pytest.approx(0.2 * np.sqrt(2), rel=0.1)
    assert "one campaign seen" in " ".join(other.notes)
    assert other.parameters["advice"].iloc[0].startswith("more campaigns")


@pytest.mark.slow
def test_intervals_cover_the_true_ratio() -> None:
    """The 90 % interval of 200 pairs covers the true change in 90 %, within three standard errors."""
    rng, world, inside = np.random.default_rng(4), World(campaign=0.06), []
    for seed in range(200):
        change = rng.normal(0, 0.2)
        old, new = _profile(rng, world, name="old"), _profile(rng, world, change, name="new")
        row = bp.diff(old, new, seed=seed).parameters.iloc[0]
        inside.append(row["ratio_lower"] < np.exp(change) < row["ratio_upper"])
    assert abs(np.mean(inside) - 0.9) < 3 * np.sqrt(0.9 * 0.1 / 200)


@pytest.mark.parametrize(
    ("higher", "lower", "verdict"),
    [(0.97, 0.0, "higher"), (0.0, 0.96, "lower"), (0.02, 0.02, "unchanged"), (0.5, 0.1, "ambiguous"),
     (0.5, 0.46, "ambiguous")],
)  # fmt: skip
def test_verdicts(higher: float, lower: float, verdict: str) -> None:
    assert verdict_of(higher, lower, 0.95) == verdict


def test_what_cannot_be_compared_is_refused() -> None:
    world, rng = World(), np.random.default_rng(5)
    old = _profile(rng, world, name="old")
    other = exact_profile(world, world.measure(rng, {"cpu": PRIOR[0]}, campaigns=["x"]), 1)
    with pytest.raises(InputError, match="no target in common: gpu and cpu"):
        bp.diff(old, other)
    with pytest.raises(InputError, match="read files with load_profile"):
        bp.diff(old, "new.nc")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="gpu"):
        bp.diff(old, old, target="gpa")
    for options in ({"change": 0.0}, {"confidence": 1.0}, {"seed": -1}):
        with pytest.raises(InputError):
            bp.diff(old, old, **options)
    bad = exact_profile(world, old.table, 1, passed=False)
    with pytest.raises(UnconvergedError, match="the new profile"):
        bp.diff(old, bad)
    assert isinstance(bp.diff(old, bad, allow_unconverged=True), Difference)


def test_parameters_of_one_side_only_are_named() -> None:
    world, rng = World(), np.random.default_rng(6)
    both = exact_profile(world, world.measure(rng, {"gpu": PRIOR[0], "cpu": PRIOR[0]}, campaigns=["x"]), 1)
    one = _profile(rng, world, name="y")
    found = bp.diff(one, both)
    assert found.targets == ("gpu",)
    assert found.only_old == found.only_new == ()
    assert set(bp.diff(both, both).parameters["target"]) == {"gpu", "cpu"}
    assert set(bp.diff(both, both, target="cpu").parameters["target"]) == {"cpu"}


def test_a_difference_writes_its_page(tmp_path: Path) -> None:
    rng, world = np.random.default_rng(7), World()
    path = tmp_path / "difference.html"
    bp.diff(_profile(rng, world, name="old"), _profile(rng, world, 0.5, name="new")).to_html(path)
    text = path.read_text()
    assert "1 parameter higher" in text
    assert "data:image/svg+xml;base64," in text
