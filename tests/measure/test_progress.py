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


def test_hundreds_of_failures_of_one_reason_are_counted(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tiny()
    for progress in (LogProgress(), BarProgress()):
        progress.begin(plan, 0)
        for point in plan.points:
            progress.finished(point, "no-worker: did not start")
        progress.finished(plan.points[0], "timeout: stuck")
        progress.end()
    more = f"{len(plan.points) - 3} more failed: no-worker"
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sum("no-worker: did not start" in line for line in told) == 3
    assert sum("timeout: stuck" in line for line in told) == 1
    assert more in told[-1]
    shown = capsys.readouterr().err
    assert shown.count("no-worker: did not start") == 3
    assert more in " ".join(shown.split())
