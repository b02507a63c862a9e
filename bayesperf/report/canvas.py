"""Figures as text: one style for all of them, readable in black and white and by the colour-blind."""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bayesperf.report.words import scale_of
from bayesperf.store import atomic_write

__all__ = [
    "COLOURS",
    "GREY",
    "INK",
    "LINES",
    "MARKERS",
    "label_axis",
    "new_figure",
    "style",
    "styled",
    "tick_axis",
    "to_png",
    "to_uri",
]

INK, GREY = "#22272e", "#8a919c"

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito (2008); told apart by the common kinds of colour blindness. Markers differ as well."""

MARKERS = ("o", "s", "^", "D", "v", "P")

LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
"""Line styles: what colours say must be readable without them."""

_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    # Names come from files: a dollar sign must not start a formula.
    "text.parse_math": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.0,
    "ytick.minor.width": 0.0,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.6,
    "svg.fonttype": "path",
    # One file for one input.
    "svg.hashsalt": "bayesperf",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the reports' style, whatever the user's matplotlib is set to."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def new_figure(width: float = 5.4, height: float = 3.7) -> tuple[Figure, Axes]:
    """Make an empty figure; sizes in inches, small enough that its text can be read on a phone."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def styled[**P, R](draw: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that draws, so that it draws in the reports' style."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with style():
            return draw(*args, **kwargs)

    return drawn


def to_uri(figure: Figure) -> str:
    """Return a figure as a ``data:`` address of an SVG image.

    An image, not inline markup: whatever text is in it, an image runs no script and loads nothing.
    """
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()


def to_png(figures: Sequence[Figure], path: str | Path, *, dpi: float = 160) -> None:
    """Write figures side by side as one PNG file, atomically."""
    from PIL import Image

    images = []
    for figure in figures:
        buffer = io.BytesIO()
        with style():
            figure.savefig(buffer, format="png", dpi=dpi)
        images.append(Image.open(buffer).convert("RGB"))
    page = Image.new("RGB", (sum(i.width for i in images), max(i.height for i in images)), "white")
    left = 0
    for image in images:
        page.paste(image, (left, 0))
        left += image.width

    def write(temporary: Path) -> None:
        page.save(temporary, format="png", optimize=True)

    atomic_write(path, write)


def tick_axis(axes: Axes, which: str) -> None:
    """Give a logarithmic axis three to seven ticks whatever it spans, less than a decade too; call it last."""
    axis, (low, high) = (axes.xaxis, axes.get_xlim()) if which == "x" else (axes.yaxis, axes.get_ylim())
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)):
        inside = [tick for tick in np.outer(decades, steps).ravel() if low <= tick <= high]
        if len(inside) >= 3:
            break
    else:
        inside = list(ticker.MaxNLocator(4).tick_values(low, high))
    axis.set_major_locator(ticker.FixedLocator(inside[:: -(-len(inside) // 7)]))
    axis.set_minor_locator(ticker.NullLocator())


def label_axis(axes: Axes, which: str, unit: str) -> None:
    """Give a logarithmic axis ticks in human units, such as 100 MB/s, 1 GB/s."""
    axis = axes.xaxis if which == "x" else axes.yaxis

    def text(value: float, _: int) -> str:
        divisor, name = scale_of(value, unit)
        scaled = value / divisor
        written = f"{scaled:,.0f}" if 1e3 <= scaled < 1e7 else f"{scaled:.3g}"
        return f"{written} {name}".strip() if value > 0 else ""

    axis.set_major_formatter(ticker.FuncFormatter(text))
    axis.set_minor_formatter(ticker.NullFormatter())
