"""What every verb has in common: help, exit codes, errors as one line."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bayesperf
from bayesperf.cli import app as application
from bayesperf.errors import (
    BayesperfError,
    CeilingError,
    InferenceError,
    InputError,
    MeasurementError,
    MissingExtraError,
    TableError,
    UnknownNameError,
)

Cli = Callable[..., Any]
VERBS = (
    "characterize",
    "measure",
    "import",
    "fit",
    "update",
    "predict",
    "validate",
    "explain",
    "compare",
    "diff",
    "report",
    "verify",
    "batch",
    "import",
    "merge",
    "list",
    "doctor",
)
WITH_JSON = VERBS


def test_version(cli: Cli) -> None:
    result = cli("--version")
    assert (result.code, result.out) == (0, f"bayesperf {bayesperf.__version__}\n")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_the_help_names_every_verb_and_the_exit_codes(cli: Cli, flag: str) -> None:
    result = cli(flag)
    assert result.code == 0
    assert all(f"  {verb} " in result.out for verb in VERBS)
    assert "Exit codes: 0 done, 1 failed, 2 wrong usage" in result.out


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_teaches_by_example(cli: Cli, verb: str) -> None:
    result = cli(verb, "--help")
    assert result.code == 0
    assert f"      bayesperf {verb}" in result.out, "an example"
    assert result.out.startswith(f"Usage: bayesperf {verb}")


@pytest.mark.parametrize("verb", WITH_JSON)
def test_every_verb_reports_to_programs_too(cli: Cli, verb: str) -> None:
    assert "--json" in cli(verb, "--help").out


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("meassure",),
        ("--no-such-option",),
        ("measure", "--no-such-option"),
        ("list",),
        ("list", "planets"),
        ("fit",),
        ("fit", "a.csv"),
        ("fit", "a.csv", "--out"),
        ("fit", "a.csv", "--out", "x.nc", "--draws", "0"),
        ("fit", "a.csv", "--out", "x.nc", "--draws", "many"),
        ("fit", "a.csv", "--out", "x.nc", "--seed", "-1"),
        ("predict", "a.nc"),
        ("predict", "a.nc", "w.csv", "--interval", "1.5"),
        ("predict", "a.nc", "w.csv", "--interval", "nan"),
        ("predict", "a.nc", "w.csv", "--out", "w.xlsx"),
        ("validate", "a.nc", "b.csv", "--alpha", "2"),
        ("merge", "--out", "x.parquet"),
        ("measure",),
        ("measure", "--suite", "tiny"),
        ("measure", "--suite", "tiny", "--repeat", "x.parquet", "--out", "y.parquet"),
        ("measure", "--suite", "tiny", "--out", "y.csv"),
        ("doctor", "extra"),
        ("report",),
        ("report", "a.nc", "--out", "a.pdf"),
        ("verify",),
        ("verify", "a.nc"),
        ("batch",),
        ("batch", "missing.toml"),
        ("batch", "missing.toml", "--workers", "0"),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2_and_writes_nothing(cli: Cli, tmp_path: Path, args: tuple[str, ...]) -> None:
    result = cli(*args)
    assert result.code == 2
    assert "Traceback" not in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_mistyped_verb_is_told_the_nearest(cli: Cli) -> None:
    assert "measure" in cli("meassure").err


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make `bayesperf doctor` fail."""

    def run() -> None:
        raise error

    monkeypatch.setattr("bayesperf.cli.doctor.run", run)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BayesperfError("it broke"), 1),
        (MeasurementError("folded", "XLA removed the work"), 1),
        (InferenceError("no draws"), 1),
        (InputError("wrong\nuse"), 2),
        (TableError("-1 is not greater than 0 s", source="a.csv", row=3, column="time_s"), 2),
        (UnknownNameError("probe", "x", ["y"]), 2),
        (MissingExtraError("batch", "dask", "pip install 'bayesperf[dask]'"), 2),
        (CeilingError("too fast"), 2),
        (OSError(errno.ENOSPC, "No space left on device", "/x"), 1),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2),
        (ModuleNotFoundError("No module named 'pymc'", name="pymc"), 2),
        (RuntimeError("a defect"), 1),
        (ValueError("a defect"), 1),
        (MemoryError(), 1),
    ],
    ids=lambda v: type(v).__name__,
)
def test_every_error_is_one_line_and_its_code(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    failing(monkeypatch, error)
    result = cli("doctor")
    assert result.code == code
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err


def test_a_missing_library_says_the_install_command(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, ModuleNotFoundError("No module named 'pymc'", name="pymc"))
    assert "pymc, which is not installed: pip install bayesperf" in cli("doctor").err


@pytest.mark.parametrize("error", [InputError("wrong"), RuntimeError("a defect")], ids=lambda e: type(e).__name__)
def test_debug_shows_the_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception) -> None:
    failing(monkeypatch, error)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(type(error)):
        application.build()(args=["--debug", "doctor"])
    monkeypatch.setenv("BAYESPERF_DEBUG", "1")
    with pytest.raises(type(error)):
        application.build()(args=["doctor"])


def test_ctrl_c_is_no_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    result = cli("doctor")
    assert (result.code, result.err) == (130, "interrupted\n")


def test_a_closed_pipe_is_no_traceback(process: Cli, tmp_path: Path) -> None:
    import subprocess
    import sys

    script = f"{sys.executable} -m bayesperf list probes --json | head -c 1"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    assert done.stdout == "["


def test_json_is_one_document(cli: Cli) -> None:
    document = json.loads(cli("list", "probes", "--json").out)
    assert {"name", "where"} == set(document[0])
