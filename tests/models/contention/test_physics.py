"""Mixes whose slowdown is known: nobody beside, equal saturating partners, complementary ones, turns on a processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayesperf.models.contention.physics import RESOURCES, Mix, contend

ALONE = 1e-4


def parameters(members: int, rows: int = 1, **given: float) -> dict[str, Any]:
    values = {
        "turn_weight": 0.0, "turn_capacity": 1e9, "private_bytes": 0.0, "cache_taken": 0.0, "corner": 5.0,
        "turn_corner": 8.0, **{f"{r}_room": 1.0 for r in RESOURCES}, **{f"{r}_loss": 0.0 for r in RESOURCES}, **given,
    }  # fmt: skip
    effects = {name: np.zeros((1, rows, members)) for name in ("demand_effect", "victim_effect")}
    return {**{name: np.full((1, 1), value) for name, value in values.items()}, **effects}


def mix(
    counts: list[float], *use: tuple[float, float, float], capacity: float = np.nan, overlap: float = 1.0,
    load: float = 1.0, pressure: float = 0.0,
) -> Mix:  # fmt: skip
    n = len(counts)
    shares = np.maximum(np.array(use), ALONE).T[:, None, :]
    one = np.ones((1, n))
    places = np.full((1, n, n), overlap)
    places[:, np.arange(n), np.arange(n)] = 1.0
    compute, memory, link = shares
    return Mix(
        np.array([counts], float), compute, memory, link, 30.0 * one, load * one, capacity * one, places, pressure * one
    )


def slowdown(made: Mix, iterations: int | None = None, **given: float) -> float:
    p = parameters(made.count.shape[1], 1, **given)
    found = contend(np, p, made) if iterations is None else contend(np, p, made, iterations)
    return float(np.exp(found.total[0, 0]))


COMPUTE, MEMORY, LINK = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@pytest.mark.parametrize("use", [COMPUTE, MEMORY, LINK, (0.7, 0.6, 0.1)])
def test_nobody_beside_costs_nothing(use: tuple[float, float, float]) -> None:
    assert slowdown(mix([1, 0], use, MEMORY)) == pytest.approx(1.0, abs=1e-9)
    assert slowdown(mix([1], use)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("use", [COMPUTE, MEMORY, LINK])
@pytest.mark.parametrize("others", [1, 2, 3])
def test_equal_saturating_partners_take_n_times_as_long(use: tuple[float, float, float], others: int) -> None:
    assert slowdown(mix([1, others], use, use)) == pytest.approx(1.0 + others, rel=1e-3)


@pytest.mark.parametrize(("victim", "other"), [(COMPUTE, MEMORY), (MEMORY, LINK), (LINK, COMPUTE)])
def test_complementary_partners_cost_nothing_when_shared_and_a_turn_when_sliced(victim: Any, other: Any) -> None:
    assert slowdown(mix([1, 3], victim, other)) == pytest.approx(1.0, abs=0.01)
    assert slowdown(mix([1, 3], victim, other), turn_capacity=1.0) == pytest.approx(4.0, rel=1e-3)
    assert slowdown(mix([1, 3], victim, other, capacity=1.0)) == pytest.approx(4.0, rel=1e-3)


def test_room_and_loss() -> None:
    pair = mix([1, 1], MEMORY, MEMORY)
    assert slowdown(pair, memory_room=20.0) == pytest.approx(1.0, abs=0.01)
    assert slowdown(pair, memory_loss=0.1) == pytest.approx(2.2, rel=0.01)
    assert slowdown(pair, memory_room=2.0) < 1.3 < slowdown(mix([1, 3], MEMORY, MEMORY), memory_room=2.0)


def test_processes_take_turns_once_there_are_more_than_processors() -> None:
    two = {"capacity": 2.0}
    fits, crowd = (slowdown(mix([1, n], COMPUTE, COMPUTE, **two), compute_room=1e3) for n in (1, 3))
    assert fits < 1.1
    assert crowd == pytest.approx(2.0, rel=0.01)
    # A kernel that keeps both busy has no processor to spare.
    both = slowdown(mix([1, 1], COMPUTE, COMPUTE, capacity=2.0, load=2.0), compute_room=1e3)
    assert both == pytest.approx(2.0, rel=0.01)


def test_who_takes_turns_shares_nothing_else_and_who_has_processors_of_its_own_takes_none() -> None:
    assert slowdown(mix([1, 1], MEMORY, MEMORY, capacity=1.0), memory_loss=0.5) == pytest.approx(2.0, rel=1e-3)
    apart = slowdown(mix([1, 1], MEMORY, MEMORY, capacity=1.0, overlap=0.0), memory_loss=0.5)
    assert apart == pytest.approx(3.0, rel=0.01)
    # Two aggressors that take turns elsewhere are offered as one.
    places = mix([1, 2], MEMORY, MEMORY, capacity=1.0, overlap=0.0)
    assert slowdown(places) == pytest.approx(2.0, rel=0.01)


def test_cache_pressure_stretches_memory_alone() -> None:
    assert slowdown(mix([1, 1], MEMORY, COMPUTE, pressure=0.4), cache_taken=0.5) == pytest.approx(np.exp(0.2), rel=0.01)
    assert slowdown(mix([1, 1], COMPUTE, MEMORY, pressure=0.4), cache_taken=0.5) == pytest.approx(1.0, abs=0.01)
    assert slowdown(mix([1, 1], MEMORY, MEMORY), private_bytes=40.0) == pytest.approx(1.0, abs=0.01)


def test_few_iterations_reach_the_fixed_point() -> None:
    rng = np.random.default_rng(3)
    rows, members = 400, 4
    compute, memory, link = rng.uniform(0.0, 1.0, (3, rows, members))
    one = np.ones((rows, members))
    random = Mix(
        np.concatenate([one[:, :1], rng.integers(0, 3, (rows, members - 1))], axis=1),
        compute, memory, link, 30.0 * one, one, np.nan * one, np.ones((rows, members, members)), 0.0 * one,
    )  # fmt: skip
    p = parameters(members, rows, compute_loss=0.1, memory_loss=0.1)
    few, many = contend(np, p, random).total, contend(np, p, random, 60).total
    assert np.quantile(np.abs(few - many), 0.95) < 0.01
    assert np.abs(few - many).max() < 0.05
    assert (few >= -1e-9).all()


def test_more_aggressors_never_help() -> None:
    found = [slowdown(mix([1, n], (0.6, 0.7, 0.0), (0.4, 0.9, 0.0)), memory_room=1.5) for n in range(5)]
    assert np.all(np.diff(found) > 0)
