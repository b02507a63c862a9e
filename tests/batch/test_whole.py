"""Whole jobs: read, fitted, validated, reported; with a posterior from no sampler, and in full where that is slow."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.specs import check_targets
from bayesperf.store import write_measurements
from tests.checks.toy import toy_profile, toy_table
from tests.tables import roofline_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "batch.md"
OUTPUTS = {"job.json", "log.txt", "profile.nc", "validation.html", "verdicts.csv"}


def _halved(table: pd.DataFrame) -> pd.DataFrame:
    """The table with every second row held out."""
    return table.assign(role=np.where(np.arange(len(table)) % 2, "heldout", "fit"))


@pytest.fixture
def without_sampler(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Fits take the toy model's posterior; returns what they were asked."""
    asked: list[dict[str, Any]] = []

    def fit(table: pd.DataFrame, targets: pd.DataFrame | None, model: str, **options: Any) -> bp.Profile:
        asked.append({"targets": sorted(table["target"].unique()), "specs": targets, "model": model, **options})
        rows = table[table.get("role", pd.Series("fit", index=table.index)) != "heldout"].reset_index(drop=True)
        return toy_profile(rows, targets, seed=options["seed"])

    monkeypatch.setattr("bayesperf.batch.steps.fit", fit)
    return asked


def test_a_job_fits_validates_and_reports(tmp_path: Path, without_sampler: list[dict[str, Any]]) -> None:
    write_measurements(_halved(toy_table(1)), tmp_path / "both.parquet")
    write_measurements(toy_table(2, targets=("a",)), tmp_path / "tuesday.parquet")
    (tmp_path / "specs.csv").write_text("device,peak_flops_float32\na,1e15\n")
    (tmp_path / "c.toml").write_text(
        """
        [data.lab]
        tables = ["both.parquet"]
        specs = "specs.csv"
        [[job]]
        data = "lab"
        report = false
        tolerance = 0.3
        [[job]]
        name = "one"
        data = "lab"
        target = "a"
        heldout = "tuesday.parquet"
        draws = 7
        seed = 3
        report = false
        [[job]]
        name = "needs"
        data = "tuesday.parquet"
        validate = true
        """
    )
    found = bp.batch(tmp_path / "c.toml", progress=False)
    both, one, needs = found.jobs
    assert [both["status"], one["status"], needs["status"]] == ["done", "done", "failed"]
    assert [asked["targets"] for asked in without_sampler] == [["a", "b"], ["a"], ["a"]]
    assert [asked["seed"] for asked in without_sampler[1:2]] == [3]
    assert {k: without_sampler[1][k] for k in ("draws", "tune", "chains", "attempts")} == {
        "draws": 7, "tune": 1000, "chains": 4, "attempts": 2,
    }  # fmt: skip
    assert without_sampler[0]["specs"].index.tolist() == ["a"]
    for job in (both, one):
        assert {path.name for path in (found.folder / job["folder"]).iterdir()} == OUTPUTS
    assert both["validation"]["settings"]["tolerance"] == 0.3
    assert {v["target"] for v in both["validation"]["verdicts"]} == {"a", "b"}
    assert {v["target"] for v in one["validation"]["verdicts"]} == {"a"}
    assert both["validation"]["n_rows"] == 24
    assert "no row has the role heldout" in needs["reason"]
    # What was done before the failure stays.
    assert "profile.nc" in needs["files"]
    written = pd.read_csv(found.folder / both["folder"] / "verdicts.csv")
    assert sorted(written["verdict"]) == sorted(v["verdict"] for v in both["validation"]["verdicts"])


def test_an_impossible_rate_names_its_file_and_row(tmp_path: Path, without_sampler: list[dict[str, Any]]) -> None:
    toy_table(1, targets=("a",)).drop(columns="measurement_id").to_csv(tmp_path / "t.csv", index=False)
    check_targets(pd.DataFrame({"device": ["a"], "peak_flops_float32": [1.0]})).to_csv(tmp_path / "specs.csv")
    config = {"job": [{"data": str(tmp_path / "t.csv"), "specs": str(tmp_path / "specs.csv")}]}
    (job,) = bp.batch(config, out=tmp_path / "out", progress=False).jobs
    assert job["status"] == "failed"
    assert job["reason"].startswith("t.csv, row 2, column time_s")


# In full.


def example(tmp_path: Path) -> Path:
    """The configuration of the documents, and the files that it names."""
    blocks = re.findall(r"^```toml\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    # Few draws: what the gate says of them does not matter here.
    (tmp_path / "fleet.toml").write_text(blocks[0].replace("draws = 1000", "draws = 60\ntune = 200\nattempts = 1"))
    (tmp_path / "hosts").mkdir()
    targets = ("gpu-1", "gpu-2")
    for name, seed in (("lab-monday", 1), ("lab-tuesday", 2), ("lab-wednesday", 3)):
        table = roofline_table(seed, targets=targets, campaigns=(name,), processes=1)
        write_measurements(table, tmp_path / f"{name}.parquet")
    for seed, host in enumerate(("host-a", "host-b"), 4):
        table = roofline_table(seed, targets=(host,), processes=1, heldout=True)
        write_measurements(table, tmp_path / "hosts" / f"{host}.parquet")
    (tmp_path / "specs.csv").write_text("device,peak_flops_float32,bandwidth_bytes_per_s\ngpu-1,3e11,5e10\n")
    return tmp_path / "fleet.toml"


JOBS = [
    "lab / roofline", "hosts/host-a / roofline", "hosts/host-b / roofline", "alone / gpu-1", "alone / gpu-2",
    "lab-wednesday / last-month",
]  # fmt: skip


def run(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bayesperf", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=900, check=False)


def test_the_documented_configuration_plans_the_documented_jobs(tmp_path: Path) -> None:
    from bayesperf.batch.run import plan

    config = example(tmp_path)
    (tmp_path / "last-month.nc").touch()
    assert [(planned.job.name, planned.job.problem) for planned in plan(config)] == [(name, None) for name in JOBS]
    assert not config.with_suffix("").exists()


@pytest.mark.slow
def test_the_documented_configuration_runs(tmp_path: Path) -> None:
    config = example(tmp_path)
    fitted = run("fit", "lab-monday.parquet", "--out", "last-month.nc", "--draws", "60", cwd=tmp_path)
    assert fitted.returncode in (0, 1), fitted.stderr
    done = run("batch", config, "--workers", "2", "--json", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert [job["name"] for job in document["jobs"]] == JOBS
    assert {job["status"] for job in document["jobs"]} <= {"done", "unconverged"}
    folders = [tmp_path / "fleet" / job["folder"] for job in document["jobs"]]
    for folder in folders[:3]:
        assert {path.name for path in folder.iterdir()} == OUTPUTS | {"report.html"}
    assert {path.name for path in folders[5].iterdir()} == OUTPUTS - {"profile.nc"} | {"report.html"}
    assert bp.load_profile(folders[3] / "profile.nc").targets == ["gpu-1"]
    assert "fitting" in (folders[0] / "log.txt").read_text()
    again = run("batch", config, "--json", cwd=tmp_path)
    assert again.returncode == done.returncode
    assert all(job["kept"] for job in json.loads(again.stdout)["jobs"])


@pytest.mark.slow
def test_a_real_fit_on_a_dask_worker_is_that_of_this_process(tmp_path: Path) -> None:
    from tests.batch.test_cluster import _end, _start

    write_measurements(roofline_table(1, processes=1, heldout=True), tmp_path / "t.parquet")
    config = {"job": [{"data": str(tmp_path / "t.parquet"), "draws": 60, "tune": 200, "attempts": 1}]}
    with tempfile.TemporaryDirectory() as scratch:
        cluster = _start(Path(scratch), 1)
        try:
            there = bp.batch(config, out=tmp_path / "there", scheduler=cluster.address, progress=False)
        finally:
            _end(cluster)
    here = bp.batch(config, out=tmp_path / "here", progress=False)
    assert here.jobs[0]["status"] == there.jobs[0]["status"] != "failed", there.jobs[0].get("reason")
    one, other = (bp.load_profile(b.folder / b.jobs[0]["folder"] / "profile.nc").draws() for b in (here, there))
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-6)
