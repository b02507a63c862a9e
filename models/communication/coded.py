"""What a coded table is: labels of every level, codes of every row, what was observed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bayesperf.model import Floats

__all__ = ["Codes", "Encoded", "Index", "Label", "Labels", "Scatter"]

Index = npt.NDArray[np.intp]
Label = tuple[str, ...]

LEVELS = ("target", "op", "pair", "cell", "campaign")
"""Hierarchy levels. pair: (target, op, dtype), cell: (target, op, dtype, ranks), the dtype of collectives that reduce,
else ""; campaign: (target, campaign, stack)."""


class Labels:
    """Ordered labels of every level; codes are positions. Extending a copy leaves the old codes valid."""

    def __init__(self, base: Labels | None = None):
        self._codes: dict[str, dict[Label, int]] = {k: dict(base._codes[k]) if base else {} for k in LEVELS}

    def add(self, level: str, labels: Iterable[Label]) -> Index:
        """Return the code of each label, adding those not seen before."""
        known = self._codes[level]
        return np.fromiter((known.setdefault(label, len(known)) for label in labels), dtype=np.intp)

    def of(self, level: str) -> list[Label]:
        """Return the labels of a level in code order."""
        return list(self._codes[level])

    def parents(self, child: str, parent: str, key: slice) -> Index:
        """Code, for each label of `child`, of the `parent` label made of its parts `key`."""
        known = self._codes[parent]
        return np.fromiter((known[label[key]] for label in self.of(child)), dtype=np.intp)


@dataclass(frozen=True)
class Codes:
    """Coded rows: a code per level and the log of the message's bytes, (row,) each."""

    target: Index
    pair: Index
    cell: Index
    campaign: Index
    log_message: Floats


@dataclass(frozen=True)
class Scatter:
    """Scatter of repeats: one entry per observation with at least two.

    Parameters
    ----------
    pair
        Code of the pair, (entry,).
    dof
        Repeats less one, (entry,).
    square
        Sum of squared deviations of log time from their mean, (entry,).
    within
        Mean squared relative standard error inside a process, (entry,).
    """

    pair: Index
    dof: Floats
    square: Floats
    within: Floats


@dataclass(frozen=True)
class Encoded:
    """A coded table, one entry per configuration, (observation,) unless said.

    Parameters
    ----------
    codes, scatter
        Coded configurations, and what their repeats tell.
    log_time
        Median over repeats, log seconds.
    within, repeat_weight
        Variances of that median: from within processes, and as a share of that between two repeats.
    ids
        Measurements behind each.
    labels
        Of every level.
    anchor
        Log number of ranks at which the time of a byte of each target is stated, (target,).
    informed
        Which members their own rows determine, by name of the parameter.
    left_out
        Rows that are not this model's business, by reason.
    """

    codes: Codes
    scatter: Scatter
    log_time: Floats
    within: Floats
    repeat_weight: Floats
    ids: list[list[str]]
    labels: Labels
    anchor: Floats
    informed: dict[str, npt.NDArray[np.bool_]]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def campaigns_of(self) -> dict[str, list[tuple[str, str]]]:
        """Pairs (campaign, stack) seen of each target."""
        found: dict[str, list[tuple[str, str]]] = {}
        for target, campaign, stack in self.labels.of("campaign"):
            found.setdefault(target, []).append((campaign, stack))
        return found

    @property
    def learns_campaigns(self) -> bool:
        """Whether any target was measured in more than one campaign, so that their spread can be learned."""
        return any(len(seen) > 1 for seen in self.campaigns_of.values())
