"""Figures of what a target can do: its roofline, and its bandwidth over the working set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from bayesperf.report.bottlenecks import fitted_rows, undescribed
from bayesperf.report.canvas import COLOURS, INK, LINES, MARKERS, label_axis, new_figure, styled
from bayesperf.report.document import Plateau
from bayesperf.report.hierarchy import POINTS, Sweep, predicted_times
from bayesperf.report.words import quantity, short

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["bandwidth", "roofline"]

MOST_CURVES = len(COLOURS)


# Roofline.


@styled
def roofline(profile: Profile, target: str, heldout: pd.DataFrame | None, *, seed: int) -> Figure | None:
    """Rate over arithmetic intensity: predictive bands over the measured points; None without such points.

    One band per element type, for the operation of that type that reached the highest rate, with the traffic of its
    largest measurement; no campaign effect.
    """
    table = fitted_rows(profile)
    mine = table[table["target"] == target]
    fitted = _with_rates(mine[~mine["op"].isin(undescribed(profile))])
    if fitted.empty:
        return None
    other = _with_rates(heldout[heldout["target"] == target]) if heldout is not None else fitted.iloc[:0]
    # By name, so that an element type has one colour in all figures of a report.
    dtypes = sorted(_by_best(fitted, "dtype", "rate")[:MOST_CURVES])
    curves = {dtype: _roof(profile, target, fitted[fitted["dtype"] == dtype], seed) for dtype in dtypes}

    figure, axes = new_figure()
    for at, dtype in enumerate(dtypes):
        x, low, mid, high = curves[dtype]
        axes.fill_between(x, low, high, color=COLOURS[at], alpha=0.18, linewidth=0)
        # Line and marker tell the types apart in print.
        axes.plot(x, mid, LINES[at], color=COLOURS[at])
        axes.plot([], [], LINES[at], marker=MARKERS[at], color=COLOURS[at], ms=4.0, label=short(dtype, 28))
        points = fitted[fitted["dtype"] == dtype]
        axes.plot(points["intensity"], points["rate"], MARKERS[at], color=COLOURS[at], ms=3.6, alpha=0.75)
        points = other[other["dtype"] == dtype]
        axes.plot(points["intensity"], points["rate"], MARKERS[at], color=COLOURS[at], mfc="white", ms=4.4)
    if len(other):
        axes.plot([], [], "o", color=INK, mfc="white", ms=4.4, label="held out, never fitted")
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity, FLOP per byte")
    axes.set_title("rate attained, with 90 % predictive band")
    label_axis(axes, "y", "FLOP/s")
    label_axis(axes, "x", "1")
    axes.legend(loc="lower right")
    return figure


def _with_rates(table: pd.DataFrame) -> pd.DataFrame:
    table = table[(table["flops"] > 0) & (table["bytes"] > 0)]
    dtype = table["dtype"] if "dtype" in table else pd.Series(None, index=table.index, dtype=object)
    return table.assign(
        dtype=dtype.where(dtype.notna(), "any type"),
        intensity=table["flops"] / table["bytes"],
        rate=table["flops"] / table["time_s"],
    )


def _by_best(table: pd.DataFrame, key: str, value: str) -> list[str]:
    return [str(k) for k in table.groupby(key)[value].max().sort_values(ascending=False).index]


def _roof(profile: Profile, target: str, rows: pd.DataFrame, seed: int) -> tuple[np.ndarray, ...]:
    best = rows.iloc[int(rows["rate"].to_numpy().argmax())]
    span = rows["intensity"]
    x = np.geomspace(span.min() / 1.5, span.max() * 1.5, POINTS)
    traffic = float(rows.loc[rows["op"] == best["op"], "bytes"].max())
    workloads = {"op": best["op"], "flops": x * traffic, "bytes": traffic, "working_set_bytes": traffic}
    if best["dtype"] != "any type":
        workloads["dtype"] = best["dtype"]
    time = predicted_times(profile, target, pd.DataFrame(workloads), seed)
    low, mid, high = np.quantile(x * traffic / time, [0.05, 0.5, 0.95], axis=0)
    return x, low, mid, high


# Bandwidth.


@styled
def bandwidth(found: Sweep, flat: Sequence[Plateau]) -> Figure:
    """Bandwidth over the working set: the predictive band of the best-swept operation, plateaus, all that stream."""
    figure, axes = new_figure()
    axes.fill_between(found.x, found.low, found.high, color=COLOURS[0], alpha=0.18, linewidth=0)
    axes.plot(found.x, found.mid, color=COLOURS[0])
    for at, op in enumerate(found.ops):
        points = found.rows[found.rows["op"] == op]
        face = COLOURS[at] if at == 0 else "none"
        sizes, rates = points["working_set_bytes"], points["rate"]
        axes.plot(sizes, rates, MARKERS[at], color=COLOURS[at], mfc=face, ms=3.8, label=short(op, 28))
    for plateau in flat:
        level = plateau.bandwidth.median
        axes.hlines(level, plateau.from_bytes, plateau.to_bytes, color=INK, linewidth=1.0, linestyle=(0, (1, 1)))
        middle = float(np.sqrt(plateau.from_bytes * plateau.to_bytes))
        axes.annotate(
            quantity(level, "B/s"), (middle, level), (0, 9), textcoords="offset points", ha="center", fontsize=7.5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8},
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="working set")
    axes.set_title(f"bandwidth, with 90 % predictive band of {short(found.ops[0], 24)}")
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=7))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    label_axis(axes, "x", "B")
    label_axis(axes, "y", "B/s")
    axes.legend(loc="best")
    return figure
