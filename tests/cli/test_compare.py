"""`compare` and `diff`, on profiles with an exact posterior."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesperf.prediction.profile import Profile
from tests.exact import PRIOR, World, exact_profile

Cli = Callable[..., Any]


def _profile(seed: int, *, shift: float = 0.0, name: str = "monday", passed: bool = True) -> Profile:
    bandwidth = {"old-gpu": PRIOR[0] + shift, "new-gpu": PRIOR[0] + 0.6 + shift}
    table = World().measure(np.random.default_rng(seed), bandwidth, campaigns=[name])
    return exact_profile(World(), table, seed, passed=passed)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Profiles by path: `before.nc`, `after.nc` (slower by 50 %), `bad.nc` (unconverged), and a table of workloads."""
    known = {
        "before.nc": _profile(1),
        "after.nc": _profile(2, shift=-0.4, name="tuesday"),
        "bad.nc": _profile(3, passed=False),
    }
    for verb in ("compare", "diff"):
        monkeypatch.setattr(f"bayesperf.cli.{verb}.load", lambda path: known[str(path)])
    (tmp_path / "model.csv").write_text("op,flops,bytes,count\ncopy,0,1e7,3\ncopy,0,1e8,1\n")


@pytest.mark.usefixtures("files")
def test_compare_prints_pairs_and_writes_a_page(cli: Cli, tmp_path: Path) -> None:
    command = ("compare", "before.nc", "old-gpu", "new-gpu", "--workloads", "model.csv")
    result = cli(*command, "--out", "page.html")
    assert result.code == 0
    assert result.out.count("old-gpu : new-gpu") == 3
    assert "wrote page.html" in result.out
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    document = json.loads(cli(*command, "--json").out)
    assert document["fastest_in_total"]["new-gpu"] > 0.99
    assert [row["faster"] for row in document["workloads"]] == ["new-gpu", "new-gpu"]
    assert document["total"][0]["ratio"] == pytest.approx(np.exp(0.6), rel=0.15)
    assert cli(*command, "--quiet").out == ""


@pytest.mark.usefixtures("files")
def test_diff_prints_what_moved_and_writes_a_page(cli: Cli, tmp_path: Path) -> None:
    result = cli("diff", "before.nc", "after.nc", "--out", "page.html")
    assert result.code == 0
    assert result.out.count("lower") == 2
    assert "one campaign seen" in result.err
    assert (tmp_path / "page.html").exists()
    document = json.loads(cli("diff", "before.nc", "after.nc", "--change", "0.1", "--target", "new-gpu", "--json").out)
    assert document["any_changed"]
    (row,) = document["parameters"]
    assert row["verdict"] == "lower"
    assert row["ratio_lower"] < np.exp(-0.4) < row["ratio_upper"]
    assert cli("diff", "before.nc", "before.nc").code == 0


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("compare", "before.nc", "old-gpu", "--workloads", "model.csv"), 2, "two targets"),
        (("compare", "before.nc", "old-gpu", "old-gpu", "--workloads", "model.csv"), 2, "different"),
        (("compare", "before.nc", "old-gpu", "new-gpu", "--workloads", "absent.csv"), 2, "absent.csv"),
        (("compare", "bad.nc", "old-gpu", "new-gpu", "--workloads", "model.csv"), 1, "unconverged"),
        (("diff", "before.nc", "bad.nc"), 1, "the new profile is unconverged"),
        (("diff", "before.nc", "after.nc", "--target", "gpu"), 2, "new-gpu"),
        (("diff", "before.nc", "after.nc", "--change", "0"), 2, "change"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_errors_are_one_line(cli: Cli, words: tuple[str, ...], code: int, message: str) -> None:
    result = cli(*words)
    assert result.code == code
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1
