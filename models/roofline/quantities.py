"""Parameters that a report names, in units that people know, from posterior or prior draws alike."""

from __future__ import annotations

import numpy as np

from bayesperf.model import Draws, Floats, Quantity
from bayesperf.models.roofline.coded import Encoded, Label
from bayesperf.models.roofline.curve import code_curve, log_bandwidth
from bayesperf.models.roofline.hierarchy import members_of

__all__ = ["quantities"]


def quantities(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """See `bayesperf.model.PerformanceModel.quantities`."""
    found = [
        *_rates(encoded, draws),
        *_bandwidths(encoded, draws),
        *_overheads(encoded, draws),
        *_noise(encoded, draws),
    ]
    everything = np.arange(len(encoded.log_time))
    sharpness = np.asarray(draws["sharpness"], dtype=float).reshape(-1)
    found.append(Quantity("sharpness", "", "roofline sharpness q", "1", 1.0 + np.exp(sharpness), everything))
    if "campaign_spread" in draws:
        spread = np.asarray(draws["campaign_spread"], dtype=float).reshape(-1)
        found.append(Quantity("campaign_spread", "", "spread between campaigns", "1", spread, everything))
    return found


def _cells(encoded: Encoded, level: str) -> list[tuple[int, Label]]:
    """Cells whose own data determine them; the others say nothing that their level does not."""
    informed = encoded.informed[level]
    return [(code, label) for code, label in enumerate(encoded.labels.of(level)) if informed[code]]


def _rates(encoded: Encoded, draws: Draws) -> list[Quantity]:
    return [
        Quantity(
            "compute_rate",
            target,
            f"{op} {dtype}",
            "FLOP/s",
            np.exp(draws["rate"][:, code]),
            np.flatnonzero(encoded.codes.rate == code),
        )
        for code, (target, op, dtype) in _cells(encoded, "rate")
    ]


def _bandwidths(encoded: Encoded, draws: Draws) -> list[Quantity]:
    """Bandwidth of each target at its knots, averaged (in log) over the operations that determine it."""
    found = []
    members, curves = members_of(encoded.labels), encoded.sheets.curves
    for target, (name,) in enumerate(encoded.labels.of("target")):
        cells = np.flatnonzero((members.memory_target == target) & encoded.shows_bandwidth)
        if not len(cells):
            continue
        anchor = draws["memory"][:, cells].mean(axis=1)
        knots = curves.low[(curves.target == target) & (curves.low <= curves.anchor[target] + 1e-9)][1:]
        for size in knots:
            codes = code_curve(curves, np.array([target]), np.array([size]))
            log_rate: Floats = log_bandwidth(np, anchor[:, None], draws["drop"], draws["warp"], codes)[:, 0]
            rows = np.isin(encoded.codes.memory, cells) & (np.abs(encoded.codes.log_working_set - size) < 0.7)
            label = f"{_bytes(float(np.exp(size)))} working set"
            found.append(Quantity("bandwidth", name, label, "B/s", np.exp(log_rate), np.flatnonzero(rows)))
    return found


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.3g} {unit}"
        size /= 1024
    raise AssertionError


def _overheads(encoded: Encoded, draws: Draws) -> list[Quantity]:
    return [
        Quantity(
            "overhead",
            target,
            f"{op}, {kind}",
            "s",
            np.exp(draws["overhead"][:, code]),
            np.flatnonzero(encoded.codes.overhead == code),
        )
        for code, (target, op, kind) in _cells(encoded, "overhead")
    ]


def _noise(encoded: Encoded, draws: Draws) -> list[Quantity]:
    found = []
    labels = encoded.labels.of("noise")
    for name, words in (("misfit", "misfit of"), ("repeat", "repeatability of")):
        if name in draws:
            for code in np.flatnonzero(encoded.informed[name]):
                target, op = labels[code]
                rows = np.flatnonzero(encoded.codes.noise == code)
                found.append(Quantity(name, target, f"{words} {op}", "1", draws[name][:, code], rows))
    return found
