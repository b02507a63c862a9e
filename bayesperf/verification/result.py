"""What a verification found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOST_PLACES", "Finding", "Status", "Verification"]

Status = Literal["passed", "failed", "not checked"]

MOST_PLACES = 5
"""Rows and variables that a finding names one by one."""


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Parameters
    ----------
    what
        The question.
    status
        ``passed``, ``failed``, or ``not checked`` with its reason in `detail`.
    detail
        What was found, in words.
    places
        The rows, columns, variables or parameters that failed, worst first; all of them.
    """

    what: str
    status: Status
    detail: str
    places: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Places as people read them: the first few, and how many more there are."""
        more = len(self.places) - MOST_PLACES
        return [*self.places[:MOST_PLACES], *([f"and {more} more"] if more > 0 else [])]


def judged(what: str, places: Sequence[str], good: str, bad: str) -> Finding:
    """Make a finding: failed with `bad` where there are places, else passed with `good`."""
    return Finding(what, "failed" if places else "passed", bad if places else good, tuple(places))


@dataclass(frozen=True)
class Verification:
    """What a verification found.

    Parameters
    ----------
    findings
        In the order they were looked for.
    numbers
        Every published quantile beside that of the second fit: parameter, target, label, unit, level, published, refit
        (in `unit`), z (the difference in Monte-Carlo standard errors), same. None without a second fit.
    criterion
        The rule by which `numbers` were judged, in words.
    """

    findings: tuple[Finding, ...]
    numbers: pd.DataFrame | None = None
    criterion: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing that could be checked failed."""
        return not any(finding.status == "failed" for finding in self.findings)
