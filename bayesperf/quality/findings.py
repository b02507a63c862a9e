"""What the quality gate found, and how it is said."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["Finding", "QualityReport", "Severity"]

GROUPS_SHOWN = 3
"""Groups of one check that people are shown; programs get all."""

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or suspicious, in one group of rows.

    Parameters
    ----------
    check
        Stable slug; where rows are marked, the flag they carry.
    severity
        ``error``: the numbers cannot be right; ``warning``: they may not be; ``info``: worth knowing.
    group
        Which rows: {column: value}.
    rows, total
        How many rows are concerned, and how many the group has.
    message
        What was seen, and what to do.
    examples
        The first few, each in a line.
    excluded
        Whether a rule leaves the rows out of fits.
    """

    check: str
    severity: Severity
    group: dict[str, str]
    rows: int
    total: int
    message: str
    examples: tuple[str, ...] = ()
    excluded: bool = False

    def text(self) -> str:
        """One paragraph."""
        where = ", ".join(f"{k} {v}" for k, v in self.group.items()) or "the table"
        count = f"{self.rows} of {self.total} rows" if self.rows else f"{self.total} rows"
        kept = "; left out of fits" if self.excluded else ""
        lines = [f"{self.severity}: {self.check}: {where}: {count}{kept}: {self.message}"]
        return "\n".join([*lines, *(f"    {example}" for example in self.examples)])


@dataclass(slots=True)
class QualityReport:
    """All findings on one table, and the rules that were applied.

    Parameters
    ----------
    findings
        By severity, worst first.
    rules
        Exclusion rules that found rows: ``flag``, ``why``, ``rows``.
    rows, excluded
        Rows of the table, and how many of them a rule leaves out of fits.
    unchecked
        Devices without a spec sheet, whose ceilings could not be checked.
    """

    findings: list[Finding] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=list)
    rows: int = 0
    excluded: int = 0
    unchecked: list[str] = field(default_factory=list)

    def text(self) -> str:
        """All findings, the rules, and what was not checked, for people."""
        lines = []
        for check in dict.fromkeys(finding.check for finding in self.findings):
            same = [finding for finding in self.findings if finding.check == check]
            lines += [finding.text() for finding in same[:GROUPS_SHOWN]]
            if len(same) > GROUPS_SHOWN:
                rows = sum(finding.rows for finding in same[GROUPS_SHOWN:])
                lines.append(f"    ... and {rows} rows of {len(same) - GROUPS_SHOWN} more groups")
        lines += [f"rule: {r['flag']}: {r['rows']} rows left out of fits: {r['why']}" for r in self.rules]
        if self.unchecked:
            listing = ", ".join(self.unchecked[:5]) + (", ..." if len(self.unchecked) > 5 else "")
            lines.append(f"no spec sheet for {listing}: physical ceilings were not checked")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """JSON-able, for provenance and ``--json``."""
        return {
            "rows": self.rows,
            "excluded": self.excluded,
            "rules": self.rules,
            "unchecked": self.unchecked,
            "findings": [asdict(finding) | {"examples": list(finding.examples)} for finding in self.findings],
        }
