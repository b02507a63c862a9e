"""The model of docs/own-model.md, installed as a plug-in, is fitted and asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf import plugins
from bayesperf.cli import main
from bayesperf.errors import UnknownNameError
from bayesperf.schema import validate, with_ids
from bayesperf.store import write_measurements
from tests.docs.pages import ROOT, blocks, calls

DOCUMENT = ROOT / "docs" / "own-model.md"
SLOPES = {"matmul": (0.9, 0.05), "stream_triad": (0.1, 0.8)}
NOISE = 0.03


def line(seed: int, configurations: int = 24) -> pd.DataFrame:
    """Times on a line in the logs of FLOP and bytes."""
    rng = np.random.default_rng(seed)
    parts = []
    for op, (by_flops, by_bytes) in SLOPES.items():
        flops, moved = np.exp(rng.uniform(15, 22, configurations)), np.exp(rng.uniform(12, 18, configurations))
        level = -8.0 + by_flops * (np.log(flops) - 18) + by_bytes * (np.log(moved) - 15)
        time = np.exp(level + NOISE * rng.standard_t(5, configurations))
        columns = {"flops": flops, "bytes": moved, "time_s": time}
        parts.append(pd.DataFrame(columns).assign(target="my-cpu-x1", op=op, dtype="float32", campaign="mon"))
    return with_ids(validate(pd.concat(parts, ignore_index=True)), source="line")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The model as somebody's package."""
    (program,) = [b.text for b in blocks(DOCUMENT) if b.language == "python" and "class LogLinear" in b.text]
    package, metadata = tmp_path / "site" / "my_package", tmp_path / "site" / "my_package-1.0.dist-info"
    for folder in (package, metadata):
        folder.mkdir(parents=True)
    (package / "loglinear.py").write_text(program)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (registered,) = [b.text for b in blocks(DOCUMENT) if b.language == "toml"]
    (metadata / "entry_points.txt").write_text(
        registered.replace('[project.entry-points."bayesperf.models"]', "[bayesperf.models]").replace('"', "")
    )
    monkeypatch.syspath_prepend(os.fspath(tmp_path / "site"))
    plugins._entry_points.cache_clear()
    yield
    plugins._entry_points.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_it_recovers_a_line_and_covers_what_it_has_not_seen(tmp_path: Path) -> None:
    profile = bp.fit(line(1), model="log-linear", draws=500, tune=500, chains=2, seed=1)
    assert profile.converged, profile.gate
    slope = profile.tree["posterior"].to_dataset()["slope"]
    for at, op in enumerate(SLOPES):
        low, high = np.quantile(slope.values[:, :, at], [0.005, 0.995], axis=(0, 1))
        assert (low < SLOPES[op]).all()
        assert (high > SLOPES[op]).all()
        assert (high - low < 0.2).all()
    profile.save(tmp_path / "line.nc")
    new = line(2, 200)
    bounds = bp.load_profile(tmp_path / "line.nc").predict(new, campaign="mon").interval(0.9)
    inside = (bounds.sel(bound="lower") < new["time_s"]) & (bounds.sel(bound="upper") > new["time_s"])
    # Binomial error of 400 rows, and of the scale that 48 have taught.
    assert 0.82 < inside.mean() < 0.97
    fresh = profile.predict(new).interval(0.9)
    assert (np.log(fresh.sel(bound="upper") / fresh.sel(bound="lower")) > 0.2).all()
    with pytest.raises(UnknownNameError, match="my-cpu-x1 matmul"):
        profile.predict({"op": "sort", "flops": 1e6, "bytes": 1e6})


@pytest.mark.slow
@pytest.mark.usefixtures("installed")
def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write_measurements(line(3), tmp_path / "host.parquet")
    (tmp_path / "workloads.csv").write_text("op,dtype,flops,bytes\nmatmul,float32,1e8,1e6\n")
    (block,) = [b for b in blocks(DOCUMENT) if b.language == "sh"]
    for words in calls(block.text):
        with pytest.raises(SystemExit) as ended:
            main(words[1:])
        assert not ended.value.code, words
    printed = capsys.readouterr().out
    assert "my_package.loglinear:LogLinear" in printed
    assert "median_s" in printed
