"""The figures of a capability report: roofline, bandwidth, held-out predictions, coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from bayesperf.report.canvas import COLOURS, GREY, INK, MARKERS, label_axis, new_figure, styled
from bayesperf.report.words import configuration, records

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["bandwidth", "coverage", "heldout", "roofline"]

POINTS = 60
"""Points of a predicted curve."""

MOST_ROWS = 36
"""Held-out configurations drawn one by one; more are drawn as a cloud."""

MOST_CURVES = len(COLOURS)


# Roofline.


@styled
def roofline(profile: Profile, target: str, heldout: pd.DataFrame | None, *, seed: int) -> Figure | None:
    """Rate over arithmetic intensity: predictive bands over the measured points; None without such points.

    One band per element type, for the operation of that type that reached the highest rate, with the traffic of its
    largest measurement; no campaign effect.
    """
    fitted = _with_rates(profile.table[profile.table["target"] == target])
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
        axes.plot(x, mid, color=COLOURS[at], label=dtype)
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
    time = _times(profile, target, pd.DataFrame(workloads), seed)
    low, mid, high = np.quantile(x * traffic / time, [0.05, 0.5, 0.95], axis=0)
    return x, low, mid, high


def _times(profile: Profile, target: str, workloads: pd.DataFrame, seed: int) -> np.ndarray:
    """Predictive draws of time without campaign effect, shape (draw, workload), s."""
    # An unconverged profile is drawn too: its report says at the top what it is.
    predicted = profile.predict(workloads, target, mean=True, draws=2000, seed=seed, allow_unconverged=True)
    return np.asarray(predicted.draws.transpose("draw", "workload"))


# Bandwidth.


@styled
def bandwidth(profile: Profile, target: str, *, seed: int) -> Figure | None:
    """Bandwidth over the working set: the predictive band of the best-swept operation over all that stream."""
    rows = profile.table[(profile.table["target"] == target) & (profile.table["bytes"] > 0)]
    if "working_set_bytes" not in rows:
        rows = rows.assign(working_set_bytes=rows["bytes"])
    rows = rows.assign(working_set_bytes=rows["working_set_bytes"].fillna(rows["bytes"]))
    rows = rows.assign(rate=rows["bytes"] / rows["time_s"])
    # Operations that stream: at most one operation per byte or so.
    rows = rows[rows["flops"] <= rows["bytes"]]
    swept = rows.groupby("op")["working_set_bytes"].nunique().sort_values(ascending=False, kind="stable")
    if swept.empty or swept.iloc[0] < 3:
        return None
    # An operation measured at one size says nothing of a sweep; one far below the others does not stream.
    best = rows.groupby("op")["rate"].max()
    ops = [str(op) for op in swept.index[swept > 1] if best[op] >= 0.1 * best[swept.index[0]]][:MOST_CURVES]
    x, low, mid, high = _sweep(profile, target, rows[rows["op"] == ops[0]], seed)

    figure, axes = new_figure()
    axes.fill_between(x, low, high, color=COLOURS[0], alpha=0.18, linewidth=0)
    axes.plot(x, mid, color=COLOURS[0])
    for at, op in enumerate(ops):
        points = rows[rows["op"] == op]
        face = COLOURS[at] if at == 0 else "none"
        axes.plot(
            points["working_set_bytes"], points["rate"], MARKERS[at], color=COLOURS[at], mfc=face, ms=3.8, label=op
        )
    axes.set(xscale="log", yscale="log", xlabel="working set")
    axes.set_title(f"bandwidth, with 90 % predictive band of {ops[0]}")
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=7))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    label_axis(axes, "x", "B")
    label_axis(axes, "y", "B/s")
    axes.legend(loc="best")
    return figure


def _sweep(profile: Profile, target: str, rows: pd.DataFrame, seed: int) -> tuple[np.ndarray, ...]:
    footprint = rows["working_set_bytes"]
    x = np.geomspace(footprint.min(), footprint.max(), POINTS)
    moved = x * float((rows["bytes"] / footprint).median())
    workloads = {
        "op": rows["op"].iloc[0],
        "flops": moved * float((rows["flops"] / rows["bytes"]).median()),
        "bytes": moved,
        "working_set_bytes": x,
    }
    if "dtype" in rows and rows["dtype"].notna().any():
        workloads["dtype"] = rows["dtype"].mode().iloc[0]
    rate = moved / _times(profile, target, pd.DataFrame(workloads), seed)
    low, mid, high = np.quantile(rate, [0.05, 0.5, 0.95], axis=0)
    return x, low, mid, high


# Held-out workloads.


@styled
def heldout(rows: pd.DataFrame) -> Figure:
    """Measured against predicted time of every held-out configuration, with its 90 % predictive interval.

    Parameters
    ----------
    rows
        One row per configuration, with ``measured_s``, ``median_s``, ``lower_s``, ``upper_s`` and ``inside``.
    """
    return _listed(rows) if len(rows) <= MOST_ROWS else _cloud(rows)


def _listed(rows: pd.DataFrame) -> Figure:
    rows = rows.iloc[::-1]
    figure, axes = new_figure(height=1.0 + 0.2 * len(rows))
    y = np.arange(len(rows))
    low, high = (rows[c].to_numpy(float) / rows["median_s"].to_numpy(float) for c in ("lower_s", "upper_s"))
    ratio = rows["measured_s"].to_numpy(float) / rows["median_s"].to_numpy(float)
    inside = rows["inside"].to_numpy(bool)
    axes.hlines(y, low, high, color="#b9c2cd", linewidth=5.0)
    axes.plot(ratio[inside], y[inside], "o", color=COLOURS[0], ms=4.0, label="inside its interval")
    axes.plot(ratio[~inside], y[~inside], "X", color=COLOURS[1], ms=6.0, label="outside")
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.set(xscale="log", xlabel="measured time / predicted median", ylim=(-0.8, len(rows) - 0.2))
    labels = [_short(configuration(row)) for row in records(rows)]
    axes.set_yticks(y, labels, fontsize=7.0)
    axes.grid(visible=False, axis="y")
    _ratio_ticks(axes, float(min(low.min(), ratio.min())), float(max(high.max(), ratio.max())))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0 + 0.45 / figure.get_figheight()), ncols=2)
    return figure


def _short(text: str, most: int = 44) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _ratio_ticks(axes: Axes, low: float, high: float) -> None:
    steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100]
    if high / low > 3:
        steps = [s for s in steps if s not in (0.67, 0.8, 0.9, 1.1, 1.25)]
    if high / low > 300:
        steps = [0.01, 0.1, 1, 10, 100]
    axes.xaxis.set_major_locator(FixedLocator([s for s in steps if low / 1.1 <= s <= high * 1.1]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")


def _cloud(rows: pd.DataFrame) -> Figure:
    figure, axes = new_figure(height=4.6)
    x, y = rows["measured_s"].to_numpy(float), rows["median_s"].to_numpy(float)
    spread = np.abs([y - rows["lower_s"].to_numpy(float), rows["upper_s"].to_numpy(float) - y])
    inside = rows["inside"].to_numpy(bool)
    axes.errorbar(x, y, yerr=spread, fmt="none", ecolor="#b9c2cd", elinewidth=1.0, rasterized=len(rows) > 2000)
    axes.plot(x[inside], y[inside], "o", color=COLOURS[0], ms=3.0, label="inside its interval")
    axes.plot(x[~inside], y[~inside], "X", color=COLOURS[1], ms=4.5, label="outside")
    ends = [min(x.min(), y.min()), max(x.max(), y.max())]
    axes.plot(ends, ends, color=INK, linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="measured time", ylabel="predicted time, 90 % interval")
    label_axis(axes, "x", "s")
    label_axis(axes, "y", "s")
    axes.legend(loc="upper left")
    return figure


# Coverage.


@styled
def coverage(pit: Any) -> Figure:
    """Share of held-out configurations inside central intervals of every probability.

    Parameters
    ----------
    pit
        Probability integral transforms, shape (row,).
    """
    pit = np.asarray(pit, dtype=float)
    centred = np.abs(2.0 * pit[np.isfinite(pit)] - 1.0)
    levels = np.linspace(0.0, 1.0, 101)
    achieved = (centred[:, None] <= levels).mean(axis=0) if len(centred) else np.full(101, np.nan)

    figure, axes = new_figure(3.9, 3.7)
    axes.plot([0, 1], [0, 1], "--", color=GREY, linewidth=1.0, label="as promised")
    axes.step(levels, achieved, where="post", color=COLOURS[0], label="achieved")
    at = float((centred <= 0.9).mean()) if len(centred) else np.nan
    axes.plot([0.9], [at], "o", color=COLOURS[0], ms=5.5)
    axes.set(xlabel="probability of the interval", ylabel="share inside", xlim=(0, 1), ylim=(0, 1.02))
    axes.set_title("coverage of held-out workloads")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 0.9]))
        axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.legend(loc="upper left")
    return figure
