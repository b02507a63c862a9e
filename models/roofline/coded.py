"""What a coded table is: labels of every level, codes and features of every row, spec sheets, what was observed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bayesperf.model import Floats
from bayesperf.models.common import labels as common
from bayesperf.models.common.labels import Campaigned, Label
from bayesperf.models.common.observed import Scatter
from bayesperf.models.roofline.curve import Curves
from bayesperf.models.roofline.discrepancy import Basis

__all__ = ["Codes", "Codes1", "Contested", "Encoded", "Label", "Labels", "Observations", "Scatter", "Sheets"]

Codes1 = npt.NDArray[np.intp]

LEVELS = (
    "target",
    "op",
    "unit",
    "rate",
    "memory",
    "launch",
    "overhead",
    "noise",
    "campaign",
    "shaped",
    "shape",
    "shape_cell",
)
"""Hierarchy levels. unit: (target, unit); rate: (target, op, dtype); memory, noise: (target, op);
launch: (target, kind); overhead: (target, op, kind); campaign: (target, campaign, stack); shaped: (op,) and shape_cell:
(target, op) of the operations that have a discrepancy, shape: (op,) where targets share a part of it."""


class Labels(common.Labels):
    """Labels of the roofline's levels."""

    levels = LEVELS


@dataclass(frozen=True)
class Codes:
    """Coded rows: a code per level (-1 where a term is absent) and features, (row,) each.

    `log_flops` holds effective FLOP, quantisation included; `phi`, (row, rank), and `lacking` are the discrepancy's
    features and what variance they lack.
    """

    target: Codes1
    op: Codes1
    rate: Codes1
    memory: Codes1
    overhead: Codes1
    noise: Codes1
    campaign: Codes1
    log_flops: Floats
    log_bytes: Floats
    log_working_set: Floats
    shape: Codes1
    shape_cell: Codes1
    phi: Floats
    lacking: Floats


@dataclass(frozen=True)
class Sheets:
    """What spec sheets say, by unit (unit,) and by target (target,); NaN where they say nothing."""

    log_peak: Floats
    offset: Floats
    is_matrix: npt.NDArray[np.bool_]
    is_function: npt.NDArray[np.bool_]
    unit_target: Codes1
    scale: Floats
    scale_spread: Floats
    log_bandwidth: Floats
    curves: Curves


@dataclass(frozen=True)
class Observations:
    """What was observed, one entry per configuration, (observation,) unless said.

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
    """

    codes: Codes
    scatter: Scatter
    log_time: Floats
    within: Floats
    repeat_weight: Floats
    ids: list[list[str]]


@dataclass(frozen=True)
class Contested:
    """Bandwidths and compute rates of which only the slower shows, as rows of both do the same FLOP on a byte.

    Parameters
    ----------
    rate
        Code of the rate that each bandwidth contests with, (memory cell,); -1 where it contests with none.
    intensity
        Log of FLOP on a byte of its rows, (memory cell,).
    """

    rate: Codes1 = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    intensity: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Encoded(Observations, Campaigned):
    """A coded table, ready to be built or predicted from.

    `shows_bandwidth` (memory cell,) marks the cells in some row of which memory takes much of the time.
    """

    labels: Labels
    sheets: Sheets
    shows_bandwidth: npt.NDArray[np.bool_]
    informed: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    leaning: dict[str, Floats] = field(default_factory=dict)
    contested: Contested = field(default_factory=Contested)
    kinds: dict[str, str] = field(default_factory=dict)
    units: dict[str, float] = field(default_factory=dict)
    bases: dict[str, Basis] = field(default_factory=dict)
    devices: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
