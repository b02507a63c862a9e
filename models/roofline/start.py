"""Where chains begin: at the rates and overheads that the fastest rows show.

From the prior's centre, orders of magnitude from an unknown device, a chain may settle where a copy is bound by compute
and stay there, though memory is by far the likelier limit. Only the sampling depends on it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayesperf.model import Floats
from bayesperf.models.roofline.coded import Encoded
from bayesperf.models.roofline.curve import near_anchor
from bayesperf.models.roofline.hierarchy import (
    Members,
    main_location,
    showing_launches,
    unit_rate_location,
    unit_spread,
)
from bayesperf.models.roofline.priors import PRIORS

__all__ = ["starting_points"]

MARGIN = 0.3
"""Log by which an overhead begins below the shortest time, as that has some work in it."""

CLEAR = 1.0
"""Log by which a rate that no row determines begins above the fastest row, so that it does not bind."""

OFF_CENTRE = 0.1

Index = npt.NDArray[np.intp]


def starting_points(encoded: Encoded, members: Members) -> dict[str, Floats]:
    """Starting values of variables by name, in the coordinates that are sampled; others start at their centres."""
    labels, codes, sheets, informed = encoded.labels, encoded.codes, encoded.sheets, encoded.informed
    start: dict[str, Floats] = {}
    bandwidth = codes.log_bytes - encoded.log_time
    rate = np.where(codes.rate >= 0, codes.log_flops - encoded.log_time, -np.inf)
    near = near_anchor(sheets.curves, codes.target, codes.log_working_set)
    target = np.where(codes.memory >= 0, codes.target, -1)
    main = _best(bandwidth, np.where(near, target, -1), len(labels.of("target")))
    start["main"] = np.where(np.isfinite(main), main, main_location(sheets)[0])
    if labels.of("memory"):
        n = len(labels.of("memory"))
        at_anchor, anywhere = (_best(bandwidth, np.where(rows, codes.memory, -1), n) for rows in (near, near >= 0))
        best = np.where(np.isfinite(at_anchor), at_anchor, anywhere)
        start["memory_raw"] = np.where(informed["memory"] | (encoded.contested.rate >= 0), best, 0.0)
    if labels.of("unit"):
        start |= _rates(encoded, members, rate, start["main"])
    shortest = -_best(-encoded.log_time, codes.overhead, len(labels.of("overhead"))) - MARGIN
    start["overhead_raw"] = np.where(informed["overhead"], shortest, 0.0)
    launch = np.full(len(labels.of("launch")), np.inf)
    np.minimum.at(launch, members.overhead_launch, shortest)
    usual = np.array([PRIORS.launch_overhead[0], PRIORS.chained_overhead[0]])[members.launch_timing]
    shows = showing_launches(members, informed["overhead"])
    start["launch_raw"] = np.where(shows, np.minimum(launch, usual), 0.0)
    # The sampler refuses points at which a derivative is zero, as it is at the centre of what no row concerns.
    rng = np.random.default_rng(0)
    return {name: values + rng.uniform(-OFF_CENTRE, OFF_CENTRE, len(values)) for name, values in start.items()}


def _rates(encoded: Encoded, members: Members, rate: Floats, main: Floats) -> dict[str, Floats]:
    labels, sheets = encoded.labels, encoded.sheets
    cell = _best(rate, encoded.codes.rate, len(labels.of("rate")))
    unit = np.full(len(labels.of("unit")), -np.inf)
    np.maximum.at(unit, members.rate_unit, cell)
    taught = np.zeros(len(unit), dtype=bool)
    taught[members.rate_unit[encoded.informed["rate"]]] = True
    scale = sheets.scale.copy()
    seen = np.full(len(scale), -np.inf)
    np.maximum.at(seen, members.unit_target[taught], (unit - sheets.offset)[taught])
    unknown = np.isfinite(seen) & (sheets.scale_spread >= PRIORS.scale_flops[1])
    scale[unknown] = seen[unknown]
    efficiency = np.array([PRIORS.efficiency_matrix[0], PRIORS.efficiency_vector[0]])
    location = unit_rate_location(np, {"scale": scale, "main": main, "efficiency": efficiency}, members, sheets)
    contested = np.isin(np.arange(len(cell)), encoded.contested.rate)
    # In units of its spread where the prior determines it.
    above = np.maximum(unit + CLEAR - location, 0.0) / unit_spread(sheets, PRIORS.efficiency_spread, np)
    return {
        "scale": scale,
        "unit_rate_raw": np.where(taught, unit, above),
        "rate_raw": np.where(encoded.informed["rate"] & ~contested, cell, 0.0),
    }


def _best(values: Floats, cell: Index, n: int) -> Floats:
    """Largest value of each cell's rows, (n,); -inf where there is none."""
    best = np.full(n, -np.inf)
    np.maximum.at(best, cell[cell >= 0], values[cell >= 0])
    return best
