"""Progress: log lines off a terminal, a bar on one, silence when not wanted."""

from __future__ import annotations

import logging
import sys

import pytest

from bayesperf.measure.machine import Machine
from bayesperf.measure.plan import Plan, make_plan
from bayesperf.measure.progress import BarProgress, LogProgress, SilentProgress, choose_progress
from bayesperf.measure.suites import load_suite

MACHINE = Machine("cpu", "test-2-core", 2, 24e9, "jax")


def tiny() -> Plan:
    return make_plan(load_suite("tiny"), MACHINE, 0)


def test_log_lines_count_and_name_failures(caplog: pytest.LogCaptureFixture) -> None:
    plan, progress = tiny(), LogProgress()
    with caplog.at_level(logging.INFO, "bayesperf.measure"):
        progress.begin(plan, 0)
        for k, point in enumerate(plan.points):
            progress.finished(point, "timeout: stuck" if k == 3 else None)
        progress.end()
    lines = [record.getMessage() for record in caplog.records]
    total = len(plan.points)
    assert f"{total} points" in lines[0]
    assert any(f"{total} of {total}" in line for line in lines)
    assert 8 <= sum(" of " in line for line in lines) <= 12
    failures = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert [plan.points[3].config["op"] in r.getMessage() for r in failures] == [True]


def test_bar_goes_through_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    plan, progress = tiny(), BarProgress()
    progress.say("before the bar")
    progress.begin(plan, 2)
    progress.finished(plan.points[2], None)
    progress.finished(plan.points[3], "crashed: signal 11")
    progress.say("a word")
    progress.end()
    shown = capsys.readouterr().err
    assert "before the bar" in shown
    assert "crashed: signal 11" in shown
    assert "a word" in shown


def test_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(choose_progress(False)) is SilentProgress
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(choose_progress(None), BarProgress)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert isinstance(choose_progress(True), LogProgress)
