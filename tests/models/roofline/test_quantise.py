"""Tile and wave quantisation: hand-counted cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesperf.models.roofline.quantise import SOFTNESS, TILES, log_inflation


def inflation(m: float, n: float, units: float = np.nan, batch: float = 1.0) -> float:
    table = pd.DataFrame({"m": [m], "n": [n], "batch": [batch]})
    return float(np.exp(log_inflation(table, np.array([units]))[0]))


def test_whole_tiles_cost_nothing() -> None:
    assert inflation(4096, 4096) == pytest.approx(1.0)
    assert inflation(256, 128, batch=7) == pytest.approx(1.0)


def test_a_column_beyond_a_tile_pays_for_the_next() -> None:
    # One row beyond: 256 x 128 tiles double; the smaller ones pay less, so the soft minimum lies well below 2.
    assert 1.02 < inflation(257, 128) < 1.6
    assert inflation(257 * 16, 4096) < inflation(257, 4096)


def test_the_last_wave_counts_whole() -> None:
    # 100 tiles of the largest size fill 100 units; 101 need a second wave of any tile that is as large.
    full, over = inflation(256 * 10, 128 * 10, units=100), inflation(256 * 101, 128, units=100)
    assert full == pytest.approx(1.0, abs=0.02)
    assert over > 1.2
    assert inflation(256 * 1001, 128, units=100) < 1.12


def test_idle_units_are_paid_for() -> None:
    # One smallest tile keeps one of 80 units busy.
    lone = inflation(16, 16, units=80)
    assert lone > 30
    assert lone <= 80 * np.exp(TILES[-1][2] + np.log(len(TILES)) / SOFTNESS)


def test_shapes_that_are_not_stated_are_left_alone() -> None:
    table = pd.DataFrame({"m": [np.nan, 100.0], "n": [100.0, np.nan]})
    assert (log_inflation(table, np.array([80.0, 80.0])) == 0).all()
    assert (log_inflation(pd.DataFrame({"rows": [3.0]}), np.array([80.0])) == 0).all()
