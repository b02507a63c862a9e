"""Effective numbers: how many configurations, targets, stacks and campaigns stand behind an interval."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np
import pandas as pd

from bayesperf.configurations import KEYS
from bayesperf.report.document import Basis
from bayesperf.report.evidence import Evidence
from bayesperf.report.words import count

__all__ = ["Bases", "basis_words"]

# What makes a configuration, whenever it was measured.
_SAME = tuple(name for name in KEYS if name not in ("campaign", "stack", "role", "statistic"))


class Bases:
    """Counts what sets of measurements hold, and cites them.

    Parameters
    ----------
    evidence
        Collects the sets.
    """

    def __init__(self, evidence: Evidence):
        self.evidence = evidence
        table = evidence.table
        self._at = {str(name): at for at, name in enumerate(table["measurement_id"])}
        self._codes = {name: _codes(table, [name]) for name in ("target", "stack", "campaign")}

    @functools.cached_property
    def configuration(self) -> np.ndarray:
        """Configuration of each measurement, (row,)."""
        return _codes(self.evidence.table, [name for name in _SAME if name in self.evidence.table])

    def of(self, identifiers: Iterable[str]) -> Basis:
        """Effective numbers of measurements, by their ids; what is not named counts as one."""
        ids = list(map(str, identifiers))
        rows = np.array([self._at[i] for i in ids if i in self._at], dtype=int)
        counts = {name: len(np.unique(codes[rows])) for name, codes in self._codes.items()}
        return Basis(
            measurements=len(ids),
            configurations=len(np.unique(self.configuration[rows])),
            targets=counts["target"],
            stacks=counts["stack"],
            campaigns=counts["campaign"],
            evidence=self.evidence.cite(ids),
        )

    def of_rows(self, rows: pd.DataFrame) -> Basis:
        """Effective numbers of rows of the table."""
        return self.of(rows["measurement_id"])


def _codes(table: pd.DataFrame, names: list[str]) -> np.ndarray:
    if not all(name in table for name in names) or not names:
        return np.zeros(len(table), dtype=int)
    return np.asarray(table.groupby(names, dropna=False, sort=False).ngroup(), dtype=int)


def basis_words(basis: Basis) -> str:
    """Effective numbers as people read them."""
    parts = [count(basis.stacks, "stack"), count(basis.campaigns, "campaign")]
    if basis.targets > 1:
        parts.insert(0, count(basis.targets, "target"))
    return f"{count(basis.measurements, 'row')} of {count(basis.configurations, 'configuration')}; {', '.join(parts)}"
