"""What a coded table is: labels of every level, codes of every row, what was observed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bayesperf.model import Floats
from bayesperf.models.common import labels as common
from bayesperf.models.common.labels import Campaigned, Index, Label
from bayesperf.models.common.observed import Scatter

__all__ = ["Codes", "Encoded", "Index", "Label", "Labels"]

LEVELS = ("target", "op", "pair", "cell", "campaign")
"""Hierarchy levels. pair: (target, op, dtype), cell: (target, op, dtype, ranks), the dtype of collectives that reduce,
else ""; campaign: (target, campaign, stack)."""


class Labels(common.Labels):
    """Labels of the levels of communication."""

    levels = LEVELS


@dataclass(frozen=True)
class Codes:
    """Coded rows: a code per level and the log of the message's bytes, (row,) each."""

    target: Index
    pair: Index
    cell: Index
    campaign: Index
    log_message: Floats


@dataclass(frozen=True)
class Encoded(Campaigned):
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
