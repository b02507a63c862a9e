"""The page of a program that was run: where its time went, and what was predicted of each kernel; one HTML file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayesperf.configurations import records
from bayesperf.report.canvas import to_uri
from bayesperf.report.content import stated
from bayesperf.report.intervals import MOST_LINES, ratios
from bayesperf.report.page import render
from bayesperf.report.words import interval, number, percent, quantity

if TYPE_CHECKING:
    from bayesperf.programs.evidence import Evidence

__all__ = ["explanation_page"]

PARTS = {
    "dispatch": "from the host's call to the first operation of the device",
    "kernels": "a kernel of the program ran",
    "control": "inside of a loop or a branch, but in none of its kernels",
    "idle": "gaps between operations",
    "return": "from the last operation until the host had the result",
    "unattributed": "what the host's clock measured beyond these",
}
"""Parts of a run, and what each is."""

MOST_ROWS = 400
"""Kernels listed; a page stays a document that a browser opens."""


def explanation_page(evidence: Evidence, name: str, *, level: float = 0.9) -> str:
    """Render what a profiler saw of a program, beside its prediction where there is one.

    Parameters
    ----------
    evidence
        From `bayesperf.evidence`.
    name
        What the program is called.
    level
        Probability of the intervals.
    """
    (whole,) = records(evidence.summary(level))
    kernels = evidence.by_kernel(level)
    drawn = _lines(kernels) if evidence.prediction is not None else []
    figure = None
    if drawn:
        label = f"measured / predicted time, {percent(level)} interval"
        figure = to_uri(ratios(drawn, ["as predicted", "slower", "faster"], label))
    return render(
        "explanation.html",
        title=name,
        level=percent(level),
        whole=_whole(whole),
        parts=[_part(whole, part, what) for part, what in PARTS.items()],
        tracing=percent(whole["tracing_overhead"], 1, signed=True),
        untraced=quantity(whole["measured_s"], "s"),
        traced=quantity(whole["traced_s"], "s"),
        figure=figure,
        more=max(0, len(kernels) - MOST_ROWS),
        undrawn=max(0, len(drawn) - MOST_LINES),
        kernels=[_kernel(row) for row in records(kernels.head(MOST_ROWS))],
        notes=stated(evidence.notes),
    )


def _whole(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The prediction of the whole run beside what was measured; None without one."""
    if "predicted_s" not in row:
        return None
    return {
        "predicted": interval(row["predicted_s"], row["lower_s"], row["upper_s"], "s"),
        "ratio": number(row["ratio"]),
        "verdict": row["verdict"],
        "chip": _chip(row["verdict"]),
        "supported": "yes" if row["supported"] else "no",
    }


def _part(row: Mapping[str, Any], part: str, what: str) -> dict[str, str]:
    seconds = float(row[f"{part}_s"])
    share = max(seconds / float(row["traced_s"]), 0.0)
    return {"name": part, "what": what, "time": quantity(seconds, "s"), "share": percent(share, 1)}


def _kernel(row: Mapping[str, Any]) -> dict[str, Any]:
    predicted = _known(row.get("predicted_s"))
    return {
        "name": row["instruction"],
        "op": row["op"],
        "source": row["source"] if isinstance(row.get("source"), str) else "",
        "count": number(row["count"]) if _known(row["count"]) else "unknown",
        "measured": quantity(row["measured_s"], "s") if _known(row["measured_s"]) else "not seen",
        "share": percent(row["share"], 1),
        "predicted": interval(row["predicted_s"], row["lower_s"], row["upper_s"], "s") if predicted else "",
        "ratio": number(row["ratio"]) if predicted and _known(row["ratio"]) else "",
        "verdict": row["verdict"] if predicted else "",
        "chip": _chip(row["verdict"]) if predicted else "",
        "held_back": row["held_back"] if predicted and isinstance(row["held_back"], str) else "",
    }


def _lines(kernels: pd.DataFrame) -> list[dict[str, Any]]:
    """Lines of the figure, longest kernel first; those that were seen and predicted."""
    seen = kernels[(kernels["measured_s"] > 0) & (kernels["predicted_s"] > 0)]
    return [
        {
            "label": f"{row['instruction']} ({row['op']})",
            "ratio": row["ratio"],
            "ratio_lower": row["measured_s"] / row["upper_s"],
            "ratio_upper": row["measured_s"] / row["lower_s"],
            "group": row["verdict"],
        }
        for row in records(seen)
    ]


def _chip(verdict: Any) -> str:
    return {"as predicted": "yes", "not seen": "prior"}.get(str(verdict), "no")


def _known(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
