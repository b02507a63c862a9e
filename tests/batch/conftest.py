"""Configurations of quick jobs, and what runs them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bayesperf.batch.run as runner

HERE = str(Path(__file__).parent)
TABLE = "target,op,flops,bytes,time_s\na,matmul,1e9,1e6,1e-3\na,matmul,2e9,1e6,2e-3\nb,matmul,1e9,1e6,3e-3\n"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Jobs of a batch do what their names say (`quickjobs`); returns that module."""
    monkeypatch.syspath_prepend(HERE)
    module = importlib.import_module("quickjobs")
    monkeypatch.setattr(runner, "run_job", module.quick)
    return module


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a small table and a configuration with one job of it for each name given; returns the configuration."""

    def written(*names: str, extra: str = "") -> Path:
        (tmp_path / "t.csv").write_text(TABLE)
        jobs = "".join(f'[[job]]\nname = "{name}"\ndata = "t.csv"\n' for name in names)
        (tmp_path / "c.toml").write_text(extra + jobs)
        return tmp_path / "c.toml"

    return written
