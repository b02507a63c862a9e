"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

# Python processes that tests start must not take this checkout's folder `bayesperf` for the installed package.
os.environ["PYTHONSAFEPATH"] = "1"

MakeTable = Callable[..., pd.DataFrame]


@pytest.fixture
def make_table() -> MakeTable:
    """A small valid measurement table; keyword arguments set or replace columns."""

    def make(rows: int = 3, **columns: Any) -> pd.DataFrame:
        base: dict[str, Any] = {
            "target": ["a"] * rows,
            "op": ["matmul"] * rows,
            "flops": np.arange(1, rows + 1) * 1e9,
            "bytes": [1e6] * rows,
            "time_s": [1e-3] * rows,
        }
        return pd.DataFrame({**base, **columns})

    return make
