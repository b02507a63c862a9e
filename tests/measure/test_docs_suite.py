"""The suite in the documents is one, and plans what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bayesperf.measure.machine import Machine
from bayesperf.measure.plan import make_plan
from bayesperf.measure.suites import load_suite

DOCUMENT = Path(__file__).parents[2] / "docs" / "suites.md"
SOURCES = Path(__file__).parents[2] / "bayesperf" / "measure"


def test_example_is_a_suite(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(block)
    plan = make_plan(load_suite(path), Machine("cpu", "test-2-core", 2, 24e9, "jax"), 0)
    assert {p.condition for p in plan.points} == {"hot+burst", "cold+burst"}
    assert {p.mode for p in plan.points} == {"plain", "threads"}
    assert any(p.beside is not None for p in plan.points)


def documented() -> list[str]:
    table = DOCUMENT.read_text().split("## What failed")[1]
    return [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize("reason", documented())
def test_each_documented_reason_exists(reason: str) -> None:
    assert any(f'"{reason}"' in path.read_text() for path in SOURCES.glob("*.py"))


def test_each_reason_is_documented() -> None:
    raised = {
        name
        for path in SOURCES.glob("*.py")
        for name in re.findall(r'MeasurementError\(\s*"([a-z-]+)"', path.read_text())
    }
    # These end a run and are in no table; too few samples cannot happen with the rules there are.
    assert raised - {"nothing-measured", "no-backend", "too-few-samples"} <= set(documented())
