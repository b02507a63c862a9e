"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

# Several fake devices, for what spans them; workers that are measured in set their own number.
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4".strip()

# Python processes that tests start must not take this checkout's folder `bayesperf` for the installed package.
os.environ["PYTHONSAFEPATH"] = "1"


def pytest_configure() -> None:
    """Undo an ignored interrupt: shells give it to what they run in the background, and children inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Undo what the command line does to our logger: its handler writes to a stream that a later test has not."""
    logger = logging.getLogger("bayesperf")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers, logger.propagate = handlers, propagate
    logger.setLevel(level)


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
