"""Which cells of a level their own rows determine: those are sampled centred, the others non-centred.

Only the speed of sampling depends on it, never the posterior. What a row tells of a term is judged by the share of its
time that the term would take at the best rate seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.model import Floats
from bayesperf.models.roofline.units import unit_of

if TYPE_CHECKING:
    from bayesperf.models.roofline.coded import Codes, Labels, Scatter

__all__ = ["NEAR", "Shares", "any_row", "informed_cells", "leaning_cells", "term_shares"]

NEAR = np.log(0.3)
"""Log share of a row's time from which a term's rate shows in it."""

MOST = np.log(0.6)
"""Log share of a row's time from which a term leaves little to explain."""

CLEARLY = np.log(1.5)
"""How much more of a row's time compute must take than memory before the row tells of compute."""

VARIED = np.log(2.0)
"""Range of the log of FLOP on a byte over a cell's rows from which compute and memory come apart."""

ENOUGH_ROWS = 6
"""From how many rows (or repeats beyond the first) a cell's noise scale is determined by them."""

MANY_ROWS = 8
"""From how many rows that show a bandwidth a cell is determined by them wherever they lie on its target's curve."""

ENOUGH_REACH = 4.0
"""Sum of squared features over a cell's rows from which they determine a coefficient of the discrepancy."""

ENOUGH_TARGETS = 3
"""How many targets must determine a coefficient before what is common to them is determined."""

Index = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Shares:
    """Log share of each row's time that a term would take alone, roughly; (row,) each, -inf where it is absent."""

    compute: Floats
    memory: Floats
    overhead: Floats


def term_shares(codes: Codes, labels: Labels, log_time: Floats) -> Shares:
    """Shares at the best rate of the row's unit, at the best bandwidth of its target at working sets at least as large,
    and at the shortest time of its target and kind of launch, which bounds what a launch costs.
    """
    units = labels.find("unit", [(t, unit_of(o, h)) for t, o, h in labels.of("rate")])
    unit = np.where(codes.rate >= 0, units[codes.rate], -1) if len(units) else codes.rate
    target = np.where(codes.memory >= 0, codes.target, -1)
    launch = labels.parents("overhead", "launch", (0, 2))[codes.overhead]
    return Shares(
        compute=_gap(codes.log_flops - log_time, unit, None),
        memory=_gap(codes.log_bytes - log_time, target, codes.log_working_set),
        overhead=_gap(-log_time, launch, None),
    )


def informed_cells(
    codes: Codes, labels: Labels, scatter: Scatter, anchor: Floats, shares: Shares
) -> dict[str, npt.NDArray[np.bool_]]:
    """Say of the cells of each level whether their rows determine them.

    A compute rate is informed when its term alone would take at least 30 % of some row's time, of which memory and
    launching each leave 40 % or more unexplained, and memory clearly takes less than compute, much less where the
    cell's rows all do the same number of FLOP on a byte; a bandwidth, by a row at its target's anchor, as elsewhere
    only its sum with the curve's drops is known, or by many rows; an overhead, when both terms leave 40 % or more of
    some row's time unexplained; a noise scale, by enough rows.
    """
    n_memory = len(labels.of("memory"))
    idle = np.maximum(shares.compute, shares.memory) < MOST
    shows, at_anchor = shares.memory > NEAR, _at_anchor(codes, anchor)
    many = np.bincount(codes.memory[(codes.memory >= 0) & shows], minlength=n_memory) >= MANY_ROWS
    rows = np.bincount(codes.noise, minlength=len(labels.of("noise")))
    repeats = np.bincount(scatter.noise, scatter.dof, minlength=len(labels.of("noise")))
    return {
        "rate": any_row(codes.rate, _busy(codes, shares), len(labels.of("rate"))),
        "memory": any_row(codes.memory, shows & at_anchor, n_memory) | many,
        "overhead": any_row(codes.overhead, idle, len(labels.of("overhead"))),
        "misfit": rows >= ENOUGH_ROWS,
        "repeat": repeats >= ENOUGH_ROWS,
        **_informed_shapes(codes, labels, shares),
    }


def leaning_cells(codes: Codes, labels: Labels, anchor: Floats, shares: Shares) -> dict[str, Floats]:
    """Mean discrepancy features of the rows that determine a rate or a bandwidth, (cell, rank) each.

    What those rows determine is the rate with the discrepancy there taken out, whatever that is. Sampled in its place,
    it does not move with the discrepancy's coefficients.
    """
    shows, n_memory = shares.memory > NEAR, len(labels.of("memory"))
    near = shows & _at_anchor(codes, anchor)
    # Elsewhere only the sum with the curve's drops is known: any row that shows the bandwidth does.
    anchored = any_row(codes.memory, near, n_memory)
    near |= shows & ~(anchored[codes.memory] if n_memory else shows)
    return {
        "rate": _mean(codes.rate, codes.phi, _busy(codes, shares), len(labels.of("rate"))),
        "memory": _mean(codes.memory, codes.phi, near, n_memory),
    }


def _mean(cell: Index, phi: Floats, rows: npt.NDArray[np.bool_], n: int) -> Floats:
    rows = rows & (cell >= 0)
    total = np.zeros((n, phi.shape[1]))
    np.add.at(total, cell[rows], phi[rows])
    return total / np.maximum(np.bincount(cell[rows], minlength=n), 1)[:, None]


def _at_anchor(codes: Codes, anchor: Floats) -> npt.NDArray[np.bool_]:
    near: npt.NDArray[np.bool_] = codes.log_working_set >= anchor[codes.target] - np.log(2.0)
    return near


def _busy(codes: Codes, shares: Shares) -> npt.NDArray[np.bool_]:
    """Rows that tell of a compute rate."""
    busy: npt.NDArray[np.bool_] = (shares.compute > NEAR) & (np.maximum(shares.memory, shares.overhead) < MOST)
    # Where an operation's FLOP and bytes grow together, its best rate is memory's, and says nothing of compute.
    busy &= shares.compute > shares.memory + CLEARLY
    busy &= (shares.memory < NEAR) | _varied(codes)
    return busy


def _varied(codes: Codes) -> npt.NDArray[np.bool_]:
    """Rows of a cell whose rows do a varied number of FLOP on a byte."""
    intensity = pd.Series(codes.log_flops - codes.log_bytes).groupby(codes.rate)
    return np.asarray(intensity.transform("max") - intensity.transform("min") > VARIED, dtype=np.bool_)


def _informed_shapes(codes: Codes, labels: Labels, shares: Shares) -> dict[str, npt.NDArray[np.bool_]]:
    """Coefficients of the discrepancy, (cell, rank) and (op, rank): the first by how far their rows' features reach,
    the others by how many targets inform theirs.
    """
    rank, cells = codes.phi.shape[1], len(labels.of("shape_cell"))
    reach = np.zeros((cells, rank))
    there = codes.shape_cell >= 0
    # Of what is overhead, no error of the work shows.
    working = 1.0 - np.exp(np.minimum(shares.overhead, 0.0))
    np.add.at(reach, codes.shape_cell[there], (working[:, None] * codes.phi)[there] ** 2)
    # Of a row's scatter, a coefficient of typical size explains about as much as the misfit and the noise leave.
    own = reach >= ENOUGH_REACH
    common = labels.parents("shape_cell", "shape", slice(1, 2))
    targets = np.zeros((len(labels.of("shape")), rank))
    np.add.at(targets, common[common >= 0], own[common >= 0])
    return {"shape_cell": own, "shape": targets >= ENOUGH_TARGETS}


def any_row(cell: Index, mask: npt.NDArray[np.bool_], n: int) -> npt.NDArray[np.bool_]:
    """Whether some row of each of `n` cells is in the mask, (cell,)."""
    found = np.zeros(n, dtype=bool)
    found[cell[(cell >= 0) & mask]] = True
    return found


def _gap(speed: Floats, group: Index, order: Floats | None) -> Floats:
    """Log of each row's speed over the best of its group, of rows at least as large in `order`; -inf where -1."""
    gap = np.full(len(speed), -np.inf)
    for code in np.unique(group[group >= 0]):
        rows = np.flatnonzero(group == code)
        best: Floats | float = speed[rows].max()
        if order is not None:
            rows = rows[np.argsort(-order[rows], kind="stable")]
            best = np.maximum.accumulate(speed[rows])
        gap[rows] = speed[rows] - best
    return gap
