"""Draws and what is asked of them: the law of the noise, quantiles, limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bayesperf.errors import InputError
from bayesperf.prediction.predictive import student
from tests.known import known_profile


@pytest.mark.parametrize("freedom", [1.5, 5.0, 1e9])
@pytest.mark.parametrize("n", [1, 300])
def test_noise_is_student_t(freedom: float, n: int) -> None:
    draws = student(np.random.default_rng(4), np.full(60_000 // n, freedom), n)
    assert draws.shape == (60_000 // n, n)
    law = scipy.stats.t(freedom) if freedom < 1e6 else scipy.stats.norm
    assert scipy.stats.kstest(draws.ravel(), law.cdf).pvalue > 1e-3


def test_noise_of_a_draw_has_its_own_tail_and_is_independent() -> None:
    draws = student(np.random.default_rng(5), np.array([1.0, 100.0]), 70_000)
    for row, freedom in zip(draws, (1.0, 100.0), strict=True):
        assert scipy.stats.kstest(row, scipy.stats.t(freedom).cdf).pvalue > 1e-3
    ranks = scipy.stats.rankdata(np.abs(draws), axis=1)
    assert abs(np.corrcoef(ranks[0], ranks[1])[0, 1]) < 4 / np.sqrt(70_000)
    assert abs(np.corrcoef(ranks[:, :-1].ravel(), ranks[:, 1:].ravel())[0, 1]) < 4 / np.sqrt(140_000)


def test_a_row_of_a_table_is_a_workload_and_what_is_said_has_units() -> None:
    workload = pd.Series({"op": "matmul", "flops": 1e9, "bytes": 1e6})
    prediction = known_profile(shared=0.1, misfit=0.05).predict(workload, draws=50)
    assert {each.attrs["units"] for each in (prediction.median(), prediction.interval(), prediction.draws)} == {"s"}
    assert {each.attrs["units"] for each in (prediction.cdf(1.0), prediction.limits)} == {"1"}
    assert len(known_profile().predict([workload, workload]).median()) == 2


def test_quantiles_are_those_of_the_draws() -> None:
    workloads = [{"op": op, "flops": 1e9, "bytes": 1e6} for op in ("matmul", "softmax", "other")]
    prediction = known_profile(shared=0.1, misfit=0.05).predict(workloads, draws=501)
    levels = [0.0, 0.037, 0.5, 0.95, 1.0]
    np.testing.assert_allclose(
        prediction.quantile(levels).values, np.quantile(prediction.draws.values, levels, axis=0), rtol=1e-12
    )
    np.testing.assert_array_equal(prediction.median().values, prediction.quantile(0.5).values)
    for q in ([0.5, 1.5], [], [[0.1, 0.9]], None):
        with pytest.raises(InputError, match="between 0 and 1"):
            prediction.quantile(q)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="between 0 and 1"):
        prediction.interval(1.0)
