"""Bandwidth over the working set: anchored, monotone, and defined everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesperf.models.roofline.curve import code_curve, curves_for, log_bandwidth

SIZES = st.lists(st.floats(np.log(64.0), np.log(1e12)), min_size=1, max_size=40)


def _evaluate(measured: list[float], at: np.ndarray, seed: int = 0) -> np.ndarray:
    curves = curves_for(["a", "b"], {"b": np.array(measured)}, {})
    rng = np.random.default_rng(seed)
    drop, warp = rng.gamma(1.0, 0.3, len(curves.low)), rng.normal(size=len(curves.low))
    codes = code_curve(curves, np.full(len(at), 1), at)
    return np.asarray(log_bandwidth(np, np.full(len(at), 20.0), drop, warp, codes))


@given(SIZES, st.integers(0, 5))
def test_bandwidth_never_rises_with_the_working_set(measured: list[float], seed: int) -> None:
    at = np.linspace(0.0, np.log(1e14), 200)
    values = _evaluate(measured, at, seed)
    assert np.isfinite(values).all()
    assert (np.diff(values) <= 1e-9).all()


@given(SIZES)
def test_the_curve_passes_through_its_anchor(measured: list[float]) -> None:
    anchor = np.array([max(measured)])
    np.testing.assert_allclose(_evaluate(measured, anchor), 20.0, atol=1e-6)


@given(SIZES)
def test_few_knots_an_octave_apart(measured: list[float]) -> None:
    curves = curves_for(["a"], {"a": np.array(measured)}, {})
    assert len(curves.low) <= 17
    assert (curves.octaves >= 1.0 - 1e-9).all()
    np.testing.assert_allclose(curves.low[1:], curves.high[:-1])


def test_targets_that_follow_leave_the_first_curves_alone() -> None:
    first = curves_for(["a"], {"a": np.log([1e5, 1e7])}, {})
    both = curves_for(["a", "b"], {}, {"b": 5e7}, first)
    np.testing.assert_array_equal(both.low[: len(first.low)], first.low)
    assert (both.target[len(first.low) :] == 1).all()


def test_beyond_twice_the_named_cache_nothing_is_expected_to_drop() -> None:
    curves = curves_for(["a"], {}, {"a": 1e6})
    beyond = curves.low >= np.log(2e6)
    assert beyond.any()
    assert curves.mean[beyond].max() < curves.mean[~beyond].min()


@pytest.mark.parametrize("size", [0.0, 5.0, 40.0])
def test_sizes_beyond_all_knots_keep_the_end_values(size: float) -> None:
    inside = _evaluate([np.log(1e6)], np.array([size, size + 1.0]))
    np.testing.assert_allclose(inside[0], inside[1])
