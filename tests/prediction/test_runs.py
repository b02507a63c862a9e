"""What the kernels of a run share, and what waiting for it costs, told from tables whose truth is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesperf.prediction.runs import IDLE_S, Moment, Wake, moment_of, wake_of
from bayesperf.schema import with_ids


def measured(shared: float, own: float, *, targets: int = 4, processes: int = 8, points: int = 40) -> pd.DataFrame:
    """Points of which all of a process are slower or faster together by `shared`, and each by `own`."""
    rng = np.random.default_rng(5)
    rows = []
    for target in range(targets):
        level = rng.normal(-9.0, 2.0, points)
        for process in range(processes):
            log_time = level + shared * rng.standard_normal() + own * rng.standard_normal(points)
            rows += [
                {"target": f"box{target}", "op": "matmul", "dtype": "float32", "flops": 1e6 * (1 + at), "bytes": 1e6,
                 "time_s": float(np.exp(value)), "process": f"one-{process}", "statistic": "slope",
                 "intercept_s": 1e-4 * float(np.exp(0.3 * rng.standard_normal()))}
                for at, value in enumerate(log_time)
            ]  # fmt: skip
    return with_ids(pd.DataFrame(rows), source="test")


@pytest.mark.parametrize(("shared", "own"), [(0.1, 0.15), (0.3, 0.05)])
def test_what_processes_share_is_told_from_what_points_scatter(shared: float, own: float) -> None:
    found = moment_of(measured(shared, own))
    assert found.dof == 4 * 7
    # 32 processes tell a standard deviation to an eighth.
    assert found.sd == pytest.approx(shared, rel=0.35)


def test_points_that_scatter_alone_share_nothing() -> None:
    assert moment_of(measured(0.0, 0.2)).sd < 0.02


@pytest.mark.parametrize("processes", [0, 1])
def test_one_process_tells_nothing_of_others(processes: int) -> None:
    table = measured(0.1, 0.1, targets=1, processes=1)
    found = moment_of(table if processes else table.drop(columns="process"))
    assert (found.sd, found.draws(5, 1).tolist()) == (0.0, [0.0] * 5)


def test_a_moment_is_drawn_with_the_width_that_few_processes_leave() -> None:
    draws = Moment(0.1, 4.0).draws(40_000, 1)
    assert np.quantile(draws, [0.05, 0.95]) == pytest.approx([-0.213, 0.213], abs=0.005)
    assert (draws == Moment(0.1, 4.0).draws(40_000, 1)).all()


def test_a_long_run_wakes_its_host_and_a_short_one_does_not() -> None:
    wake = wake_of(measured(0.0, 0.1, processes=5), "box1")
    assert wake is not None
    assert wake.median_s == pytest.approx(1e-4, rel=0.1)
    assert 0.05 < wake.spread < 0.3
    launch = np.full(2000, 2e-5)
    exact = Wake(1e-4, 0.0)
    assert exact.beyond(launch, np.full(2000, 1e-6), 0).max() < 1e-6
    assert exact.beyond(launch, np.full(2000, 1.0), 0) == pytest.approx(np.full(2000, 8e-5))
    assert exact.beyond(launch, np.full(2000, IDLE_S), 0) == pytest.approx(np.full(2000, 8e-5 * (1 - np.exp(-1))))
    # A launch that costs more than that by itself is not made shorter.
    assert (exact.beyond(np.full(2000, 1e-3), np.ones(2000), 0) == 0).all()


def test_launches_that_were_not_measured_in_loops_tell_no_wake() -> None:
    table = measured(0.0, 0.1)
    assert wake_of(table.drop(columns="intercept_s"), "box0") is None
    assert wake_of(table, "another") is None
    assert wake_of(table.assign(statistic="median"), "box0") is None
    assert wake_of(table[table["flops"] < 4e6], "box0") is None
