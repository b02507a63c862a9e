"""Run the command line as people do: a process of its own, or, faster, in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bayesperf.cli import main


@dataclass(frozen=True)
class Result:
    """What a command left."""

    code: int
    out: str
    err: str


Cli = Callable[..., Result]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str | Path) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(a) for a in args])
        printed = capsys.readouterr()
        return Result(int(exit_.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Cli:
    """Run the command line in a process of its own, in an empty folder."""

    def run(*args: str | Path, timeout: float = 120, **environment: str) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "bayesperf", *map(str, args)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return run
