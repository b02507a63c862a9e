"""The page of a comparison of targets: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.configurations import records
from bayesperf.model import LIMITS
from bayesperf.report.basis import Bases, basis_words
from bayesperf.report.canvas import to_uri
from bayesperf.report.content import stated
from bayesperf.report.evidence import Evidence
from bayesperf.report.intervals import MOST_LINES, ratios
from bayesperf.report.page import render
from bayesperf.report.words import configuration, count, number, percent, quantity, shortened

if TYPE_CHECKING:
    from bayesperf.prediction.compare import Comparison

__all__ = ["comparison_page"]

INTERVAL = 0.9


def comparison_page(comparison: Comparison) -> str:
    """Render a comparison: who is faster over all, by class of workloads, on each, how sure that is, and why."""
    pairs, total, classes = comparison.pairs(INTERVAL), comparison.total(INTERVAL), comparison.classes(INTERVAL)
    evidence = Evidence(_measured(comparison))
    by_class = [_line(row, row["class"]) | _share(row) for row in records(classes)]
    reasons = _reasons(comparison, Bases(evidence))
    several_classes = len({row["what"] for row in by_class}) > 1
    return render(
        "comparison.html",
        title=" and ".join(comparison.targets),
        confidence=percent(comparison.confidence),
        workloads=len(comparison.workloads),
        totals=[_line(row, "all workloads together") for row in records(total)],
        targets=_targets(comparison),
        classes=by_class,
        class_figures=_class_figures(comparison, classes) if several_classes else [],
        reasons=reasons,
        pairs=[_line(row, configuration(row)) for row in records(pairs)],
        counted="count" in comparison.workloads,
        figures=[_figure(comparison, a, b, pairs, total) for a, b in zip(total["a"], total["b"], strict=True)],
        converged=comparison.profile.converged,
        notes=stated(comparison.notes),
        evidence=evidence,
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


def _line(row: Mapping[str, Any], what: str) -> dict[str, Any]:
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


def _share(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"count": count(int(row["workloads"]), "workload"), "supported": percent(row["supported"])}


# Evidence.


def _measured(comparison: Comparison) -> pd.DataFrame:
    """Fitted rows of the operations and the targets compared."""
    table = comparison.profile.table
    mine = table["target"].isin(comparison.targets) & table["op"].isin(set(comparison.workloads["op"]))
    rows = table[mine].reset_index(drop=True)
    rows.attrs = table.attrs
    return rows


def _reasons(comparison: Comparison, bases: Bases) -> list[dict[str, Any]]:
    """What bounds each class on each target, and which measurements say so."""
    names, table = np.array(comparison.class_of), bases.evidence.table
    ops = comparison.workloads["op"].to_numpy()
    found = []
    for target in comparison.targets:
        limits = comparison.limits.sel(target=target).to_numpy()
        for name in dict.fromkeys(names):
            mine = names == name
            mean = limits[mine].mean(axis=0)
            rows = table[(table["target"] == target) & table["op"].isin(set(ops[mine]))]
            at = int(mean.argmax())
            found.append(
                {
                    "target": target,
                    "what": name,
                    "limit": f"{LIMITS[at]} ({percent(float(mean[at]))})",
                    "basis": basis_words(bases.of_rows(rows)) if len(rows) else "",
                    "cite": bases.evidence.cite(rows["measurement_id"]),
                }
            )
    order = {name: at for at, name in enumerate(dict.fromkeys(names))}
    return sorted(found, key=lambda entry: order[entry["what"]])


# Figures.


def _figure(comparison: Comparison, a: str, b: str, pairs: pd.DataFrame, total: pd.DataFrame) -> dict[str, Any]:
    chosen = pairs[(pairs["a"] == a) & (pairs["b"] == b)]
    over_all = total[(total["a"] == a) & (total["b"] == b)]
    lines = [
        *(("all together", row) for row in records(over_all)),
        *((configuration(row), row) for row in records(chosen)),
    ]
    return _drawn(a, b, lines)


def _class_figures(comparison: Comparison, classes: pd.DataFrame) -> list[dict[str, Any]]:
    found = []
    for (a, b), rows in classes.groupby(["a", "b"], sort=False):
        found.append(_drawn(str(a), str(b), [(row["class"], row) for row in records(rows)]))
    return found


def _drawn(a: str, b: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    names = {a: f"{a} faster", b: f"{b} faster"}
    lines = [{**row, "label": label, "group": names.get(row["faster"], "ambiguous")} for label, row in rows]
    axis = f"time on {shortened(a)} / time on {shortened(b)}, 90 % interval"
    drawn = ratios(lines, [names[a], names[b]], axis)
    return {"a": a, "b": b, "image": to_uri(drawn), "left_out": max(0, len(lines) - MOST_LINES)}
