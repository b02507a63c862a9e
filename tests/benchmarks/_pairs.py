"""Interleaved pairs: ours and a reference on the same work, in one run, so that both meet the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesperf.measure.chain import AnyProgram
from bayesperf.measure.sampling import choose_counts
from bayesperf.measure.slope import Round, round_slopes

__all__ = ["Row", "compare", "print_table", "seconds_per_iteration"]

WIDE = 0.15
"""Relative interquartile range of the pairs' ratios from which all pairs are taken again."""


@dataclass(frozen=True)
class Row:
    """One comparison.

    Parameters
    ----------
    name
        What was compared.
    ours, reference
        Seconds of one execution in each pair.
    work
        FLOP or byte of one execution: rates are work over seconds.
    counts
        Whether the last line's ratio takes it into account.
    """

    name: str
    ours: tuple[float, ...]
    reference: tuple[float, ...]
    work: float
    counts: bool = True

    @property
    def ratios(self) -> np.ndarray:
        """Ours over reference as rates, pair by pair."""
        return np.divide(self.reference, self.ours)

    @property
    def ratio(self) -> float:
        """Median of the pairs' ratios."""
        return float(np.median(self.ratios))

    @property
    def spread(self) -> float:
        """Interquartile range of the ratios, relative to their median."""
        low, high = np.quantile(self.ratios, [0.25, 0.75])
        return float((high - low) / self.ratio)


def compare(
    name: str, ours: Callable[[], float], reference: Callable[[], float], work: float, *, pairs: int = 9,
    counts: bool = True,
) -> Row:  # fmt: skip
    """Time both in pairs, in alternating order, both warm; up to three times while the spread is wide."""
    ours()
    reference()
    rows = []
    for _ in range(3):
        times: list[tuple[float, float]] = []
        for pair in range(pairs):
            if pair % 2:
                theirs = reference()
                times.append((ours(), theirs))
            else:
                mine = ours()
                times.append((mine, reference()))
        rows.append(Row(name, tuple(t[0] for t in times), tuple(t[1] for t in times), work, counts))
        if rows[-1].spread < WIDE:
            break
    return min(rows, key=lambda row: row.spread)


def seconds_per_iteration(program: AnyProgram, longest_s: float, rounds: int) -> Callable[[], float]:
    """A function that times a probe's program as the engine does, by the slope over three iteration counts."""
    rng = np.random.default_rng(0)

    def timer(iterations: int) -> float:
        program.prepare(iterations)
        started = time.perf_counter()
        program.run(iterations)
        return time.perf_counter() - started

    counts, _ = choose_counts(timer, longest_s, too_slow_s=60.0)

    def slope() -> float:
        orders = [tuple(counts[k] for k in rng.permutation(len(counts))) for _ in range(rounds)]
        taken = [Round(order, tuple(timer(count) for count in order)) for order in orders]
        return float(np.median(round_slopes(taken)[0]))

    return slope


def print_table(rows: Sequence[Row], unit: str, scale: float, **notes: Any) -> None:
    """Print one line per row: median rates, median ratio, quartiles of the ratio."""
    print(f"{'':28s} {'ours ' + unit:>14s} {'reference':>12s} {'ratio':>7s} {'quartiles':>15s} {'pairs':>6s}")
    for row in rows:
        mine, theirs = row.work / np.median(row.ours) / scale, row.work / np.median(row.reference) / scale
        low, high = np.quantile(row.ratios, [0.25, 0.75])
        mark = "" if row.counts else "  (does not count)"
        print(
            f"{row.name:28s} {mine:14.2f} {theirs:12.2f} {row.ratio:7.3f} {low:7.3f}-{high:<7.3f} "
            f"{len(row.ours):6d}{mark}"
        )
    for key, value in notes.items():
        print(f"{key}: {value}")
