"""The physics of many workloads in NumPy: the same functions, in terms and in portions that suit a processor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from types import SimpleNamespace

import numpy as np

from bayesperf.model import Draws, Floats
from bayesperf.models.roofline.coded import Codes, Sheets
from bayesperf.models.roofline.hierarchy import Members, row_terms
from bayesperf.models.roofline.physics import smooth_roofline

__all__ = ["PORTION", "QUICK", "Later", "row_times"]

PORTION = 65_536
"""Pairs of a draw and a row that are worked on at a time: what an operation leaves is in the cache for the next one."""


def _logaddexp(a: Floats, b: Floats) -> Floats:
    """log(exp(a) + exp(b)): NumPy's own takes one element at a time, 15 times as long where exp and log do not."""
    larger = np.maximum(a, b)
    return np.asarray(larger + np.log(np.exp(a - larger) + np.exp(b - larger)))


class Later(Mapping[str, Floats]):
    """Named arrays that are computed when the first one is asked for."""

    def __init__(self, names: Sequence[str], compute: Callable[[], Sequence[Floats]]):
        self._names, self._compute = names, compute

    @functools.cached_property
    def _values(self) -> dict[str, Floats]:
        return dict(zip(self._names, self._compute(), strict=True))

    def __getitem__(self, name: str) -> Floats:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


QUICK = SimpleNamespace(exp=np.exp, logaddexp=_logaddexp)
"""Array namespace of the physics of a row (`bayesperf.models.roofline.physics`)."""


def row_times(p: Draws, codes: Codes, members: Members, sheets: Sheets) -> tuple[Floats, Floats, Floats, Floats]:
    """Log time of every row's compute, memory and overhead term alone, then of all together in its campaign.

    (draw, row) each, from `row_terms` and `smooth_roofline`.
    """
    sharpness = p["sharpness"].reshape(-1, 1)
    draws, rows = len(sharpness), len(codes.target)
    compute, memory, overhead, total = (np.empty((draws, rows)) for _ in range(4))
    step = max(1, PORTION // draws)
    for start in range(0, rows, step):
        at = slice(start, start + step)
        part = Codes(**{f.name: getattr(codes, f.name)[at] for f in fields(codes)})
        terms = row_terms(np, p, part, members, sheets)
        compute[:, at], memory[:, at], overhead[:, at] = terms
        total[:, at] = smooth_roofline(QUICK, *terms, sharpness) + p["campaign"][:, part.campaign]
    return compute, memory, overhead, total
