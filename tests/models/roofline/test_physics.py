"""The physics is written once: PyTensor, NumPy and JAX give one result, and its limits are the textbook's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytensor.tensor as pt
import pytest

from bayesperf.models.roofline.physics import ABSENT, smooth_roofline, term_shares, unit_location


@pytest.fixture
def terms() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    compute, memory, overhead = rng.normal(-9.0, 3.0, size=(3, 7, 11))
    compute[:, 0] = ABSENT
    memory[:, 1] = ABSENT
    return [compute, memory, overhead, rng.normal(0.9, 0.5, size=(7, 1))]


def test_one_physics_in_three_namespaces(terms: list[np.ndarray]) -> None:
    expected = smooth_roofline(np, *terms)
    symbolic = smooth_roofline(pt, *[pt.as_tensor(term) for term in terms]).eval()
    np.testing.assert_allclose(symbolic, expected, rtol=1e-12)
    with jax.enable_x64(True):
        np.testing.assert_allclose(smooth_roofline(jnp, *[jnp.asarray(term) for term in terms]), expected, rtol=1e-12)


def test_shares_are_the_derivatives(terms: list[np.ndarray]) -> None:
    shares = term_shares(np, *terms)
    np.testing.assert_allclose(sum(shares), 1.0, rtol=1e-12)
    for at in range(3):
        step = [term + (1e-6 if i == at else 0.0) for i, term in enumerate(terms)]
        slope = (smooth_roofline(np, *step) - smooth_roofline(np, *terms)) / 1e-6
        np.testing.assert_allclose(slope, shares[at], atol=1e-5)


def test_the_limits_are_a_sharp_maximum_and_a_sum() -> None:
    one = np.log(np.array([1.0]))
    sharp = smooth_roofline(np, one, one - 1.0, np.array([ABSENT]), np.array([6.0]))
    np.testing.assert_allclose(np.exp(sharp), 1.0, rtol=1e-3)
    no_overlap = smooth_roofline(np, one, one, np.array([ABSENT]), np.array([-30.0]))
    np.testing.assert_allclose(np.exp(no_overlap), 2.0, rtol=1e-9)
    overhead_only = smooth_roofline(
        np, np.array([ABSENT]), np.array([ABSENT]), np.log(np.array([3e-6])), np.array([1.0])
    )
    np.testing.assert_allclose(np.exp(overhead_only), 3e-6, rtol=1e-9)


def test_a_known_peak_replaces_what_is_expected_without() -> None:
    location = unit_location(np, np.array([10.0, 3.0]), np.array([-0.5, -0.5]), np.array([27.0, np.nan]))
    np.testing.assert_allclose(location, [26.5, 3.0])
