"""What moved is named when rows of several regimes show it, and is said to be confused when they do not."""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesperf.model import Floats
from bayesperf.report.validation import write_validation
from bayesperf.validation.explanations import subsets_of
from bayesperf.validation.moved import Moved, explain
from bayesperf.validation.weighing import Evidence
from tests.exact import PRIOR, World, exact_profile

ROWS, NOISE, CAMPAIGN, SHIFT = 30, 0.05, 0.02, float(np.log(1.2))
LIMITS = ("compute", "memory", "overhead")


def _evidence(
    rng: np.random.Generator, moved: str, *, mixed: bool = True, size: float = SHIFT, draws: int = 300
) -> Evidence:
    """Rows of a later campaign in a linearised roofline, with an exact posterior of three parameters."""
    shares = rng.dirichlet([0.4] * 3, size=ROWS) if mixed else rng.dirichlet([60, 1, 1], size=ROWS)
    spread = np.array([0.02, 0.02, 0.03])
    truth, estimate = rng.normal(0, spread), rng.normal(0, spread)
    parameters = estimate + spread * rng.standard_normal((draws, 3))
    error = shares @ truth + CAMPAIGN * rng.standard_normal()
    work = (np.arange(ROWS) >= ROWS // 2).astype(np.float64)
    delta: dict[str, Floats] = {"level": np.ones(ROWS), "subset": work, "none": np.zeros(ROWS), "noise": np.zeros(ROWS)}
    delta |= {name: shares[:, at] for at, name in enumerate(LIMITS)}
    noise = NOISE * (2.5 if moved == "noise" else 1.0)
    observed = error + size * delta[moved] + noise * rng.standard_t(5.0, size=ROWS)
    signal = parameters @ shares.T
    return Evidence(
        residual=observed - signal.mean(axis=0),
        signal=signal - signal.mean(axis=0),
        campaign=CAMPAIGN * rng.standard_normal((draws, 1)) * np.ones(ROWS),
        shares=dict(zip(LIMITS, shares.T, strict=True)),
        scale=np.full((draws, ROWS), NOISE),
        tail=np.full(draws, 5.0),
        subsets={"large shapes": work, "small shapes": 1.0 - work},
    )


def _first(found: Moved) -> str:
    return str(found.table["explanation"].iloc[0])


def test_the_moved_parameter_is_named_on_mixed_rows() -> None:
    """36 campaigns with a shift of 20 %: named first in at least 80 %, and its 90 % interval covers as it should."""
    rng = np.random.default_rng(1)
    found = [(moved, explain(_evidence(rng, moved))) for moved in LIMITS * 12]
    assert np.mean([_first(f) == moved for moved, f in found]) >= 0.8, [(moved, _first(f)) for moved, f in found]
    named = [f.table.iloc[0] for moved, f in found if _first(f) == moved]
    covered = np.mean([row["shift_lower"] < 0.2 < row["shift_upper"] for row in named])
    assert covered >= 0.9 - 2 * np.sqrt(0.9 * 0.1 / len(named))


@pytest.mark.parametrize("moved", ["noise", "subset"])
def test_other_explanations_are_named(moved: str) -> None:
    rng = np.random.default_rng(7)
    found = Counter(_first(explain(_evidence(rng, moved, size=0.4))) for _ in range(10))
    assert found[moved] >= 8, found


def test_where_nothing_moved_little_is_claimed() -> None:
    rng = np.random.default_rng(5)
    tables = [explain(_evidence(rng, "none")).table.set_index("explanation")["probability"] for _ in range(10)]
    assert np.mean([table["none"] for table in tables]) > 0.25
    assert sum(table.drop("none").max() > 0.9 for table in tables) <= 2


def test_one_regime_confuses_and_names_a_probe() -> None:
    rng = np.random.default_rng(8)
    found = [explain(_evidence(rng, "compute", mixed=False)) for _ in range(6)]
    both = [f for f in found if {"compute", "level"} <= set(f.table["explanation"].iloc[:2])]
    assert len(both) >= 4
    assert all(any("sustained" in probe for probe in f.probes) for f in both)
    assert both[0].words.startswith("undecided between ")
    assert both[0].advice.startswith("to tell apart, measure short and sustained runs")


def test_probabilities_sum_to_one_and_words_say_how_much_and_what_to_do() -> None:
    found = explain(_evidence(np.random.default_rng(9), "memory", size=0.4))
    assert found.table["probability"].sum() == pytest.approx(1.0)
    assert found.words.startswith("memory time +")
    assert "memory's clock" in found.advice
    assert found.method in ("draws", "laplace")


def test_two_rows_are_too_few_and_say_so() -> None:
    whole = _evidence(np.random.default_rng(11), "memory")
    two = {name: value[..., :2] for name, value in vars(whole).items() if name not in ("tail", "shares", "subsets")}
    shares, subsets = ({k: v[:2] for k, v in each.items()} for each in (whole.shares, whole.subsets))
    found = explain(Evidence(**two, tail=whole.tail, shares=shares, subsets=subsets))
    assert found.words.startswith("not computed")
    assert found.advice.startswith("hold out 3 configurations or more")


def test_an_average_that_few_draws_carry_is_not_used() -> None:
    evidence = _evidence(np.random.default_rng(10), "compute")
    # Parameters hardly known: hardly any draw is near the rows.
    wide = 0.5 * np.random.default_rng(1).standard_normal((300, 3)) @ np.stack(list(evidence.shares.values()))
    vague = Evidence(**{**vars(evidence), "signal": wide})
    found = explain(vague)
    assert found.method == "laplace"
    assert found.pareto_k > 0.7


def test_both_estimates_agree_where_both_hold() -> None:
    evidence = _evidence(np.random.default_rng(3), "memory")
    by_draw = explain(evidence)
    few = slice(None, 90)
    cut = {name: getattr(evidence, name)[few] for name in ("signal", "campaign", "scale", "tail")}
    laplace = explain(Evidence(**{**vars(evidence), **cut}))
    assert (by_draw.method, laplace.method) == ("draws", "laplace")
    one, other = (found.table.set_index("explanation")["probability"] for found in (by_draw, laplace))
    assert (one - other).abs().max() < 0.15


def test_what_is_not_finite_is_not_computed() -> None:
    evidence = _evidence(np.random.default_rng(11), "none")
    broken = Evidence(**{**vars(evidence), "scale": np.full((300, ROWS), np.nan)})
    found = explain(broken)
    assert (found.method, len(found.table)) == ("not computed", 0)
    assert "not computed" in found.words


def test_subsets_by_operation_type_and_size() -> None:
    table = pd.DataFrame(
        {"op": ["a"] * 6 + ["b"] * 6, "dtype": ["x", "y"] * 6, "flops": np.arange(1.0, 13.0) * 1e9, "bytes": 1.0}
    )
    found = subsets_of(table, table["flops"].to_numpy() > 1e10)
    assert found["a only"].tolist() == [1.0] * 6 + [0.0] * 6
    assert found["a from 5 GFLOP"].tolist() == [0.0] * 4 + [1.0] * 2 + [0.0] * 6
    assert found["y only"].sum() == 6
    assert found["sizes outside of what was measured"].sum() == 2
    assert all(0 < rows.sum() < 12 for rows in found.values())


def test_a_failed_group_of_a_validation_is_explained() -> None:
    rng, world = np.random.default_rng(12), World()
    profile = exact_profile(world, world.measure(rng, {"gpu": PRIOR[0]}, campaigns=["monday"]), 1)
    later = world.measure(rng, {"gpu": PRIOR[0] - 0.5}, campaigns=["tuesday"]).assign(role="heldout")
    checked = profile.validate(later)
    (group,) = checked.groups["group"]
    found = checked.moved[group]
    assert found.table["probability"].sum() == pytest.approx(1.0)
    moved = found.table[found.table["explanation"].isin(["memory", "level"])]
    assert moved["probability"].sum() > 0.9
    assert "working set" in found.advice
    row = checked.groups.iloc[0]
    assert (row["moved"], row["moved_advice"]) == (found.words, found.advice)
    assert row["moved_shift_lower"] < np.expm1(0.5) < row["moved_shift_upper"]
    few = profile.validate(later.iloc[:2])
    assert few.groups["verdict"].tolist() == ["fails"]
    assert few.groups["moved"].tolist() == ["not computed: what moved takes 3 held-out configurations or more"]
    held = profile.validate(world.measure(rng, {"gpu": PRIOR[0]}, campaigns=["wednesday"]))
    assert held.moved == {}
    assert held.groups["moved"].tolist() == [""]


def test_files_of_a_validation_say_what_moved(tmp_path: Path) -> None:
    rng, world = np.random.default_rng(15), World()
    profile = exact_profile(world, world.measure(rng, {"gpu": PRIOR[0]}, campaigns=["monday"]), 1)
    later = world.measure(rng, {"gpu": PRIOR[0] - 0.5}, campaigns=["tuesday"])
    checked = profile.validate(later)
    (found,) = checked.moved.values()
    verdicts, page = write_validation(profile, checked, tmp_path, heldout=later)
    row = pd.read_csv(verdicts).iloc[0]
    assert (row["moved"], row["moved_explanation"]) == (found.words, found.table["explanation"].iloc[0])
    text = html.unescape(page.read_text())
    assert all(words in text for words in ("What moved:", found.words, found.advice, *found.table["detail"]))


def test_another_kernel_for_large_shapes_of_one_operation_is_a_subset() -> None:
    """As NeuSight saw it on one GPU: large shapes of one operation three times faster in a later campaign."""
    rng, world = np.random.default_rng(14), World()

    def measure(campaign: str) -> pd.DataFrame:
        table = world.measure(rng, {"gpu": PRIOR[0]}, campaigns=[campaign], rows=32)
        return table.assign(op=np.where(np.arange(32) % 2, "linear", "copy"))

    profile = exact_profile(world, measure("monday"), 1)
    later = measure("tuesday")
    other = ((later["op"] == "linear") & (later["bytes"] > 3e7)).to_numpy()
    checked = profile.validate(later.assign(time_s=later["time_s"] / np.where(other, 3.0, 1.0)))
    assert checked.any_fails
    (found,) = checked.moved.values()
    assert (found.named, _first(found)) == (True, "subset")
    assert found.words.startswith("linear from ")
    assert "kernels' names" in found.advice
    assert found.table["shift_lower"].iloc[0] < -2 / 3 < found.table["shift_upper"].iloc[0]
