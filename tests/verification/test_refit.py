"""A real second fit of the shipped model: the numbers come out again, those of an update too, forged ones do not."""

from __future__ import annotations

from pathlib import Path

import pytest

import bayesperf as bp
from bayesperf.prediction.profile import load_profile
from bayesperf.store import read_measurements, write_measurements
from tests.tables import roofline_table

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile, one updated with a second target, and their tables."""
    where = tmp_path_factory.mktemp("refit")
    for name, table in (("box", roofline_table(1)), ("other", roofline_table(2, targets=("other",)))):
        write_measurements(table.drop(columns="measurement_id"), where / f"{name}.parquet")
    profile = bp.fit(read_measurements(where / "box.parquet"), seed=3, draws=600, tune=600, attempts=1)
    assert profile.converged, [check for check in profile.gate if not check.passed]
    profile.save(where / "box.nc")
    profile.update(read_measurements(where / "other.parquet"), seed=5).save(where / "both.nc")
    return where


def test_a_real_fit_comes_out_again(folder: Path) -> None:
    found = bp.verify(folder / "box.nc", folder / "box.parquet")
    assert found.passed, found.findings
    assert {finding.status for finding in found.findings} == {"passed"} | (
        {"not checked"} if any("provenance" in finding.what for finding in found.findings) else set()
    )


def test_another_seed_gives_the_same_numbers_within_monte_carlo_error(folder: Path, tmp_path: Path) -> None:
    profile = load_profile(folder / "box.nc")
    profile.facts["seed"] = 11
    profile.save(tmp_path / "seed.nc")
    found = bp.verify(tmp_path / "seed.nc")
    assert found.passed, found.findings
    assert found.numbers is not None
    assert (found.numbers["published"] != found.numbers["refit"]).any()


def test_an_update_comes_out_again(folder: Path) -> None:
    found = bp.verify(folder / "both.nc", [folder / "box.parquet", folder / "other.parquet"])
    assert found.passed, found.findings
    assert found.numbers is not None
    assert {"box", "other"} <= set(found.numbers["target"])


def test_a_forged_posterior_is_caught(folder: Path, tmp_path: Path) -> None:
    profile = load_profile(folder / "box.nc")
    profile.tree["posterior"]["rate"] = profile.tree["posterior"]["rate"] + 0.1
    profile.save(tmp_path / "forged.nc")
    found = bp.verify(tmp_path / "forged.nc", folder / "box.parquet")
    (line,) = [finding for finding in found.findings if finding.status == "failed"]
    assert any("compute_rate" in place for place in line.places)
