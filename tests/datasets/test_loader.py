"""Loading as a user does it: options, flags, provenance, other people's data sets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

import bayesperf as bp
from bayesperf import plugins
from bayesperf.dataset import Dataset, Files, Rule, Source
from bayesperf.datasets import loader, rules
from bayesperf.errors import InputError, TableError, UnknownNameError
from bayesperf.schema import is_excluded
from bayesperf.store import provenance_of, read_measurements, write_measurements

OURS = ("aiconfigurator", "neusight", "own", "vidur")


class Mine(Dataset):
    """What another package would register."""

    name = "mine"
    source: ClassVar[Source] = Source("https://example.org/m", "d" * 40, "MIT", "me", "mine")

    def rows(self, files: Files, *, scale: float = 1.0) -> pd.DataFrame:
        file = files.get("times.csv")
        raw = pd.read_csv(file.local)
        columns: dict[str, Any] = {"target": "mine", "op": "matmul", "flops": 1e9, "bytes": 1e6, "file": file.path}
        return pd.DataFrame({**columns, "time_s": raw["ms"] * 1e-3 * scale, "m": raw["m"]})

    def card(self) -> str:
        return "# mine\n"

    def rules(self) -> Iterable[Rule]:
        return [rules.zero_size(["m"])]


@pytest.fixture
def mine(source_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mine is installed, and its source is at hand."""
    (source_tree / "mine").mkdir()
    (source_tree / "mine" / "times.csv").write_text("m,ms\n1,2.5\n0,2.5\n3,4\n")
    known = plugins.load
    monkeypatch.setattr(plugins, "load", lambda kind, name: Mine if name == "mine" else known(kind, name))


@pytest.mark.usefixtures("mine")
def test_flagged_rows_stay_marked_by_default() -> None:
    table = bp.datasets.load("mine")
    assert len(table) == 3
    assert is_excluded(table).tolist() == [False, True, False]
    assert table["time_s"].tolist() == pytest.approx([2.5e-3, 2.5e-3, 4e-3])
    assert table.attrs["rules"] == [
        {"flag": "zero-size", "why": "a dimension (m) is 0: nothing was computed", "excluded": True, "rows": 1}
    ]


@pytest.mark.usefixtures("mine")
def test_rules_that_exclude_are_printed(caplog: pytest.LogCaptureFixture) -> None:
    bp.datasets.load("mine")
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == (
        "data set mine: 1 rows zero-size, left out of fits: a dimension (m) is 0: nothing was computed"
    )


@pytest.mark.usefixtures("mine")
def test_flagged_rows_can_be_dropped() -> None:
    table = bp.datasets.load("mine", flagged="drop")
    assert table["m"].tolist() == [1, 3]
    assert table.attrs["rules"][0]["rows"] == 1


@pytest.mark.usefixtures("mine")
def test_provenance_travels_into_a_file(tmp_path: Path) -> None:
    table = bp.datasets.load("mine")
    write_measurements(table, tmp_path / "t.parquet")
    read = read_measurements(tmp_path / "t.parquet")
    records = provenance_of(read)
    record = records[read["provenance_id"].iloc[0]]
    assert record["file"] == "times.csv"
    assert record["commit"] == "d" * 40
    assert record["licence"] == "MIT"
    assert record["matches_source"] is None
    assert len(record["sha256"]) == 64
    assert any(r["kind"] == "rules" and r["rules"][0]["flag"] == "zero-size" for r in records.values())
    assert read["flags"].tolist() == [None, "excluded+zero-size", None]
    assert str(tmp_path) not in str(records), "paths of this machine are nobody's business"


@pytest.mark.usefixtures("mine")
def test_options() -> None:
    assert bp.datasets.options("mine") == {"scale": 1.0}
    assert bp.datasets.load("mine", scale=2.0)["time_s"].iloc[0] == pytest.approx(5e-3)
    with pytest.raises(InputError, match="no option 'scales'; it has: flagged, scale"):
        bp.datasets.load("mine", scales=2.0)
    with pytest.raises(InputError, match=r"'keep' .* or 'drop'"):
        bp.datasets.load("mine", flagged="maybe")  # type: ignore[arg-type]


@pytest.mark.usefixtures("mine")
def test_what_breaks_the_contract_is_refused() -> None:
    with pytest.raises(TableError, match="data set mine, row 0, column time_s"):
        bp.datasets.load("mine", scale=-1.0)


def test_a_plug_in_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load", lambda kind, name: dict)
    with pytest.raises(InputError, match=r"is not a bayesperf\.dataset\.Dataset"):
        loader.dataset("odd")


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="neusight"):
        bp.datasets.load("neusite")


def test_ours_are_installed() -> None:
    assert set(OURS) <= set(bp.datasets.available())


@pytest.mark.parametrize("name", OURS)
def test_every_card_says_what_a_reader_must_know(name: str) -> None:
    card = bp.datasets.card(name)
    for word in ("source", "licence", "citation", "## What the numbers are", "## Row counts", "## Flags"):
        assert word in card, word
    source = loader.dataset(name).source
    assert source.licence in card
    assert source.commit in card
    if name != "own":
        for word in ("Known flaws", "## Formulas", "millisecond", source.repository):
            assert word in card, word


@pytest.mark.parametrize("name", OURS)
def test_options_are_keyword_only_with_defaults(name: str) -> None:
    assert all(default is None or default is False for default in bp.datasets.options(name).values())


@pytest.mark.parametrize("name", ["aiconfigurator", "neusight", "vidur"])
def test_sources_are_pinned_and_hashed(name: str) -> None:
    data = loader.dataset(name)
    assert len(data.source.commit) == 40
    assert all(data.source.commit in url and "{path}" in url for url in data.source.urls)
    registry = data.registry()
    assert registry
    assert all(len(digest) == 64 and set(digest) <= set("0123456789abcdef") for digest in registry.values())


def test_nothing_heavy_is_imported_before_a_call() -> None:
    code = (
        "import sys, bayesperf.datasets as d; d.available(); "
        "print([m for m in ('pandas', 'pyarrow', 'pooch', 'jax', 'pymc') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_loading_imports_no_inference_library(tmp_path: Path) -> None:
    code = (
        "import sys, bayesperf.datasets as d; d.targets(); d.card('neusight'); "
        "print([m for m in ('jax', 'pymc', 'pytensor', 'arviz', 'nutpie') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert out.stdout.strip() == "[]"


def test_the_folder_is_no_package_of_its_own() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", "import sys; sys.path.insert(0, '.'); import datasets"]
    out = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert out.returncode != 0
    assert "bayesperf.datasets" in out.stderr


def test_own_measurements() -> None:
    from bayesperf.datasets.own.data import measurement_files

    if measurement_files():
        assert not is_excluded(bp.datasets.load("own")).any()
    else:
        with pytest.raises(InputError, match="bayesperf measure"):
            bp.datasets.load("own")
