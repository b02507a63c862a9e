"""Did aggressors really run while the victim was timed? Verified from time stamps, never assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesperf.errors import MeasurementError

__all__ = ["LEAST_OVERLAP", "Launches", "Span", "check_overlap", "covered_share", "iterations_within"]

LEAST_OVERLAP = 0.9
"""Share of the victim's timed seconds that each aggressor must have a launch under way."""

Span = tuple[float, float]
"""Begin and end in s of one clock."""


@dataclass(frozen=True, slots=True)
class Launches:
    """What one aggressor did.

    Attributes
    ----------
    spans
        Its launches, in order.
    iterations
        Iterations of each launch.
    """

    spans: tuple[Span, ...]
    iterations: int


def covered_share(victim: Sequence[Span], launches: Launches) -> float:
    """Share of the victim's timed seconds during which an aggressor had a launch under way."""
    timed = sum(end - begin for begin, end in victim)
    if not timed or not launches.spans:
        return 0.0
    begins, ends = np.array(launches.spans).T
    covered = sum(
        float(np.clip(np.minimum(ends, end) - np.maximum(begins, begin), 0.0, None).sum()) for begin, end in victim
    )
    return covered / timed


def iterations_within(launches: Launches, begin: float, end: float) -> float:
    """Iterations done between two moments; of a launch that one of them cuts, its share."""
    return sum(
        launches.iterations * max(0.0, min(last, end) - max(first, begin)) / (last - first)
        for first, last in launches.spans
        if last > first
    )


def check_overlap(victim: Sequence[Span], others: Sequence[Launches], *, least: float = LEAST_OVERLAP) -> float:
    """Smallest share of the victim's timed seconds that an aggressor covers.

    Parameters
    ----------
    victim
        Begin and end of each timed launch.
    others
        What each aggressor did, on the same clock.
    least
        Share that is enough.

    Returns
    -------
    float
        Between `least` and 1.

    Raises
    ------
    MeasurementError
        ``no-overlap``: an aggressor began after the first timed launch, ended before the last, or paused meanwhile.
    """
    first, last = victim[0][0], victim[-1][1]
    for at, launches in enumerate(others):
        if not launches.spans or launches.spans[0][0] > first or launches.spans[-1][1] < last:
            raise MeasurementError(
                "no-overlap", f"aggressor {at} did not run from before the first timed launch until after the last"
            )
    share = min(covered_share(victim, launches) for launches in others)
    if share < least:
        raise MeasurementError(
            "no-overlap",
            f"an aggressor ran during {share:.0%} of the timed seconds only, {least:.0%} are needed: it was starved, "
            "or its launches are too short beside what the system adds to each",
        )
    return share
