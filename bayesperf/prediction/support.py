"""Whether a workload lies inside what was measured of its target; decided before any outcome is seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.model import Floats

__all__ = ["MARGIN", "Support", "support_of", "unseen_operations"]

MARGIN = float(np.log(2.0))
"""How far beyond the measured range of a feature still counts as inside: a factor of two."""

FEATURES = ("flops", "bytes", "intensity", "working_set_bytes", "n_devices", "message_bytes")


class Support:
    """Support of workloads, one entry each.

    Parameters
    ----------
    distance
        Largest distance outside the measured range of any feature, as a factor's log beyond the margin, (workload,);
        infinite where the target or the dtype was never measured.
    features
        Names of the features that lie outside, (workload,) lists.
    """

    def __init__(self, distance: Floats, features: list[list[str]]):
        self.distance, self.features = distance, features

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Whether every feature is inside, (workload,)."""
        return np.asarray(self.distance <= 0.0)


def support_of(measured: pd.DataFrame, workloads: pd.DataFrame) -> Support:
    """Compare workloads with the fitted rows of the same target, feature by feature.

    Parameters
    ----------
    measured
        Fitted rows.
    workloads
        Checked workloads that carry a ``target``.
    """
    distance = np.zeros(len(workloads))
    outside: list[list[str]] = [[] for _ in range(len(workloads))]
    for target, part in workloads.groupby("target", sort=False):
        rows = part.index.to_numpy()
        known = measured[measured["target"] == target]
        if not len(known):
            _mark(rows, np.full(len(rows), np.inf), "target", distance, outside)
            continue
        for feature in FEATURES:
            values, seen = _feature(part, feature), _feature(known, feature)
            seen = seen[np.isfinite(seen)]
            if np.isfinite(values).any():
                _mark(rows, _beyond(values, seen), feature, distance, outside)
        _mark(rows, _unseen_dtype(part, known), "dtype", distance, outside)
        _mark(rows, _unseen_text(part, known, "corunners"), "corunners", distance, outside)
        _mark(rows, _unseen_text(part, known, "condition"), "condition", distance, outside)
    return Support(distance, outside)


def unseen_operations(measured: pd.DataFrame, workloads: pd.DataFrame) -> list[str]:
    """One note per target of workloads whose operations were never measured on it.

    An operation is no feature of the support: sizes can be compared, kernels not, and what an unknown kernel may cost
    is in the prediction's width.
    """
    notes = []
    for target, part in workloads.groupby("target", sort=False):
        known = set(measured.loc[measured["target"] == target, "op"])
        unseen = sorted(set(part["op"]) - known)
        if known and unseen:
            notes.append(
                f"not measured on {target}: {', '.join(unseen)}; supported says that the sizes were, the interval "
                "includes what an unknown kernel may cost"
            )
    return notes


def _feature(table: pd.DataFrame, name: str) -> Floats:
    """Log of a feature, NaN where it does not apply."""
    flops, moved = table["flops"].to_numpy(float), table["bytes"].to_numpy(float)
    if name == "intensity":
        values = np.where((flops > 0) & (moved > 0), flops / np.where(moved > 0, moved, 1.0), np.nan)
    elif name == "working_set_bytes":
        stated = table[name].to_numpy(float) if name in table else np.full(len(table), np.nan)
        values = np.where(np.isfinite(stated), stated, moved)
    else:
        values = table[name].to_numpy(float) if name in table else np.full(len(table), np.nan)
    return np.log(np.where(values > 0, values, np.nan))


def _beyond(values: Floats, seen: Floats) -> Floats:
    """Distance of each value beyond the measured range and the margin; 0 inside and where the value is absent."""
    if not len(seen):
        return np.where(np.isfinite(values), np.inf, 0.0)
    # Small work is bounded below by overhead, which is measured: only the margin matters there as well.
    gap = np.maximum(seen.min() - values, values - seen.max()) - MARGIN
    return np.where(np.isfinite(values), np.maximum(gap, 0.0), 0.0)


def _unseen_dtype(part: pd.DataFrame, known: pd.DataFrame) -> Floats:
    if "dtype" not in part or "dtype" not in known:
        return np.zeros(len(part))
    # A dtype matters to compute; copies of it are bytes like any other.
    needs = (part["flops"] > 0).to_numpy() & part["dtype"].notna().to_numpy()
    seen = set(known.loc[known["flops"] > 0, "dtype"].dropna())
    return np.where(needs & ~part["dtype"].isin(seen).to_numpy(), np.inf, 0.0)


def _unseen_text(part: pd.DataFrame, known: pd.DataFrame, name: str) -> Floats:
    """Infinite where a circumstance is named in which the target was never fitted, (workload,)."""
    if name not in part:
        return np.zeros(len(part))
    seen = set(known[name].dropna()) if name in known else set()
    named = part[name].notna().to_numpy()
    return np.where(named & ~part[name].isin(seen).to_numpy(), np.inf, 0.0)


def _mark(rows: npt.NDArray[np.intp], gap: Floats, feature: str, distance: Floats, outside: list[list[str]]) -> None:
    for row, beyond in zip(rows, gap, strict=True):
        if beyond > 0:
            outside[row].append(feature)
            distance[row] = max(distance[row], beyond)
