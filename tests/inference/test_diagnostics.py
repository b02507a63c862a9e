"""The gate: what passes, what fails, what it says."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bayesperf.inference.diagnostics import gate, passed, warnings_of


def _tree(values: np.ndarray, *, divergent: int = 0, energy: np.ndarray | None = None) -> xr.DataTree:
    chains, draws = values.shape
    rng = np.random.default_rng(0)
    diverging = np.zeros((chains, draws), dtype=bool)
    diverging[0, :divergent] = True
    dims = ("chain", "draw")
    stats = {
        "diverging": (dims, diverging),
        "energy": (dims, rng.normal(size=values.shape) if energy is None else energy),
    }
    coords = {"chain": np.arange(chains), "draw": np.arange(draws)}
    posterior = xr.Dataset(
        {"x": (dims, values), "y": ((*dims, "op"), np.stack([values, -values], axis=-1))}, coords=coords
    )
    return xr.DataTree.from_dict(
        {"posterior": posterior.assign_coords(op=["a", "b"]), "sample_stats": xr.Dataset(stats, coords=coords)}
    )


@pytest.fixture
def good() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(4, 1000))


def test_independent_draws_pass_without_a_word(good: np.ndarray) -> None:
    checks = gate(_tree(good), ["x", "y"])
    assert passed(checks)
    assert warnings_of(checks) == []
    assert [check.name for check in checks] == ["R-hat", "bulk ESS", "tail ESS", "E-BFMI", "divergences"]


def test_a_shifted_chain_fails_and_is_named(good: np.ndarray) -> None:
    good[2] += 1.0
    checks = {check.name: check for check in gate(_tree(good), ["x", "y"])}
    assert not checks["R-hat"].passed
    assert checks["R-hat"].where in ("x", "y[a]", "y[b]")
    assert "sample longer" in checks["R-hat"].remedy


def test_correlated_draws_fail_on_effective_size(good: np.ndarray) -> None:
    slow = np.cumsum(good, axis=1) * 0.05
    checks = {check.name: check for check in gate(_tree(slow), ["x"])}
    assert not checks["bulk ESS"].passed


@pytest.mark.parametrize(("count", "ok", "warned"), [(0, True, False), (4, True, True), (5, False, True)])
def test_one_divergence_in_a_thousand_is_a_warning(good: np.ndarray, count: int, ok: bool, warned: bool) -> None:
    check = gate(_tree(good, divergent=count), ["x"])[-1]
    assert check.passed is ok
    assert bool(check.remedy) is warned


def test_sluggish_energy_fails(good: np.ndarray) -> None:
    energy = np.cumsum(good, axis=1)
    checks = {check.name: check for check in gate(_tree(good, energy=energy), ["x"])}
    assert not checks["E-BFMI"].passed


def test_a_chain_that_never_moved_fails(good: np.ndarray) -> None:
    good[:] = 1.0
    assert not passed(gate(_tree(good), ["x"]))
