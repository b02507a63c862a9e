"""`bayesperf batch`: what it prints, and how it ends."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]
CONFIG = """
[[job]]
name = "good"
data = "t.csv"
[[job]]
name = "unconverged"
data = "t.csv"
[[job]]
name = "shifted"
data = "t.csv"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a batch of quick jobs."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "batch"))
    monkeypatch.setattr("bayesperf.batch.run.run_job", importlib.import_module("quickjobs").quick)
    (tmp_path / "t.csv").write_text("target,op,flops,bytes,time_s\na,matmul,1e9,1e6,1e-3\n")
    (tmp_path / "c.toml").write_text(CONFIG)
    return tmp_path


def test_a_batch_is_told_as_it_runs_and_summed_up(cli: Cli, here: Path) -> None:
    done = cli("batch", "c.toml")
    assert done.code == 1
    assert "3 jobs, 0 of them complete already" in done.err
    assert "unconverged: unconverged (R-hat): do not use its numbers" in done.err
    assert "1 fails" in done.out
    assert f"wrote {here / 'c' / 'summary.html'}" in done.out
    assert "\x1b[" not in done.err


def test_json_is_the_summary_and_nothing_else(cli: Cli, here: Path) -> None:
    done = cli("batch", "c.toml", "--json", "--out", "elsewhere", "--quiet")
    document = json.loads(done.out)
    assert (done.code, document["exit_code"], done.err) == (1, 1, "")
    assert document["counts"] == {"done": 2, "unconverged": 1}
    assert document["jobs"] == json.loads((here / "elsewhere" / "summary.json").read_text())["jobs"]


def test_strict_makes_a_failing_regime_an_exit_code(cli: Cli, here: Path) -> None:
    (here / "c.toml").write_text('[[job]]\nname = "shifted"\ndata = "t.csv"\n')
    assert cli("batch", "c.toml", "--quiet").code == 0
    assert cli("batch", "c.toml", "--strict", "--quiet").code == 3


def test_a_dry_run_lists_the_jobs_and_writes_nothing(cli: Cli, here: Path) -> None:
    before = sorted(here.iterdir())
    done = cli("batch", "c.toml", "--dry-run")
    assert (done.code, sorted(here.iterdir())) == (0, before)
    assert "3 jobs, 3 to run" in done.out
    listed = json.loads(cli("batch", "c.toml", "--dry-run", "--json").out)
    assert [job["complete"] for job in listed] == [False] * 3


@pytest.mark.parametrize(
    ("text", "args", "words"),
    [
        ("", (), "c.toml: key job: is missing"),
        (CONFIG + "drws = 3", (), "[[job]] number 3, key drws: no such key; nearest first, there are: draws"),
        (CONFIG, ("--scheduler", "tcp://127.0.0.1:9", "--workers", "2"), "leave out --workers"),
        (CONFIG, ("--out", "t.csv"), "t.csv"),
    ],
)
def test_bad_usage_exits_2_in_one_line(cli: Cli, here: Path, text: str, args: tuple[str, ...], words: str) -> None:
    (here / "c.toml").write_text(text)
    before = sorted(here.iterdir())
    done = cli("batch", "c.toml", *args)
    assert done.code == 2, done.err
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert sorted(here.iterdir()) == before
