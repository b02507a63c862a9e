"""Tile and wave quantisation of matrix products: how much more is computed than the shape needs.

A library covers the (m, n) result with tiles; tiles at the edge are computed whole, and tiles run in waves over the
device's parallel units, the last wave often partly empty. For a tile of T_m x T_n, with w = parallel units::

    inflation = tiles T_m T_n / (batch m n)  *  ceil(tiles / w) w / tiles,   tiles = batch ceil(m / T_m) ceil(n / T_n)

Which tile a library takes is unknown: the model takes a soft minimum over a few, smaller tiles being charged for the
operands they read more often. Shapes that are not stated are not inflated.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesperf.model import Floats

__all__ = ["log_inflation"]

TILES = (
    (256, 128, 0.0),
    (128, 128, 0.02),
    (128, 64, 0.1),
    (64, 64, 0.25),
    (64, 32, 0.45),
    (32, 32, 0.7),
    (16, 16, 1.2),
)
"""Rows, columns, and the log of what a tile of that size loses against the largest. Assumed, not measured: small tiles
read their operands more often, large ones nearly hide it. What is wrong here is left to rates and discrepancy."""

SOFTNESS = 8.0
"""Inverse scale of the soft minimum, in log time; assumed."""


def log_inflation(table: pd.DataFrame, units: Floats) -> Floats:
    """Log of effective over nominal FLOP, (row,); 0 where m or n is not stated, and at most that of one lone tile.

    Parameters
    ----------
    table
        Rows; columns m, n, and batch where there is one.
    units
        Parallel units of each row's target, (row,); NaN where unknown, which leaves waves out.
    """
    if "m" not in table or "n" not in table:
        return np.zeros(len(table))
    m, n = table["m"].to_numpy(float), table["n"].to_numpy(float)
    batch = table["batch"].fillna(1.0).to_numpy(float) if "batch" in table else np.ones(len(table))
    stated = (m > 0) & (n > 0) & (batch > 0)
    m, n, batch = (np.where(stated, values, 1.0) for values in (m, n, batch))
    # All tiles at once, (tile, row): one workload is asked of a predictor, and every call of NumPy counts.
    rows, columns, loss = _TILES
    tiles = batch * np.ceil(m / rows) * np.ceil(n / columns)
    padded = np.log(tiles * (rows * columns) / (batch * m * n))
    waves = np.where(units > 0, np.log(np.ceil(tiles / units) * units / tiles), 0.0)
    return np.where(stated, np.maximum(_soft_minimum(padded + waves + loss) - _LONE, 0.0), 0.0)


def _soft_minimum(values: Floats) -> Floats:
    return np.asarray(-np.logaddexp.reduce(-SOFTNESS * values, axis=0) / SOFTNESS)


_TILES = np.array(TILES).T[:, :, None]
_LONE = _soft_minimum(_TILES[2])
"""Of one lone tile that fits."""
