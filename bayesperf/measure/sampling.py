"""Chooses iteration counts and takes timed rounds until a stopping rule says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayesperf.errors import MeasurementError
from bayesperf.measure.slope import Round, round_slopes
from bayesperf.measure.stopping import StoppingRule

__all__ = ["Samples", "Timer", "choose_counts", "take_samples"]

Timer = Callable[[int], float]
"""Runs that many iterations and returns the seconds they took. Tests pass one with a synthetic clock."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Everything that was timed.

    Attributes
    ----------
    warmup
        Iterations and seconds of the runs that came before the rounds: never part of a fit.
    rounds
        Timed rounds, in order.
    stop_reason
        Why sampling ended.
    """

    warmup: tuple[tuple[int, float], ...]
    rounds: tuple[Round, ...]
    stop_reason: str


def choose_counts(
    timer: Timer, longest_s: float, *, too_slow_s: float, most: int = 2**30
) -> tuple[tuple[int, ...], tuple[tuple[int, float], ...]]:
    """Three iteration counts, a quarter, a half and all of what takes `longest_s`; at least 1, 2 and 3.

    Parameters
    ----------
    timer
        What will be timed.
    longest_s
        Seconds that the longest count should take.
    too_slow_s
        An iteration that takes longer is refused.
    most
        Largest count allowed.

    Returns
    -------
    counts, warmup
        The counts, and the iterations and seconds of the runs it took to find them.

    Raises
    ------
    MeasurementError
        ``too-slow``, or ``does-not-grow`` if even `most` iterations take no time.
    """
    runs: list[tuple[int, float]] = []

    def timed(count: int) -> float:
        runs.append((count, timer(count)))
        return runs[-1][1]

    timed(1)  # touches memory and finishes lazy set-up
    launch = min(timed(1), runs[0][1])
    if launch > too_slow_s:
        raise MeasurementError(
            "too-slow", f"one iteration takes {launch:.3g} s, more than the {too_slow_s:.3g} s that the suite allows"
        )
    if launch >= longest_s:
        return (1, 2, 3), tuple(runs)
    count, beyond = 1, 0.0
    while count < most and beyond < longest_s / 4:
        growth = longest_s / 2 / beyond if beyond > 0 else longest_s / max(launch, 1e-9)
        count = min(most, max(2 * count, int(count * min(growth, 16.0))))
        # What the iterations beyond the first take; once more if enough, as a hiccup must not pass for work.
        beyond = timed(count) - launch
        if beyond >= longest_s / 4:
            beyond = min(beyond, timed(count) - launch)
    if beyond < longest_s / 100:
        raise MeasurementError(
            "does-not-grow", f"{count} iterations take {runs[-1][1]:.3g} s: the work is folded away or the clock broken"
        )
    longest = min(most, max(3, round((count - 1) * longest_s / beyond)))
    if longest < 4:
        return (1, 2, 3), tuple(runs)
    return (max(1, longest // 4), longest // 2, longest), tuple(runs)


def take_samples(
    timer: Timer,
    rule: StoppingRule,
    rng: np.random.Generator,
    clock: Callable[[], float],
    *,
    longest_s: float,
    too_slow_s: float,
) -> Samples:
    """Choose counts, then time rounds of them in random order until `rule` stops.

    Parameters
    ----------
    timer
        Runs and times one count.
    rule
        Stopping rule.
    rng
        Order within rounds.
    clock
        Seconds, for the elapsed time that `rule` is given.
    longest_s, too_slow_s
        As for `choose_counts`.
    """
    counts, warmup = choose_counts(timer, longest_s, too_slow_s=too_slow_s)
    rounds: list[Round] = []
    started = clock()
    while True:
        order = [counts[k] for k in rng.permutation(len(counts))]
        rounds.append(Round(tuple(order), tuple(timer(count) for count in order)))
        reason = rule.decide(round_slopes(rounds)[0], clock() - started)
        if reason is not None:
            return Samples(warmup, tuple(rounds), reason)
