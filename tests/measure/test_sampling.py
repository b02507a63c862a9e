"""Counts, rounds and stopping rules on a synthetic clock."""

from __future__ import annotations

import numpy as np
import pytest

from bayesperf.errors import MeasurementError
from bayesperf.measure.sampling import Samples, choose_counts, take_samples
from bayesperf.measure.slope import fit_slope
from bayesperf.measure.stopping import StandardRule


class SyntheticMachine:
    """A clock that only moves when work is done, and work that takes a known time."""

    def __init__(self, per_iteration_s: float, launch_s: float = 1e-5, noise: float = 0.0, drift: float = 0.0):
        self.per_iteration_s, self.launch_s = per_iteration_s, launch_s
        self.noise, self.drift = noise, drift
        self.now, self.rng, self.calls = 0.0, np.random.default_rng(0), 0

    def clock(self) -> float:
        return self.now

    def timer(self, iterations: int) -> float:
        speed = (1 + self.drift * self.now) * (1 + self.noise * self.rng.standard_normal())
        seconds = (self.launch_s + self.per_iteration_s * iterations) * speed
        self.now += seconds
        self.calls += 1
        return seconds


def sample(machine: SyntheticMachine, rule: StandardRule | None = None, longest_s: float = 0.01) -> Samples:
    rule = rule or StandardRule()
    return take_samples(
        machine.timer, rule, np.random.default_rng(1), machine.clock, longest_s=longest_s, too_slow_s=2.0
    )


@pytest.mark.parametrize("per_iteration_s", [1e-7, 1e-5, 1e-3, 0.1])
def test_recovers_time_per_iteration_and_launch(per_iteration_s: float) -> None:
    machine = SyntheticMachine(per_iteration_s, launch_s=3e-5)
    fit = fit_slope(sample(machine).rounds)
    assert fit.slope_s == pytest.approx(per_iteration_s, rel=1e-6)
    assert fit.intercept_s == pytest.approx(3e-5, rel=1e-3)


def test_longest_count_takes_its_share() -> None:
    counts, _ = choose_counts(SyntheticMachine(1e-6).timer, 0.01, too_slow_s=1.0)
    assert counts[-1] * 1e-6 == pytest.approx(0.01, rel=0.05)
    assert len(set(counts)) == 3


def test_slow_work_still_gets_three_counts() -> None:
    counts, _ = choose_counts(SyntheticMachine(0.5).timer, 0.01, too_slow_s=1.0)
    assert counts == (1, 2, 3)


def test_a_hiccup_does_not_pass_for_work() -> None:
    machine = SyntheticMachine(1e-7)
    hiccups = iter([0.0, 0.02])

    def timer(iterations: int) -> float:
        return machine.timer(iterations) + next(hiccups, 0.0)

    counts, _ = choose_counts(timer, 0.01, too_slow_s=1.0)
    assert counts[-1] > 10_000


def test_too_slow_is_refused() -> None:
    with pytest.raises(MeasurementError) as caught:
        choose_counts(SyntheticMachine(3.0).timer, 0.01, too_slow_s=1.0)
    assert caught.value.reason == "too-slow"


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_work_that_takes_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(MeasurementError) as caught:
        choose_counts(lambda iterations: seconds, 0.01, too_slow_s=1.0)
    assert caught.value.reason == "does-not-grow"


def test_drifting_timer_is_refused_end_to_end() -> None:
    machine = SyntheticMachine(1e-5, noise=0.002, drift=4.0)
    rule = StandardRule(target=1e-9, budget_s=0.3)
    with pytest.raises(MeasurementError) as caught:
        fit_slope(sample(machine, rule).rounds)
    assert caught.value.reason == "drift"


def test_every_sample_is_kept() -> None:
    machine = SyntheticMachine(1e-5, noise=0.05)
    samples = sample(machine)
    assert machine.calls == len(samples.warmup) + 3 * len(samples.rounds)


def test_order_within_rounds_is_random() -> None:
    rounds = sample(SyntheticMachine(1e-5, noise=0.1), StandardRule(target=1e-9, budget_s=0.2)).rounds
    assert len({r.iterations for r in rounds}) > 2


def test_stops_at_target() -> None:
    samples = sample(SyntheticMachine(1e-5, noise=0.001))
    assert samples.stop_reason == "target-error"
    assert len(samples.rounds) == StandardRule().least


def test_stops_at_budget() -> None:
    machine = SyntheticMachine(1e-5, noise=0.3)
    samples = sample(machine, StandardRule(target=1e-6, budget_s=0.1, plateau=1000))
    assert samples.stop_reason == "time-budget"
    assert machine.now < 0.2


def test_an_overspent_budget_needs_three_rounds_only() -> None:
    samples = sample(SyntheticMachine(0.2), StandardRule(budget_s=0.1))
    assert len(samples.rounds) == 3
    assert samples.stop_reason == "time-budget"


def test_stops_at_plateau_and_at_most_rounds() -> None:
    rng = np.random.default_rng(2)
    rule = StandardRule(target=1e-6, budget_s=1e9, most=100)
    reasons = {rule.decide(np.exp(0.3 * rng.standard_normal(count)), 0.0) for count in range(20, 100) for _ in range(3)}
    assert "plateau" in reasons
    slopes = 1.0 / np.sqrt(np.arange(1, 101))
    assert StandardRule(target=1e-9, budget_s=1e9, most=100, plateau=10_000).decide(slopes, 0.0) == "max-rounds"


def test_goes_on_below_the_least_rounds() -> None:
    assert StandardRule().decide(np.ones(4), 0.01) is None
