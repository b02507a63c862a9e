"""Overlap by time stamps: whoever began late, ended early or paused is found out."""

from __future__ import annotations

import pytest

from bayesperf.errors import MeasurementError
from bayesperf.measure.overlap import Launches, check_overlap, covered_share, iterations_within

VICTIM = [(1.0, 1.4), (1.5, 2.0)]


def launches(*spans: tuple[float, float]) -> Launches:
    return Launches(spans, 10)


def test_whole_overlap() -> None:
    assert check_overlap(VICTIM, [launches((0.5, 1.45), (1.45, 2.5))]) == pytest.approx(1.0)


def test_share_is_of_the_timed_seconds_only() -> None:
    # Its pause falls between the victim's launches: nothing was timed then.
    assert covered_share(VICTIM, launches((0.5, 1.4), (1.5, 2.5))) == pytest.approx(1.0)
    assert covered_share(VICTIM, launches((0.5, 1.4), (1.75, 2.5))) == pytest.approx(0.65 / 0.9)


@pytest.mark.parametrize(
    "spans",
    [
        (),
        ((1.1, 2.5),),  # began late
        ((0.5, 1.9),),  # ended early
        ((0.5, 1.1), (1.6, 2.5)),  # paused
        ((0.1, 0.9), (2.1, 2.5)),  # ran before and after, but not beside
    ],
)
def test_what_did_not_overlap_is_refused(spans: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(MeasurementError) as caught:
        check_overlap(VICTIM, [launches((0.5, 2.5)), launches(*spans)])
    assert caught.value.reason == "no-overlap"


def test_the_least_of_several_counts() -> None:
    share = check_overlap(VICTIM, [launches((0.5, 2.5)), launches((0.5, 1.38), (1.4, 2.5))])
    assert share == pytest.approx(0.88 / 0.9)


def test_iterations_of_cut_launches_count_in_part() -> None:
    assert iterations_within(launches((0.0, 1.0), (1.0, 2.0)), 0.5, 2.0) == pytest.approx(15.0)
    assert iterations_within(launches(), 0.0, 1.0) == 0.0
