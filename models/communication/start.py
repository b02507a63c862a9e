"""Which members their own rows determine, and where chains begin: at what the shortest and largest messages show.

Members that rows determine are sampled centred, the others non-centred. Only the sampling depends on either, never the
posterior.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayesperf.model import Floats
from bayesperf.models.common.observed import Scatter
from bayesperf.models.communication.coded import Codes, Encoded, Index, Labels
from bayesperf.models.communication.hierarchy import Members

__all__ = ["informed_members", "starting_points"]

MOST = np.log(3.0)
"""Log by which one term must exceed the other in some row of a cell to be determined by it."""

FLAT, STEEP = 0.3, 0.7
"""Slopes of log time over the log of bytes, from a cell's smallest size to its largest, below which all is latency, and
above which all is bytes."""

ENOUGH_SIZES = 8
"""From how many sizes, between latency and bandwidth, a choice of protocols shows."""

ENOUGH_ROWS = 6
"""From how many rows (or repeats beyond the first) a noise scale is determined by them."""

SHARE = np.log(0.5)
"""Log share of the shortest latency at which a collective's start, and one step less, begin."""

OFF_CENTRE = 0.1


def _shortest_and_fastest(codes: Codes, log_time: Floats, n: int) -> tuple[Floats, Floats]:
    """Shortest log time, and least log time of a byte, of each cell's rows, (cell,)."""
    time, byte = np.full(n, np.inf), np.full(n, np.inf)
    np.minimum.at(time, codes.cell, log_time)
    np.minimum.at(byte, codes.cell, log_time - codes.log_message)
    return time, byte


def informed_members(
    codes: Codes, labels: Labels, log_time: Floats, scatter: Scatter
) -> dict[str, npt.NDArray[np.bool_]]:
    """Say which cells determine latency and time of a byte, and which pairs their protocols and noise."""
    n, pairs = len(labels.of("cell")), len(labels.of("pair"))
    time, byte = _shortest_and_fastest(codes, log_time, n)
    slope = _slope(codes, log_time, n)
    latency = _any(codes.cell, log_time - byte[codes.cell] - codes.log_message > MOST, n) | (slope < FLAT)
    moving = _any(codes.cell, log_time - time[codes.cell] > MOST, n) | (slope > STEEP)
    parent = labels.parents("cell", "pair", slice(0, 3))
    sizes = np.array([len(np.unique(codes.log_message[codes.pair == pair])) for pair in range(pairs)])
    return {
        "latency": latency,
        "byte": moving,
        "protocol": _any(parent, latency & moving, pairs) & (sizes >= ENOUGH_SIZES),
        "misfit": np.bincount(codes.pair, minlength=pairs) >= ENOUGH_ROWS,
        "repeat": np.bincount(scatter.cell, scatter.dof, minlength=pairs) >= ENOUGH_ROWS,
    }


def _slope(codes: Codes, log_time: Floats, n: int) -> Floats:
    """Slope of log time from the smallest to the largest message of each cell, (cell,); NaN for a single size."""
    slope = np.full(n, np.nan)
    for cell in range(n):
        rows = np.flatnonzero(codes.cell == cell)
        low, high = (rows[pick(codes.log_message[rows])] for pick in (np.argmin, np.argmax))
        range_ = codes.log_message[high] - codes.log_message[low]
        if range_ > 0:
            slope[cell] = (log_time[high] - log_time[low]) / range_
    return slope


def _any(cell: Index, mask: npt.NDArray[np.bool_], n: int) -> npt.NDArray[np.bool_]:
    found = np.zeros(n, dtype=bool)
    found[cell[mask]] = True
    return found


def _slopes(wire: Floats, members: Members) -> Floats:
    """Least-squares slope over the log of ranks of each target, (target,); 0 where there is one number of ranks."""
    x = members.log_ranks - members.anchor[members.cell_target]
    square = np.bincount(members.cell_target, x**2)
    product = np.bincount(members.cell_target, x * wire)
    return np.where(square > 0, product / np.where(square > 0, square, 1.0), 0.0)


def starting_points(encoded: Encoded, members: Members) -> dict[str, Floats]:
    """Starting values of variables by name, in the coordinates that are sampled; others start at their centres."""
    n, targets = len(encoded.labels.of("cell")), len(encoded.labels.of("target"))
    time, byte = _shortest_and_fastest(encoded.codes, encoded.log_time, n)
    shortest = np.full(targets, np.inf)
    np.minimum.at(shortest, members.cell_target, time)
    wire = byte - np.logaddexp(members.log_factor, members.log_kept)
    link = np.array([np.median(wire[members.cell_target == target]) for target in range(targets)])
    start = {
        "link": link,
        "growth": _slopes(wire - link[members.cell_target], members),
        "start": shortest + SHARE,
        "step": shortest + 2.0 * SHARE,
        "latency_raw": np.where(encoded.informed["latency"], time, 0.0),
        "byte_raw": np.where(encoded.informed["byte"], byte, 0.0),
    }
    # The sampler refuses points at which a derivative is zero, as it is at the centre of what no row concerns.
    rng = np.random.default_rng(0)
    return {name: values + rng.uniform(-OFF_CENTRE, OFF_CENTRE, len(values)) for name, values in start.items()}
