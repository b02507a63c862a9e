"""The examples of docs/checks.md run as they stand, on the toy in place of a fit that takes minutes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf import checks
from bayesperf.datasets import targets as shipped
from bayesperf.specs import check_targets
from tests.checks.toy import Levels, toy_profile, toy_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "checks.md"
DAYS = ("monday", "tuesday", "wednesday")


@pytest.mark.slow
# Plots of ArviZ: what they do inside is not ours to be strict about.
@pytest.mark.filterwarnings("default")
def test_the_examples_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    mpl.use("Agg")
    table = toy_table(1, campaigns=DAYS)
    sheets = check_targets(pd.DataFrame({"device": ["a", "b"], "peak_flops_float32": 1e12}))
    honest = checks.sbc

    def fit(table: pd.DataFrame, targets: Any = None, model: Any = None, **options: Any) -> bp.Profile:
        return toy_profile(table, targets, model if isinstance(model, Levels) else None, **options)

    def sbc(model: str, table: pd.DataFrame, simulations: int) -> checks.Calibration:
        assert (model, simulations) == ("roofline", 200)
        small = honest(Levels(), table, simulations=10, draws=60, tune=100, chains=1, keep=50)
        small.tree["prior_sbc"] = small.tree["prior_sbc"].to_dataset().rename(level="sharpness")
        return small

    monkeypatch.setattr(bp, "load_profile", lambda path: toy_profile(table, sheets), raising=False)
    monkeypatch.setattr(bp, "fit", fit, raising=False)
    monkeypatch.setattr("bayesperf.checks.group_out.fit", fit)
    monkeypatch.setattr("bayesperf.datasets.load", lambda name: table)
    monkeypatch.setattr("bayesperf.datasets.targets", lambda: sheets)
    monkeypatch.setattr(checks, "sbc", sbc)
    assert not shipped().empty
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)
    assert "matmul" in capsys.readouterr().out
    assert set(names["weights"].index) == {"roofline", "mine"}
