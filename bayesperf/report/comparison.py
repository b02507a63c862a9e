"""The page of a comparison of targets: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.report.canvas import to_uri
from bayesperf.report.content import stated
from bayesperf.report.intervals import MOST_LINES, ratios
from bayesperf.report.page import render
from bayesperf.report.words import configuration, number, percent, quantity, records

if TYPE_CHECKING:
    from bayesperf.prediction.compare import Comparison

__all__ = ["comparison_page"]

INTERVAL = 0.9


def comparison_page(comparison: Comparison) -> str:
    """Render a comparison: who is faster over all, on each workload, and how sure that is."""
    pairs, total = comparison.pairs(INTERVAL), comparison.total(INTERVAL)
    return render(
        "comparison.html",
        title=" and ".join(comparison.targets),
        confidence=percent(comparison.confidence),
        workloads=len(comparison.workloads),
        totals=[_line(row, "all workloads together") for row in records(total)],
        targets=_targets(comparison),
        pairs=[_line(row, configuration(row)) for row in records(pairs)],
        counted="count" in comparison.workloads,
        figures=[_figure(comparison, a, b, pairs, total) for a, b in zip(total["a"], total["b"], strict=True)],
        notes=stated(comparison.notes),
    )


def _targets(comparison: Comparison) -> list[dict[str, str]]:
    best, totals = comparison.fastest_in_total, comparison.totals
    found = []
    for name in comparison.targets:
        low, middle, high = np.quantile(totals.sel(target=name), [0.05, 0.5, 0.95])
        inside = float(comparison.supported.sel(target=name).mean())
        found.append(
            {
                "name": name,
                "fastest": percent(float(best.sel(target=name))),
                "total": f"{quantity(middle, 's')} [{quantity(low, 's')}, {quantity(high, 's')}]",
                "supported": percent(inside),
            }
        )
    return found


def _line(row: Mapping[str, Any], what: str) -> dict[str, str]:
    sure = row["faster"] != "ambiguous"
    return {
        "what": what,
        "pair": f"{row['a']} : {row['b']}",
        "ratio": f"{number(row['ratio'])} [{number(row['ratio_lower'])}, {number(row['ratio_upper'])}]",
        "p": percent(row["p_a_faster"]),
        "faster": str(row["faster"]),
        "chip": "yes" if sure else "prior",
        "supported": "" if "supported" not in row else "yes" if row["supported"] else "no",
    }


def _figure(comparison: Comparison, a: str, b: str, pairs: pd.DataFrame, total: pd.DataFrame) -> dict[str, Any]:
    chosen = pairs[(pairs["a"] == a) & (pairs["b"] == b)]
    over_all = total[(total["a"] == a) & (total["b"] == b)]
    names = {a: f"{a} faster", b: f"{b} faster"}
    lines = [
        {**row, "label": label, "group": names.get(row["faster"], "ambiguous")}
        for label, row in [
            *(("all together", row) for row in records(over_all)),
            *((configuration(row), row) for row in records(chosen)),
        ]
    ]
    drawn = ratios(lines, [names[a], names[b]], f"time on {a} / time on {b}, 90 % interval")
    return {"a": a, "b": b, "image": to_uri(drawn), "left_out": max(0, len(lines) - MOST_LINES)}
