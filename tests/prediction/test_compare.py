"""Comparisons of targets are calibrated, paired, and say when they cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayesperf.errors import InputError, TableError, UnconvergedError, UnknownNameError
from bayesperf.prediction.profile import Profile
from tests.exact import PRIOR, World, exact_profile

WORKLOADS = pd.DataFrame({"op": "copy", "flops": 0.0, "bytes": [1e7, 3e8]})


def _pair(seed: int, gap: float = 0.0, world: World | None = None) -> Profile:
    rng = np.random.default_rng(seed)
    world = world or World()
    table = world.measure(rng, {"a": PRIOR[0], "b": PRIOR[0] + gap}, campaigns=["monday"])
    return exact_profile(world, table, seed)


@pytest.mark.parametrize("fits", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_the_probability_of_being_faster_is_calibrated(fits: int) -> None:
    """Fits of two targets and what both then take in fresh campaigns: outcomes are as probable as was said."""
    rng = np.random.default_rng(30)
    world = World(campaign=0.05)
    said, seen, ranks = [], [], []
    for seed in range(fits):
        bandwidth = dict(zip("ab", PRIOR[0] + rng.normal(0, 0.1, 2), strict=True))
        campaigns = [f"day {at}" for at in range(rng.integers(1, 4))]
        profile = exact_profile(world, world.measure(rng, bandwidth, campaigns=campaigns, rows=6), seed, draws=500)
        compared = profile.compare(["a", "b"], WORKLOADS.iloc[:1], seed=seed)
        later = {k: -v + rng.normal(0, world.campaign) + rng.normal(0, world.misfit) for k, v in bandwidth.items()}
        said.append(float(compared.pairs()["p_a_faster"].iloc[0]))
        seen.append(later["a"] < later["b"])
        ratio = np.log(compared.times.sel(target="a") / compared.times.sel(target="b"))
        ranks.append(float((ratio < later["a"] - later["b"]).mean()))
    assert scipy.stats.kstest(ranks, "uniform").pvalue > 0.001
    p, outcome = np.array(said), np.array(seen)
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)):
        chosen = (p >= low) & (p <= high)
        expected, spread = p[chosen].sum(), np.sqrt((p[chosen] * (1 - p[chosen])).sum())
        assert abs(outcome[chosen].sum() - expected) < 3.5 * spread + 0.5, (low, high)
    # A comparison that always says one half would pass the lines above.
    assert (np.abs(p - 0.5) > 0.4).mean() > 0.2


def test_a_large_gap_is_called_and_a_small_one_is_ambiguous() -> None:
    far = _pair(1, gap=0.5).compare(["a", "b"], WORKLOADS)
    assert far.pairs()["faster"].tolist() == ["b", "b"]
    assert far.total()["faster"].tolist() == ["b"]
    assert float(far.fastest_in_total.sel(target="b")) > 0.99
    near = _pair(2, gap=0.01).compare(["a", "b"], WORKLOADS)
    assert set(near.pairs()["faster"]) == {"ambiguous"}
    ratio = far.pairs().iloc[0]
    assert ratio["ratio_lower"] < np.exp(0.5) < ratio["ratio_upper"]
    assert ratio["ratio_lower"] < ratio["ratio"] < ratio["ratio_upper"]


def test_circumstances_are_the_same_for_all() -> None:
    profile = _pair(3, world=World(campaign=0.1))

    def width(**options: Any) -> float:
        row = profile.compare(["a", "b"], WORKLOADS, **options).pairs().iloc[0]
        return float(np.log(row["ratio_upper"] / row["ratio_lower"]))

    assert width(campaign="monday") < width(mean=True) < width()
    assert width(campaign="monday") < width(campaign="monday", repeats=True)
    # Two fresh campaigns, each twice as uncertain where one was seen, and the misfit of each.
    expected = 2 * 1.645 * np.sqrt(2 * (2 * 0.1**2 + 0.02**2 + (0.02**2 + 0.01**2) / 12))
    assert width() == pytest.approx(expected, rel=0.06)


def test_counts_weigh_the_total() -> None:
    profile = _pair(4)
    few = profile.compare(["a", "b"], WORKLOADS.assign(count=[1, 1]))
    many = profile.compare(["a", "b"], WORKLOADS.assign(count=[1000, 1]))
    np.testing.assert_allclose(few.totals.values, few.times.sum("workload").values)
    expected = (many.times * [1000.0, 1.0]).sum("workload")
    np.testing.assert_allclose(many.totals.values, expected.transpose("draw", "target").values)
    with pytest.raises(InputError, match=r"row 1, column count: .*, not -1$"):
        profile.compare(["a", "b"], WORKLOADS.assign(count=[1, -1]))
    with pytest.raises(InputError, match="none is executed"):
        profile.compare(["a", "b"], WORKLOADS.assign(count=0))
    classes = pd.Series(["mine", None], name="class", index=WORKLOADS.index)
    named = profile.compare(["a", "b"], pd.concat([WORKLOADS, classes], axis=1))
    assert named.class_of == ["mine", "copy"]


def test_every_pair_of_three_targets() -> None:
    world = World()
    bandwidth = {"a": PRIOR[0], "b": PRIOR[0] + 0.4, "c": PRIOR[0] + 0.8}
    table = world.measure(np.random.default_rng(5), bandwidth, campaigns=["monday"])
    compared = exact_profile(world, table, 5).compare(["a", "b", "c"], WORKLOADS)
    pairs = compared.pairs()
    assert list(zip(pairs["a"], pairs["b"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")] * 2
    np.testing.assert_allclose(compared.fastest.sum("target"), 1.0)
    assert compared.supported.all()


def test_the_same_seed_gives_the_same_probabilities() -> None:
    profile = _pair(6)
    one, two, other = (profile.compare(["a", "b"], WORKLOADS, seed=seed).pairs() for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, two)
    assert (one["ratio"] != other["ratio"]).all()


def test_bad_comparisons_are_refused() -> None:
    profile = _pair(7)
    for targets in (["a"], ["a", "a"], "a", None, 3, [["a"], ["a"]]):
        with pytest.raises(InputError, match="two different targets"):
            profile.compare(targets, WORKLOADS)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="no option named 'confidenc'; there are: confidence"):
        profile.compare(["a", "b"], WORKLOADS, confidenc=0.9)  # type: ignore[call-arg]
    for options in ({"confidence": 0.3}, {"draws": 1}, {"seed": -1}, {"mean": True, "campaign": "monday"}):
        with pytest.raises(InputError):
            profile.compare(["a", "b"], WORKLOADS, **options)
    with pytest.raises(InputError, match="ratio, supported would be replaced"):
        profile.compare(["a", "b"], WORKLOADS.assign(supported=True, ratio=1.0))
    with pytest.raises(TableError, match="bytes"):
        profile.compare(["a", "b"], {"op": "copy", "flops": 0.0, "bytes": np.nan})
    with pytest.raises(InputError, match="between 0 and 1"):
        profile.compare(["a", "b"], WORKLOADS).pairs(interval=1.0)


def test_an_unconverged_profile_compares_only_when_asked_to() -> None:
    world = World()
    table = world.measure(np.random.default_rng(8), {"a": PRIOR[0], "b": PRIOR[0]}, campaigns=["monday"])
    profile = exact_profile(world, table, 8, passed=False)
    with pytest.raises(UnconvergedError, match="R-hat"):
        profile.compare(["a", "b"], WORKLOADS)
    assert len(profile.compare(["a", "b"], WORKLOADS, allow_unconverged=True).pairs()) == 2


def test_a_comparison_writes_its_page(tmp_path: Path) -> None:
    path = tmp_path / "comparison.html"
    _pair(9, gap=0.5).compare(["a", "b"], WORKLOADS.assign(count=3)).to_html(path)
    text = path.read_text()
    assert "ambiguous" in text
    assert "data:image/svg+xml;base64," in text
    assert "<script" not in text
