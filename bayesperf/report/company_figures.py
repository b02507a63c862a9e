"""Figures of workloads beside others and among ranks: the contention matrix, collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from bayesperf.report.canvas import COLOURS, INK, LINES, MARKERS, label_axis, new_figure, styled
from bayesperf.report.document import Collective, Slowdown
from bayesperf.report.words import short, shortened

__all__ = ["collectives", "contention"]

MOST_VICTIMS, MOST_COMPANIONS = 16, 12
"""Rows and columns of a matrix; the table holds all."""

FEWEST = 8
"""Columns that a matrix is at least drawn as wide as: one of few would be blown up beside its neighbours."""

_SHADES = LinearSegmentedColormap.from_list("slowdown", ["#ffffff", "#9aa5b1"])


@styled
def contention(entries: Sequence[Slowdown]) -> Figure | None:
    """Slowdown of each workload beside each company, as measured; in brackets as predicted. None where there is none.

    A cell is the median over its entries: campaigns, and sizes of what ran beside.
    Every cell holds its number, and grey deepens with it: the figure loses nothing in black and white.
    """
    beside = list(dict.fromkeys(entry.beside for entry in entries))
    # One kind of company first, then mixes.
    beside = sorted(beside, key=lambda name: (name.count("+"), name))[:MOST_COMPANIONS]
    victims = list(dict.fromkeys(entry.victim for entry in entries if entry.beside in beside))[:MOST_VICTIMS]
    if not victims:
        return None
    cells: dict[tuple[int, int], list[Slowdown]] = {}
    for entry in entries:
        if entry.victim in victims and entry.beside in beside:
            cells.setdefault((victims.index(entry.victim), beside.index(entry.beside)), []).append(entry)
    grid = np.full((len(victims), len(beside)), np.nan)
    texts: dict[tuple[int, int], str] = {}
    for at, same in cells.items():
        grid[at] = np.median([entry.measured.median for entry in same])
        guesses = [entry.predicted.median for entry in same if entry.predicted]
        texts[at] = f"{grid[at]:.2f}" + (f"\n[{np.median(guesses):.2f}]" if guesses else "")
    predicts = any(entry.predicted for entry in entries)
    figure, axes = new_figure(1.9 + 0.62 * max(len(beside), FEWEST), 1.5 + (0.42 if predicts else 0.3) * len(victims))
    top = max(2.0, float(np.nanmax(grid)))
    axes.pcolormesh(np.log(np.maximum(grid, 1.0)), cmap=_SHADES, vmin=0, vmax=np.log(top), edgecolors="#c9cfd6", lw=0.6)
    for (row, column), text in texts.items():
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=7.5, color=INK)
    axes.set_xticks(np.arange(len(beside)) + 0.5, [short(b, 26) for b in beside], rotation=35, ha="right", fontsize=7.5)
    axes.set_yticks(np.arange(len(victims)) + 0.5, [shortened(v, 38) for v in _telling(victims)], fontsize=7.5)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.set_title("time beside / alone" + (", [predicted]" if predicts else ""))
    return figure


def _telling(labels: Sequence[str]) -> list[str]:
    """Labels less the parts that all of them have, such as one element type: a figure has little room."""
    parts = [label.split(" \u00b7 ") for label in labels]
    common = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    return [" \u00b7 ".join([some[0], *(part for part in some[1:] if part not in common)]) for some in parts]


@styled
def collectives(entries: Sequence[Collective]) -> Figure | None:
    """Bus bandwidth over message size, one line per operation and number of ranks; None with fewer than two sizes."""
    lines: dict[tuple[str, float | None], list[Collective]] = {}
    for entry in entries:
        lines.setdefault((entry.op, entry.n_devices), []).append(entry)
    swept = {key: sorted(some, key=lambda e: e.message_bytes) for key, some in lines.items() if len(some) > 1}
    if not swept:
        return None
    figure, axes = new_figure(5.4, 4.0)
    for at, ((op, n), some) in enumerate(list(swept.items())[: 2 * len(COLOURS)]):
        size, rate = ([getattr(e, name) for e in some] for name in ("message_bytes", "bus_bytes_per_s"))
        axes.plot(
            size, rate, linestyle=LINES[at % len(LINES)], marker=MARKERS[at % len(MARKERS)], ms=3.8,
            color=COLOURS[at % len(COLOURS)], mfc="white" if at >= len(COLOURS) else None,
            label=f"{short(op, 24)}{f', {n:.0f} ranks' if n else ''}",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="message of one rank")
    axes.set_title("bus bandwidth as measured")
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=7))
    axes.xaxis.set_minor_locator(NullLocator())
    label_axis(axes, "x", "B")
    label_axis(axes, "y", "B/s")
    axes.legend(loc="best", fontsize=7.0)
    return figure
