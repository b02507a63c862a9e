"""Local copies of the public sources, and source trees made up by the tests."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import bayesperf as bp

LoadLocal = Callable[[str], pd.DataFrame]


@pytest.fixture(scope="session")
def load_local() -> LoadLocal:
    """Load a data set from the local copies, once per session; skips where there are none. Do not change the table."""
    if not os.environ.get("BAYESPERF_DATA"):
        pytest.skip("BAYESPERF_DATA is not set: no local copies of the public data")
    return functools.cache(lambda name: bp.datasets.load(name))


@pytest.fixture
def source_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder laid out for local copies, which BAYESPERF_DATA names."""
    (tmp_path / "upstream").mkdir()
    monkeypatch.setenv("BAYESPERF_DATA", str(tmp_path))
    return tmp_path / "upstream"


@pytest.fixture
def no_local_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No local copy, and an empty cache, whose folder is returned."""
    monkeypatch.delenv("BAYESPERF_DATA", raising=False)
    cache = tmp_path / "cache"
    monkeypatch.setenv("BAYESPERF_CACHE", str(cache))
    return cache
