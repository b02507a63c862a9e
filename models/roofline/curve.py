"""Bandwidth over the working set: a smooth monotone curve through the levels that were measured.

Each target has knots at its measured working sets (clustered), with one gap below the smallest and one beyond the
largest. Bandwidth never rises with the working set: every gap has a non-negative log drop. The curve is anchored at
the largest working set measured, so that what is sampled is what data determine. Inside a gap the drop follows
``u ** exp(warp)``, u in 0..1 being the log position: where in the gap a cache edge lies is unknown, and the warp,
left to its prior when nothing was measured there, says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayesperf.model import Floats
from bayesperf.models.roofline.priors import PRIORS

__all__ = ["CurveCodes", "Curves", "code_curve", "curves_for", "log_bandwidth", "near_anchor"]

_SMALLEST, _LARGEST = np.log(4.0 * 1024), np.log(4.0 * 1024**3)
_OCTAVE = np.log(2.0)
_MAX_KNOTS = 16


@dataclass(frozen=True)
class Curves:
    """Gaps of all targets, flattened. Arrays have shape (gap,); the anchor (target,) is a knot of its target."""

    target: npt.NDArray[np.intp]
    low: Floats
    high: Floats
    mean: Floats
    anchor: Floats

    @property
    def octaves(self) -> Floats:
        """Width of each gap in doublings of the working set."""
        return np.asarray((self.high - self.low) / _OCTAVE)


@dataclass(frozen=True)
class CurveCodes:
    """Where rows lie on their targets' curves.

    Parameters
    ----------
    own
        The gap the row lies in, (row,).
    last
        The gap that ends at the anchor of the row's target, (row,).
    position
        Log position in that gap, 0 at its lower end, 1 at its upper, (row,).
    """

    own: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]
    position: Floats


def curves_for(
    names: Sequence[str], measured: Mapping[str, Floats], cache_bytes: Mapping[str, float], first: Curves | None = None
) -> Curves:
    """Lay out the gaps of every target, those of `first` unchanged and in front.

    Parameters
    ----------
    names
        Targets in code order.
    measured
        Log working sets at which bandwidth shows, by target; absent targets get generic knots, two octaves apart,
        and are anchored beyond them, in main memory.
    cache_bytes
        Last cache by target, where a spec sheet names it: twice beyond it nothing is expected to drop.
    first
        Curves of the leading targets.
    """
    known = 0 if first is None else len(first.anchor)
    columns: list[list[float]] = [[], [], [], []]
    anchors: list[float] = []
    for code, name in enumerate(names[known:], start=known):
        knots, anchor = _knots(measured.get(name))
        last = np.log(2.0 * cache_bytes[name]) if name in cache_bytes else np.inf
        for low, high in itertools.pairwise(knots):
            mean = PRIORS.level_drop if low < last else PRIORS.level_drop_beyond
            for column, value in zip(columns, (code, low, high, mean), strict=True):
                column.append(float(value))
        anchors.append(anchor)
    values = [np.array(column, dtype=float) for column in columns]
    new = Curves(values[0].astype(np.intp), values[1], values[2], values[3], np.array(anchors, dtype=float))
    return new if first is None else Curves(*(np.concatenate([getattr(first, f), getattr(new, f)]) for f in _FIELDS))


_FIELDS = ("target", "low", "high", "mean", "anchor")


def _knots(measured: Floats | None) -> tuple[Floats, float]:
    if measured is None or not len(measured):
        knots = np.arange(_SMALLEST, _LARGEST + _OCTAVE, 2 * _OCTAVE)
        return knots, float(knots[-1])
    centres = _cluster(np.sort(measured))
    below = min(_SMALLEST, centres[0] - 2 * _OCTAVE)
    beyond = max(_LARGEST, centres[-1] + 2 * _OCTAVE)
    return np.concatenate([[below], centres, [beyond]]), float(centres[-1])


def _cluster(values: Floats) -> Floats:
    """Merge sorted values until all are an octave apart and few; the smallest and the largest stay."""
    centres = [float(values[0])]
    for value in values[1:]:
        if value - centres[-1] >= _OCTAVE:
            centres.append(float(value))
    if values[-1] > centres[-1]:
        # The anchor is the largest working set; its neighbour moves instead.
        centres = [c for c in centres if values[-1] - c >= _OCTAVE] + [float(values[-1])]
    while len(centres) > _MAX_KNOTS:
        closest = int(np.argmin(np.diff(centres)[:-1])) + 1
        del centres[closest]
    return np.array(centres)


def code_curve(curves: Curves, target: npt.NDArray[np.intp], log_working_set: Floats) -> CurveCodes:
    """Place rows on their targets' curves, (row,) each."""
    # Gaps lie target by target, by size. Sizes outside all gaps belong to the first or the last one, at its end.
    starts = np.searchsorted(curves.target, target)
    counts = np.searchsorted(curves.target, target, side="right") - starts
    steps = np.arange(1, int(counts.max(initial=0)))[:, None]
    gap, there = np.minimum(starts + steps, len(curves.low) - 1), steps < counts
    own = starts + (there & (curves.low[gap] <= log_working_set)).sum(axis=0)
    last = starts + (there & (curves.high[gap] <= curves.anchor[target] + 1e-9)).sum(axis=0)
    position = (log_working_set - curves.low[own]) / (curves.high[own] - curves.low[own])
    return CurveCodes(own, last, np.clip(position, 0.0, 1.0))


def near_anchor(curves: Curves, target: npt.NDArray[np.intp], log_working_set: Floats) -> npt.NDArray[np.bool_]:
    """Rows at which bandwidth is expected to be about that of their target's anchor, (row,).

    Within a doubling of it, and further down where the spec sheet lets nothing drop.
    """
    expected = curves.mean * np.maximum(curves.octaves, 1.0)
    codes = code_curve(curves, target, log_working_set)
    above = log_bandwidth(np, np.zeros(len(target)), expected, np.zeros(len(expected)), codes)
    return np.asarray(above <= PRIORS.level_drop + 1e-9, dtype=np.bool_)


def log_bandwidth(xp: Any, anchor: Any, drop: Any, warp: Any, codes: CurveCodes) -> Any:
    """Log bandwidth of rows, (..., row), log B/s.

    Parameters
    ----------
    xp
        Array namespace.
    anchor
        Log bandwidth at the anchor of each row's target, (..., row).
    drop, warp
        Log drop and shape of every gap, (..., gap).
    codes
        From `code_curve`.
    """
    # Drops from the row's gap up to the anchor, or minus those from the anchor up to the row's gap.
    total = xp.cumsum(drop, axis=-1)
    passed = total[..., codes.last] - total[..., codes.own] + drop[..., codes.own]
    # 0 ** exp(warp) is 0, but its derivative must not be taken through log(0).
    inside = codes.position > 0
    power = xp.exp(xp.exp(warp[..., codes.own]) * np.log(np.where(inside, codes.position, 1.0)))
    return anchor + passed - drop[..., codes.own] * power * inside
