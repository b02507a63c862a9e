"""The quality gate: what is physically impossible, copied, empty or in the wrong unit.

Every import passes it; `bayesperf.datasets` and users may pass any table. Findings are reported per group of rows, with
counts and examples. Rows are only left out of fits by a rule (`bayesperf.quality.rules`), which marks them in ``flags``
with its own label and ``excluded``; nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayesperf.dataset import Rule, apply_rules
from bayesperf.quality.copies import copied_tables, identical_columns
from bayesperf.quality.findings import Finding, QualityReport
from bayesperf.quality.fleet import unlike_its_device
from bayesperf.quality.rules import repeated_keys, rules_for
from bayesperf.quality.scale import against_ceilings, against_each_other, against_neighbours
from bayesperf.schema import has_flag, is_excluded, with_flags
from bayesperf.specs import above_ceiling, spec_of

__all__ = ["Finding", "QualityReport", "gate", "inspect"]

ORDER = {"error": 0, "warning": 1, "info": 2}
EXAMPLES = 3


def gate(
    table: pd.DataFrame, targets: pd.DataFrame | None = None, *, rules: Sequence[Rule] | None = None
) -> tuple[pd.DataFrame, QualityReport]:
    """Apply the exclusion rules, and report what they and the checks found.

    Parameters
    ----------
    table
        A valid measurement table.
    targets
        Spec sheets, indexed by device; without them no ceiling is checked.
    rules
        In place of the gate's own; an empty sequence excludes nothing.

    Returns
    -------
    table
        The same rows, with flags.
    report
        What was found.
    """
    attrs, table = table.attrs, _bare(table)
    marked, applied = apply_rules(table, rules_for(targets) if rules is None else rules)
    found, suspects = _inspected(marked, targets, {record["flag"] for record in applied})
    if suspects.any():
        marked = with_flags(marked, suspects, "scale-jump")
    report = QualityReport(found, applied, len(marked), int(is_excluded(marked).sum()), _unchecked(table, targets))
    marked.attrs = attrs
    return marked, report


def _bare(table: pd.DataFrame) -> pd.DataFrame:
    """The table without attributes, which pandas copies deeply into every row it hands out."""
    bare = table.reset_index(drop=True)
    bare.attrs = {}
    return bare


def inspect(
    table: pd.DataFrame, targets: pd.DataFrame | None = None, *, excluding: set[str] | None = None
) -> list[Finding]:
    """Find what is wrong or suspicious in a table, without changing it; worst first.

    Parameters
    ----------
    excluding
        Labels of rules that leave rows out of fits; only said of the findings.
    """
    return _inspected(_bare(table), targets, excluding or set())[0]


def _inspected(
    table: pd.DataFrame, targets: pd.DataFrame | None, excluding: set[str]
) -> tuple[list[Finding], np.ndarray]:
    found: list[Finding] = []
    own = {rule.flag: rule for rule in rules_for(targets)}
    for flag, rule in own.items():
        mask = has_flag(table, flag) if flag in excluding else rule.test(table)
        reasons = above_ceiling(table, targets) if flag == "above-ceiling" and mask.any() else None
        found += _by_group(table, mask, flag, rule.why, reasons, excluded=flag in excluding)
    repeated = repeated_keys(table)
    found += _by_group(
        table, repeated, "repeated-key", "rows with the same key and other values", None, severity="info"
    )
    found += copied_tables(table) + identical_columns(table)
    jumps, suspects = against_neighbours(table)
    found += against_ceilings(table, targets) + against_each_other(table) + jumps + unlike_its_device(table)
    return sorted(found, key=lambda finding: ORDER[finding.severity]), suspects


def _by_group(
    table: pd.DataFrame,
    mask: np.ndarray,
    check: str,
    why: str,
    reasons: list[str | None] | None,
    *,
    excluded: bool = False,
    severity: str = "error",
) -> list[Finding]:
    findings: list[Finding] = []
    if not mask.any():
        return findings
    totals = table.groupby(["target", "op"]).size().to_dict()
    if check in ("work-unknown", "zero-size", "duplicate-row"):
        severity = "warning"
    for (target, op), rows in table[mask].groupby(["target", "op"], sort=True):
        message = why
        if reasons is not None:
            message = f"{why}{_hint(table, rows)}"
            examples = tuple(f"row {at}: {reasons[at]}" for at in rows.index[:EXAMPLES])
        else:
            examples = tuple(_shown(rows.iloc[at], rows.index[at]) for at in range(min(EXAMPLES, len(rows))))
        findings.append(
            Finding(
                check=check,
                severity="error" if severity == "error" else "warning" if severity == "warning" else "info",
                group={"target": str(target), "op": str(op)},
                rows=len(rows),
                total=int(totals[target, op]),
                message=message,
                examples=examples,
                excluded=excluded,
            )
        )
    return findings


def _shown(row: pd.Series, at: int) -> str:
    names = [
        n for n in ("time_s", "bytes", "flops", "message_bytes", "m", "n", "k") if n in row.index and pd.notna(row[n])
    ]
    return f"row {at}: " + ", ".join(f"{name} {row[name]:.6g}" for name in names)


def _hint(table: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Say what unit mistake would explain it, if one would."""
    same = table[(table["target"] == rows["target"].iloc[0]) & (table["op"] == rows["op"].iloc[0])]
    share = len(rows) / len(same)
    return "; nearly all of its rows: is time_s in seconds?" if share > 0.9 and len(same) >= 5 else ""


def _unchecked(table: pd.DataFrame, targets: pd.DataFrame | None) -> list[str]:
    device = table["target"].where(table["device"].isna(), table["device"]) if "device" in table else table["target"]
    return sorted({str(name) for name in device.unique() if not spec_of(targets, str(name))})
