"""Figures of held-out workloads: predicted beside measured, PIT and coverage by regime."""

from __future__ import annotations

import numpy as np
import pandas as pd
from arviz_stats.ecdf_utils import ecdf_pit
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from bayesperf.configurations import records
from bayesperf.report.canvas import COLOURS, INK, MARKERS, label_axis, new_figure, styled
from bayesperf.report.words import configuration, short, shortened

__all__ = ["coverage", "heldout", "is_listed", "pit"]

MOST_ROWS = 36
"""Held-out configurations drawn one by one; more are drawn as a cloud."""

MOST_REGIMES = 5
"""Regimes drawn one by one, beside all together; the largest."""

LEVELS = (0.5, 0.8, 0.9)
"""Probabilities of the central intervals whose coverage is drawn."""

SIMULATIONS = 400
"""Uniform samples behind a simultaneous band: its level is then off by 1.5 % at most."""


# Predicted and measured.


@styled
def heldout(rows: pd.DataFrame) -> Figure:
    """Measured against predicted time of every held-out configuration, with its 90 % predictive interval.

    Parameters
    ----------
    rows
        One row per configuration, with ``measured_s``, ``median_s``, ``lower_s``, ``upper_s`` and ``inside``.
    """
    return _listed(rows) if is_listed(rows) else _cloud(rows)


def is_listed(rows: pd.DataFrame) -> bool:
    """Whether `heldout` draws one line for each of these, else all of them as a cloud."""
    return len(rows) <= MOST_ROWS


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
    labels = [shortened(configuration(row), 44) for row in records(rows)]
    axes.set_yticks(y, labels, fontsize=7.0)
    axes.grid(visible=False, axis="y")
    _ratio_ticks(axes, float(min(low.min(), ratio.min())), float(max(high.max(), ratio.max())))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0 + 0.45 / figure.get_figheight()), ncols=2)
    return figure


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


# Calibration by regime.


def _regimes(rows: pd.DataFrame) -> list[tuple[str, np.ndarray]]:
    """PIT values of the regimes of most rows, and of all together first where there are several."""
    known = rows[np.isfinite(rows["pit"].to_numpy(float))]
    by = {str(name): part["pit"].to_numpy(float) for name, part in known.groupby("regime", sort=False)}
    largest = sorted(by.items(), key=lambda pair: -len(pair[1]))[:MOST_REGIMES]
    return [("all", known["pit"].to_numpy(float)), *largest] if len(by) > 1 else largest


@styled
def coverage(rows: pd.DataFrame) -> Figure:
    """Share of held-out configurations inside central intervals of three probabilities, by regime.

    Parameters
    ----------
    rows
        One row per configuration, with ``pit`` and ``regime``.
    """
    regimes = _regimes(rows)[::-1]
    figure, axes = new_figure(5.4, 1.3 + 0.42 * len(regimes))
    for at, level in enumerate(LEVELS):
        axes.axvline(level, color=COLOURS[at], linewidth=0.9, linestyle=(0, (1, 2)))
        shares = [float((np.abs(2.0 * values - 1.0) <= level).mean()) for _, values in regimes]
        face = COLOURS[at] if at == len(LEVELS) - 1 else "white"
        label = f"{100 * level:.0f} %"
        axes.plot(shares, range(len(regimes)), MARKERS[at], color=COLOURS[at], ms=6.0, mfc=face, label=label)
    labels = [f"{short(name, 34)} ({len(values)})" for name, values in regimes]
    axes.set_yticks(range(len(regimes)), labels, fontsize=7.5)
    axes.set(xlabel="share inside, %; dotted: as promised", xlim=(-0.03, 1.03), ylim=(-0.7, len(regimes) - 0.3))
    axes.xaxis.set_major_locator(FixedLocator([0, 0.25, *LEVELS]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, 1.0 + 0.45 / figure.get_figheight()), ncols=len(LEVELS))
    return figure


@styled
def pit(rows: pd.DataFrame) -> Figure | None:
    """PIT of held-out configurations by regime: empirical distribution less the uniform one, with ArviZ's band.

    None with fewer than five configurations.

    Parameters
    ----------
    rows
        One row per configuration, with ``pit`` and ``regime``.
    """
    regimes = [(name, values) for name, values in _regimes(rows) if len(values) >= 5]
    if not regimes:
        return None
    columns = min(2, len(regimes))
    lines = -(-len(regimes) // columns)
    figure = Figure(figsize=(5.4, 0.5 + 1.45 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, sharex=True, squeeze=False).ravel()
    for axes, (name, values) in zip(panels, regimes, strict=False):
        _pit_panel(axes, name, values)
    for at, axes in enumerate(panels[len(regimes) :], len(regimes)):
        axes.set_axis_off()
        # Else the panel above would have no numbers.
        panels[at - columns].tick_params(labelbottom=True)
    figure.supxlabel("probability integral transform", fontsize=9.0)
    figure.supylabel("distribution less uniform", fontsize=9.0)
    return figure


def _pit_panel(axes: Axes, name: str, values: np.ndarray) -> None:
    at, found, low, high = ecdf_pit(values, ci_prob=0.95, n_simulations=SIMULATIONS)
    axes.fill_between(at, low - at, high - at, color="#e3e6ea", linewidth=0, step="mid")
    axes.step(at, found - at, where="mid", color=COLOURS[0])
    axes.axhline(0.0, color=INK, linewidth=0.7)
    axes.set_title(f"{short(name, 30)} ({len(values)})", fontsize=7.5)
    axes.tick_params(labelsize=7.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
