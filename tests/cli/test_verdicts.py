"""Exit codes of `fit` and `validate`, on profiles that need no sampler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import bayesperf as bp

Cli = Callable[..., Any]
MakeTable = Callable[..., pd.DataFrame]

PARAMETER = {
    "target": "a", "parameter": "compute_rate", "label": "matmul [float32]", "unit": "FLOP/s", "median": 1e9,
    "lower": 9e8, "upper": 1.1e9, "prior_median": 1e10, "prior_lower": 1e8, "prior_upper": 1e12, "contraction": 0.9,
    "learned": True, "evidence": ["x"],
}  # fmt: skip


def profile(*, converged: bool) -> Any:
    """A profile as `fit` returns it."""
    check = SimpleNamespace(
        name="R-hat", value=1.2, limit=1.01, passed=converged, where="tau", remedy="" if converged else "sample longer"
    )
    return SimpleNamespace(
        converged=converged,
        gate=[check],
        model_name="roofline",
        targets=["a"],
        parameters=lambda interval: pd.DataFrame([PARAMETER]),
        save=lambda path: Path(path).write_text("profile"),
    )


@pytest.mark.parametrize("converged", [True, False])
def test_a_failed_gate_exits_1_and_still_writes(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, make_table: MakeTable, tmp_path: Path, converged: bool
) -> None:
    bp.write_measurements(make_table(), tmp_path / "t.parquet")
    monkeypatch.setattr("bayesperf.prediction.fit.fit", lambda *_, **__: profile(converged=converged))
    result = cli("fit", "t.parquet", "--out", "p.nc")
    assert result.code == (0 if converged else 1)
    assert (tmp_path / "p.nc").read_text() == "profile"
    assert ("sample longer" in result.err) == (not converged)
    assert ("unconverged" in result.err) == (not converged)
    assert "matmul [float32]" in result.out


@pytest.mark.parametrize("verdict", ["transfers", "fails", "undecided"])
def test_validate_exits_3_exactly_when_a_group_fails(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, make_table: MakeTable, tmp_path: Path, verdict: str
) -> None:
    bp.write_measurements(make_table(), tmp_path / "t.parquet")
    groups = pd.DataFrame(
        {
            "group": ["g"], "target": ["a"], "regime": ["memory, inside"], "verdict": [verdict], "advice": [""],
            "n_rows": [3], "shift": [0.0], "shift_lower": [-0.1], "shift_upper": [0.1], "coverage_90": [1.0],
        }
    )  # fmt: skip
    found = SimpleNamespace(words="memory time +20%", advice="fit streams", facts=dict)
    moved = {"g": found} if verdict == "fails" else {}
    checked = SimpleNamespace(
        groups=groups, rows=groups, scores=groups, settings={}, any_fails=bool(moved), notes=("a doubt",), moved=moved
    )
    fitted = SimpleNamespace(validate=lambda *_, **__: checked)
    monkeypatch.setattr("bayesperf.cli.validate.load", lambda path: fitted)
    monkeypatch.setattr(
        "bayesperf.report.validation.write_validation", lambda *_, **__: (Path("v.csv"), Path("v.html"))
    )
    result = cli("validate", "p.nc", "t.parquet")
    assert result.code == (3 if verdict == "fails" else 0)
    assert verdict in result.out
    assert ("g: what moved: memory time +20%" in result.out) == (verdict == "fails")
    assert "note: a doubt" in result.err
