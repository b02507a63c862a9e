"""The page of a difference between two profiles of one target: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayesperf.configurations import records
from bayesperf.report.canvas import to_uri
from bayesperf.report.content import stated
from bayesperf.report.intervals import MOST_LINES, ratios
from bayesperf.report.page import render
from bayesperf.report.words import number, percent, quantity

if TYPE_CHECKING:
    from bayesperf.prediction.diff import Difference

__all__ = ["difference_page"]

CHIPS = {"higher": "no", "lower": "no", "unchanged": "yes"}


def difference_page(difference: Difference) -> str:
    """Render a difference: what moved, what did not, and what nobody can say yet."""
    rows = records(difference.parameters)
    tally = {
        name: sum(row["verdict"] == name for row in rows) for name in ("higher", "lower", "unchanged", "ambiguous")
    }
    several = len(difference.targets) > 1
    lines = [
        {**row, "label": _name(row, several), "group": row["verdict"]}
        for row in rows
        if row["verdict"] != "not learned"
    ]
    axis = "new / old, 90 % interval, campaigns included"
    drawn = ratios(lines, ["higher", "lower", "unchanged"], axis, difference.change) if lines else None
    return render(
        "difference.html",
        title=", ".join(difference.targets),
        change=percent(difference.change),
        confidence=percent(difference.confidence),
        tally=tally,
        several=several,
        figure=to_uri(drawn) if drawn else None,
        left_out=max(0, len(lines) - MOST_LINES),
        # What the measurements did not teach says nothing, however probable its change: last.
        parameters=[_line(row) for row in sorted(rows, key=lambda row: row["verdict"] == "not learned")],
        only_old=difference.only_old,
        only_new=difference.only_new,
        notes=stated(difference.notes),
    )


def _name(row: Mapping[str, Any], several: bool) -> str:
    return f"{row['label']} ({row['parameter'].replace('_', ' ')})" + (f", {row['target']}" if several else "")


def _line(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "target": str(row["target"]),
        "label": str(row["label"]),
        "kind": str(row["parameter"]).replace("_", " "),
        "old": quantity(row["old"], row["unit"]),
        "new": quantity(row["new"], row["unit"]),
        "ratio": f"{number(row['ratio'])} [{number(row['ratio_lower'])}, {number(row['ratio_upper'])}]",
        "p": percent(row["p_changed"]),
        "campaigns": percent(row["campaign_spread"], 1),
        "verdict": str(row["verdict"]),
        "chip": CHIPS.get(row["verdict"], "prior"),
        "advice": str(row["advice"]),
    }
