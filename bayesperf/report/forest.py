"""One parameter over targets: medians and intervals, one line a target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from bayesperf.report.canvas import COLOURS, GREY, label_axis, new_figure, styled, tick_axis
from bayesperf.report.document import Parameter
from bayesperf.report.words import short, shortened

__all__ = ["forests"]

MOST_FORESTS = 4
MOST_TARGETS = 30


def forests(entries: Sequence[Parameter]) -> list[tuple[str, Figure, list[str], str]]:
    """Draw the parameters that most targets have, at most one for each kind of parameter.

    Returns
    -------
    list of tuple
        Title, figure, the tags of the evidence, and the unit, for each.
    """
    groups: dict[tuple[str, str, str], list[Parameter]] = {}
    for entry in entries:
        if entry.target and entry.unit != "1":
            groups.setdefault((entry.parameter, entry.label, entry.unit), []).append(entry)
    shared: dict[str, tuple[tuple[str, str, str], list[Parameter]]] = {}
    for key, some in groups.items():
        learned = sum(e.learned for e in some)
        if len(some) > 1 and (key[0] not in shared or learned > sum(e.learned for e in shared[key[0]][1])):
            shared[key[0]] = (key, some)
    found = []
    for (name, label, unit), some in list(shared.values())[:MOST_FORESTS]:
        title = f"{name.replace('_', ' ')}: {label}"
        tags = [e.basis.evidence for e in some if e.basis.evidence]
        found.append((title, _forest(some[:MOST_TARGETS], title, unit), list(dict.fromkeys(tags)), unit))
    return found


@styled
def _forest(some: Sequence[Parameter], title: str, unit: str) -> Figure:
    some = sorted(some, key=lambda e: e.posterior.median)
    figure, axes = new_figure(height=1.1 + 0.24 * len(some))
    y = np.arange(len(some))
    for kind, learned in (("learned", True), ("prior, not learned", False)):
        mine = [at for at, entry in enumerate(some) if entry.learned is learned]
        if not mine:
            continue
        colour, face = (COLOURS[0], COLOURS[0]) if learned else (GREY, "white")
        posterior = [some[at].posterior for at in mine]
        axes.hlines(y[mine], [p.lower for p in posterior], [p.upper for p in posterior], color=colour, linewidth=1.8,
                    linestyle="-" if learned else (0, (2, 1)))  # fmt: skip
        axes.plot([p.median for p in posterior], y[mine], "o" if learned else "s", color=colour, mfc=face, ms=4.8,
                  label=kind)  # fmt: skip
    for at, entry in enumerate(some):
        if entry.attained:
            axes.plot([entry.attained.value], [at], "|", color="#22272e", ms=9.0, mew=1.4,
                      label="spec sheet" if not any(e.attained for e in some[:at]) else None)  # fmt: skip
    axes.set(xscale="log", ylim=(-0.8, len(some) - 0.2))
    axes.set_yticks(y, [shortened(entry.target, 34) for entry in some], fontsize=7.5)
    axes.grid(visible=False, axis="y")
    axes.set_title(short(title, 60))
    label_axis(axes, "x", unit)
    tick_axis(axes, "x")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.45 / figure.get_figheight()), ncols=3)
    return figure
