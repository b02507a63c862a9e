"""Which cells of a level their own rows determine: those are sampled centred, the others non-centred.

Only the speed of sampling depends on it, never the posterior. What a row tells of a term is judged by the share of its
time that the term would take at the best rate seen.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.model import Floats
from bayesperf.models.roofline.coded import Codes, Contested, Labels, Scatter
from bayesperf.models.roofline.curve import Curves, code_curve, log_bandwidth, near_anchor
from bayesperf.models.roofline.units import unit_of

__all__ = [
    "NEAR",
    "Shares",
    "any_row",
    "contested_cells",
    "curve_leaning",
    "informed_cells",
    "leaning_cells",
    "term_shares",
]

NEAR = np.log(0.3)
"""Log share of a row's time from which a term's rate shows in it."""

FAR = np.log(0.1)
"""Log share of a row's time below which a term is no explanation of it, however badly it is used."""

MOST = np.log(0.6)
"""Log share of a row's time from which a term leaves little to explain."""

CLEARLY = np.log(1.5)
"""How much more of a row's time compute must take than memory before the row tells of compute."""

VARIED = np.log(2.0)
"""Range of a log over a cell's rows from which terms come apart: compute and memory by the FLOP on a byte, both from
launches by the amount of work."""

ENOUGH_ROWS = 6
"""From how many rows (or repeats beyond the first) a cell's noise scale is determined by them."""

ENOUGH_REACH = 0.1
"""Sum of squared features over a cell's rows from which they determine a coefficient of the discrepancy as well as its
prior does: about the squared ratio of what noise and misfit leave of a row, 3 %, to a coefficient of 10 %."""

RIDGE = 0.1
"""Squared misfit over squared size of a coefficient, roughly: how far coefficients are held back by their prior."""

ENOUGH_TARGETS = 3
"""How many targets must determine a coefficient before what is common to them is determined."""

Index = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Shares:
    """Log share of each row's time that a term would take alone, roughly; (row,) each, -inf where it is absent.

    `own_compute` and `own_memory` are those at the best rates of the row's own operation.
    """

    compute: Floats
    memory: Floats
    overhead: Floats
    own_compute: Floats
    own_memory: Floats


def term_shares(codes: Codes, labels: Labels, log_time: Floats) -> Shares:
    """Shares at the best rate of the row's unit, at the best bandwidth of its target at working sets at least as large,
    and at the shortest time of its target and kind of launch, which bounds what a launch costs.
    """
    units = labels.find("unit", [(t, unit_of(o, h)) for t, o, h in labels.of("rate")])
    unit = np.where(codes.rate >= 0, units[codes.rate], -1) if len(units) else codes.rate
    target = np.where(codes.memory >= 0, codes.target, -1)
    launch = labels.parents("overhead", "launch", (0, 2))[codes.overhead]
    speed, bandwidth = codes.log_flops - log_time, codes.log_bytes - log_time
    return Shares(
        compute=_gap(speed, unit, None),
        memory=_gap(bandwidth, target, codes.log_working_set),
        overhead=_gap(-log_time, launch, None),
        own_compute=_gap(speed, codes.rate, None),
        own_memory=_gap(bandwidth, codes.memory, codes.log_working_set),
    )


def contested_cells(codes: Codes, labels: Labels, shares: Shares) -> Contested:
    """Find bandwidths and compute rates that meet in rows of one intensity, either of which may explain their time."""
    n = len(labels.of("memory"))
    rate, intensity = np.full(n, -1, dtype=np.intp), np.zeros(n)
    shows = (codes.rate >= 0) & ~_varied(codes) & (shares.memory > FAR) & (shares.overhead < MOST)
    for cell in np.unique(codes.memory[shows]):
        rows = np.flatnonzero(shows & (codes.memory == cell))
        rates = np.unique(codes.rate[rows])
        if len(rates) == 1:
            rate[cell] = rates[0]
            intensity[cell] = (codes.log_flops - codes.log_bytes)[rows].mean()
    return Contested(rate, intensity)


def informed_cells(codes: Codes, labels: Labels, scatter: Scatter, shares: Shares) -> dict[str, npt.NDArray[np.bool_]]:
    """Say of the cells of each level whether their rows determine them.

    A compute rate is informed when its term alone would take at least 30 % of some row's time, of which memory and
    launching each leave 40 % or more unexplained, and memory clearly takes less than compute, hardly any where the
    cell's rows all do the same number of FLOP on a byte; a bandwidth, when its term alone would take at least 30 % of
    some row's time; an overhead, when both terms leave 40 % or more of some row's time unexplained, even at the best
    rates of its own operation where its rows do a varied amount of work; a noise scale, by enough rows.
    """
    idle = np.maximum(shares.compute, shares.memory) < MOST
    # What is slow at any size has a low rate, and says nothing of launches.
    idle &= (np.maximum(shares.own_compute, shares.own_memory) < MOST) | ~_sized(codes)
    rows = np.bincount(codes.noise, minlength=len(labels.of("noise")))
    repeats = np.bincount(scatter.cell, scatter.dof, minlength=len(labels.of("noise")))
    return {
        "rate": any_row(codes.rate, _busy(codes, shares), len(labels.of("rate"))),
        "memory": any_row(codes.memory, shares.memory > NEAR, len(labels.of("memory"))),
        "overhead": any_row(codes.overhead, idle, len(labels.of("overhead"))),
        "misfit": rows >= ENOUGH_ROWS,
        "repeat": repeats >= ENOUGH_ROWS,
        **_informed_shapes(codes, labels, shares),
    }


def leaning_cells(
    codes: Codes, labels: Labels, curves: Curves, shares: Shares, contested: Contested
) -> dict[str, Floats]:
    """Mean discrepancy features of the rows that determine a rate or a bandwidth, (cell, rank) each; ``anchor``: mean
    share of each of the curve's drops in those rows' bandwidth, (memory cell, gap).

    What those rows determine is the rate with the discrepancy there taken out, whatever that is, and the bandwidth with
    the drops up to its anchor. Sampled in their place, it moves with neither.
    """
    n_memory = len(labels.of("memory"))
    work = 1.0 - np.exp(np.minimum(shares.overhead, 0.0))
    shows = shares.memory > NEAR
    if n_memory:
        shows |= (contested.rate[codes.memory] >= 0) & (shares.overhead < MOST)
    near = shows & near_anchor(curves, codes.target, codes.log_working_set)
    # Rows elsewhere bring in drops: they are asked where there are no others.
    anchored = any_row(codes.memory, near, n_memory)
    near |= shows & ~(anchored[codes.memory] if n_memory else shows)
    return {
        "rate": _mean(codes.rate, codes.phi, _busy(codes, shares) * work, len(labels.of("rate"))),
        "memory": _mean(codes.memory, codes.phi, near * work, n_memory),
        "anchor": _mean(codes.memory, _drops_of(codes, curves), near * work, n_memory),
    }


def _drops_of(codes: Codes, curves: Curves) -> Floats:
    """Share of each drop in the log bandwidth of every row, the curve being straight inside its gaps, (row, gap)."""
    gaps = len(curves.mean)
    placed = code_curve(curves, codes.target, codes.log_working_set)
    return np.asarray(log_bandwidth(np, np.zeros(len(codes.target)), np.eye(gaps), np.zeros((1, gaps)), placed).T)


def curve_leaning(
    codes: Codes, labels: Labels, curves: Curves, shares: Shares, informed: dict[str, npt.NDArray[np.bool_]]
) -> Floats:
    """How much each coefficient of the discrepancy takes over of each drop of a bandwidth curve, (cell, rank, gap).

    Rows bound by memory determine the bandwidth with the discrepancy in it. The coefficients are sampled less what they
    can express of a drop, and then do not move with it: by weighted least squares of the curve (straight inside its
    gaps) on the features, with the prior's ridge. Those that their prior determines take over nothing.
    """
    n_cells, rank = len(labels.of("shape_cell")), codes.phi.shape[1]
    taken = np.zeros((n_cells, rank, len(curves.mean)))
    there = (codes.shape_cell >= 0) & (codes.memory >= 0)
    drops = _drops_of(codes, curves)
    weight = np.where(there, np.minimum(np.exp(shares.memory), 1.0), 0.0)
    for cell in np.flatnonzero(informed["shape_cell"].any(axis=1)):
        rows = np.flatnonzero((codes.shape_cell == cell) & there)
        known = np.flatnonzero(informed["shape_cell"][cell])
        phi = codes.phi[np.ix_(rows, known)]
        weighted = weight[rows, None] ** 2 * phi
        precision = weighted.T @ phi + RIDGE * np.eye(len(known))
        taken[cell, known] = np.linalg.solve(precision, weighted.T @ drops[rows])
    return taken


def _mean(cell: Index, phi: Floats, work: Floats, n: int) -> Floats:
    """Mean by cell; a row counts by the square of its work's share of the time, as its error shows by that share."""
    weight = np.where(cell >= 0, work**2, 0.0)
    total = np.zeros((n, phi.shape[1]))
    there = weight > 0
    np.add.at(total, cell[there], (weight[:, None] * phi)[there])
    sums = np.bincount(cell[there], weight[there], minlength=n)
    return total / np.where(sums > 0, sums, 1.0)[:, None]


def _busy(codes: Codes, shares: Shares) -> npt.NDArray[np.bool_]:
    """Rows that tell of a compute rate."""
    busy: npt.NDArray[np.bool_] = (shares.compute > NEAR) & (np.maximum(shares.memory, shares.overhead) < MOST)
    # Where an operation's FLOP and bytes grow together, its best rate is memory's, and says nothing of compute.
    busy &= shares.compute > shares.memory + CLEARLY
    busy &= (shares.memory < FAR) | _varied(codes)
    return busy


def _sized(codes: Codes) -> npt.NDArray[np.bool_]:
    """Rows of an operation on a target whose rows do a varied amount of work."""
    found = np.zeros(len(codes.overhead), dtype=bool)
    for cell, work in ((codes.rate, codes.log_flops), (codes.memory, codes.log_bytes)):
        by = pd.Series(work).groupby(cell)
        found |= (cell >= 0) & (by.transform("max") - by.transform("min") > VARIED).to_numpy()
    return found


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
