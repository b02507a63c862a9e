"""Ratios with their intervals, one a line: what comparisons and differences are drawn as."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from bayesperf.report.canvas import COLOURS, GREY, INK, MARKERS, new_figure, styled
from bayesperf.report.words import short, shortened

__all__ = ["MOST_LINES", "ratios"]

MOST_LINES = 40
"""Lines of a figure; the tables hold all."""

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100)


@styled
def ratios(lines: Sequence[Mapping[str, Any]], groups: Sequence[str], label: str, band: float = 0.0) -> Figure:
    """Draw medians and intervals of ratios on a logarithmic axis.

    Parameters
    ----------
    lines
        From the top: ``label``, ``ratio``, ``ratio_lower``, ``ratio_upper``, ``group``.
    groups
        Names of the groups, in the order of their colours and markers; a line of no such group is grey.
    label
        Of the axis.
    band
        Relative change that counts as nothing: drawn as a grey band around one.
    """
    lines = lines[:MOST_LINES][::-1]
    # Names of targets may be long: two lines below the figure hold what one beside its axes would not.
    written = textwrap.fill(short(label, 120), 64, break_on_hyphens=False)
    names = {group: shortened(group, 60) for group in groups}
    columns = 3 if max(map(len, names.values()), default=0) <= 20 else 1
    figure, axes = new_figure(height=1.1 + 0.21 * len(lines) + 0.15 * written.count("\n") + 0.2 * (columns == 1))
    low, middle, high = (np.array([line[k] for line in lines]) for k in ("ratio_lower", "ratio", "ratio_upper"))
    y = np.arange(len(lines))
    if band > 0:
        axes.axvspan(1 / (1 + band), 1 + band, color="#eef0f3", linewidth=0)
    axes.axvline(1.0, color=INK, linewidth=0.8)
    for at, group in [*enumerate(groups), (-1, None)]:
        mine = np.array(
            [line["group"] == group if group else line["group"] not in groups for line in lines], dtype=bool
        )
        colour = COLOURS[at % len(COLOURS)] if group else GREY
        marker = MARKERS[at % len(MARKERS)] if group else "o"
        axes.hlines(y[mine], low[mine], high[mine], color=colour, linewidth=1.8)
        axes.plot(
            middle[mine],
            y[mine],
            marker,
            color=colour,
            ms=4.5,
            label=names[group] if group and mine.any() else None,
        )
    axes.set(xscale="log", ylim=(-0.8, len(lines) - 0.2))
    figure.supxlabel(written, fontsize="medium")
    axes.set_yticks(y, [shortened(str(line["label"]), 46) for line in lines], fontsize=7.0)
    axes.grid(visible=False, axis="y")
    _ticks(axes, float(low.min()), float(high.max()))
    if len(axes.get_legend_handles_labels()[0]):
        figure.legend(loc="outside upper center", ncols=columns)
    return figure


def _ticks(axes: Any, low: float, high: float) -> None:
    """Ticks over what is drawn, always at the line of no difference, none so near another that their texts touch."""
    low, high = min(low, 1.0), max(high, 1.0)
    apart = 0.13 * np.log(max(high / low, 1.01))
    chosen = [1.0]
    for step in sorted(STEPS, key=lambda step: abs(np.log(step))):
        if low / 1.02 <= step <= high * 1.02 and all(abs(np.log(step / tick)) >= apart for tick in chosen):
            chosen.append(float(step))
    axes.xaxis.set_major_locator(FixedLocator(sorted(chosen)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
