"""What a coded table is: the roofline's coding of what ran alone, and the mixes that ran beside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from bayesperf.model import Floats
from bayesperf.models.common.labels import Index
from bayesperf.models.common.observed import Scatter
from bayesperf.models.contention.catalogue import Catalogue
from bayesperf.models.contention.demand import LEAST, Rates
from bayesperf.models.contention.mixes import Places
from bayesperf.models.contention.physics import RESOURCES, Mix
from bayesperf.models.roofline.coded import Encoded as Solo

__all__ = ["Beside", "Encoded", "padded"]


@dataclass(frozen=True)
class Beside:
    """Observed mixes, one entry per configuration, (row,) unless said.

    Parameters
    ----------
    mix
        Coded members, (row, member).
    target, pair, op
        Codes; `op` is (row, member). A pair is one victim at one size beside one mix, whatever the campaign.
    log_time, base
        Log time beside the others, and alone, log seconds.
    within, repeat_weight
        Variance of the log time beside the others that stems from inside processes; variance of it that repeats have,
        as a share of that between two repeats.
    alone
        Which measurement of the victim alone `base` is, a code: mixes that share it share its error.
    alone_known, alone_weight
        Of that measurement, what `within` and `repeat_weight` are of the other; 0 both where the victim was measured
        around its mix, which has no error but its own.
    scatter
        What repeats tell; its cells are rows.
    ids
        Measurements behind each.
    """

    mix: Mix
    target: Index
    pair: Index
    op: Index
    log_time: Floats
    base: Floats
    within: Floats
    repeat_weight: Floats
    alone: Index
    alone_known: Floats
    alone_weight: Floats
    scatter: Scatter
    ids: list[list[str]]


@dataclass(frozen=True)
class Encoded:
    """A coded table, ready to be built or predicted from.

    Parameters
    ----------
    solo
        The roofline's coding of the rows that ran alone.
    beside
        Those that did not.
    targets, ops, pairs
        Labels; of targets and operations those of mixes, and every operation that was measured.
    rates, catalogue, places
        Best rates, kernels measured alone, and where processes run.
    placed
        Targets of which every mix's processors are known.
    paired
        Targets of which most mixes were measured around: noise there is that of slowdowns.
    left_out
        How many rows, by reason.
    notes
        What had to be assumed of aggressors, and what is doubtful about times alone.
    """

    solo: Solo
    beside: Beside
    targets: list[str]
    ops: list[str]
    pairs: list[str]
    rates: Rates
    catalogue: Catalogue
    places: Mapping[str, Places]
    placed: frozenset[str]
    paired: frozenset[str]
    left_out: Mapping[str, int]
    notes: tuple[str, ...]


def padded(mix: Mix, members: int) -> Mix:
    """A mix with room for more members, whose count is 0."""
    lacking = members - mix.count.shape[1]
    fill = {"count": 0.0, "capacity": np.nan, "load": 1.0, "overlap": 1.0, **dict.fromkeys(RESOURCES, LEAST)}
    values = {}
    for field in fields(Mix):
        array = getattr(mix, field.name)
        width = [(0, 0)] + [(0, lacking)] * (array.ndim - 1)
        values[field.name] = np.pad(array, width, constant_values=fill.get(field.name, 0.0))
    return Mix(**values)
