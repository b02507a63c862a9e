"""Whether a workload lies inside what was measured of its target; decided before any outcome is seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.model import Floats

__all__ = ["MARGIN", "Reach", "Support", "reach_of", "support_of", "unseen_operations", "unseen_targets"]

MARGIN = float(np.log(2.0))
"""How far beyond the measured range of a feature still counts as inside: a factor of two."""

FEATURES = ("flops", "bytes", "intensity", "working_set_bytes", "n_devices", "message_bytes")
LABELS = ("corunners", "condition")


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


@dataclass(frozen=True)
class Reach:
    """What was measured of one target: ends of the range of each feature (in logs), and the labels seen."""

    ranges: Mapping[str, tuple[float, float] | None]
    dtypes: frozenset[str]
    labels: Mapping[str, frozenset[str]]
    ops: frozenset[str]


def reach_of(measured: pd.DataFrame) -> dict[str, Reach]:
    """Reach of every target in fitted rows."""
    return {str(target): _reach(rows) for target, rows in measured.groupby("target", sort=False)}


def _reach(rows: pd.DataFrame) -> Reach:
    ranges: dict[str, tuple[float, float] | None] = {}
    for feature in FEATURES:
        seen = _feature(rows, feature)
        seen = seen[np.isfinite(seen)]
        ranges[feature] = (float(seen.min()), float(seen.max())) if len(seen) else None
    # A dtype matters to compute; copies of it are bytes like any other. Rows without any measured none by name.
    dtypes = frozenset(rows.loc[rows["flops"] > 0, "dtype"].dropna()) if "dtype" in rows else frozenset()
    labels = {name: frozenset(rows[name].dropna()) if name in rows else frozenset() for name in LABELS}
    return Reach(ranges, dtypes, labels, frozenset(rows["op"]))


def support_of(measured: pd.DataFrame | Mapping[str, Reach], workloads: pd.DataFrame) -> Support:
    """Compare workloads with the fitted rows of the same target, feature by feature.

    Parameters
    ----------
    measured
        Fitted rows, or what `reach_of` made of them.
    workloads
        Checked workloads that carry a ``target``.
    """
    reaches = reach_of(measured) if isinstance(measured, pd.DataFrame) else measured
    distance = np.zeros(len(workloads))
    outside: list[list[str]] = [[] for _ in range(len(workloads))]
    targets = workloads["target"].to_numpy(dtype=object)
    features = {name: _feature(workloads, name) for name in FEATURES}
    for target in dict.fromkeys(targets):
        rows = np.flatnonzero(targets == target)
        reach = reaches.get(target)
        if reach is None:
            _mark(rows, np.full(len(rows), np.inf), "target", distance, outside)
            continue
        for feature, values in features.items():
            _mark(rows, _beyond(values[rows], reach.ranges[feature]), feature, distance, outside)
        computes = workloads["flops"].to_numpy(float)[rows] > 0
        _mark(rows, _unseen(workloads, "dtype", rows, reach.dtypes, computes), "dtype", distance, outside)
        for name in LABELS:
            _mark(rows, _unseen(workloads, name, rows, reach.labels[name]), name, distance, outside)
    return Support(distance, outside)


def unseen_targets(measured: Mapping[str, Reach], targets: Iterable[str]) -> list[str]:
    """One note for each of `targets` that was never measured."""
    return [
        f"{target} was not measured: predicted from its spec sheet, and from what the measured targets have in common"
        for target in dict.fromkeys(targets)
        if target not in measured
    ]


def unseen_operations(measured: pd.DataFrame | Mapping[str, Reach], workloads: pd.DataFrame) -> list[str]:
    """One note per target that was never measured, or of whose workloads some operations were not.

    An operation is no feature of the support: sizes can be compared, kernels not, and what an unknown kernel may cost
    is in the prediction's width.
    """
    reaches = reach_of(measured) if isinstance(measured, pd.DataFrame) else measured
    wanted: dict[str, set[str]] = {}
    for target, op in zip(workloads["target"], workloads["op"], strict=True):
        wanted.setdefault(target, set()).add(op)
    notes = unseen_targets(reaches, wanted)
    for target, ops in wanted.items():
        known = reaches[target].ops if target in reaches else frozenset()
        unseen = sorted(ops - known)
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


def _beyond(values: Floats, seen: tuple[float, float] | None) -> Floats:
    """Distance of each value beyond the measured range and the margin; 0 inside and where the value is absent."""
    if seen is None:
        return np.where(np.isfinite(values), np.inf, 0.0)
    # Small work is bounded below by overhead, which is measured: only the margin matters there as well.
    gap = np.maximum(seen[0] - values, values - seen[1]) - MARGIN
    return np.where(np.isfinite(values), np.maximum(gap, 0.0), 0.0)


def _unseen(
    table: pd.DataFrame,
    name: str,
    rows: npt.NDArray[np.intp],
    seen: frozenset[str],
    matters: npt.NDArray[np.bool_] | None = None,
) -> Floats:
    """Infinite where a row names a label that the target was never fitted with, and it `matters`, (row,)."""
    if name not in table:
        return np.zeros(len(rows))
    labels = table[name].to_numpy(dtype=object)[rows]
    unseen = np.array([isinstance(label, str) and label not in seen for label in labels], dtype=bool)
    return np.where(unseen if matters is None else unseen & matters, np.inf, 0.0)


def _mark(rows: npt.NDArray[np.intp], gap: Floats, feature: str, distance: Floats, outside: list[list[str]]) -> None:
    for at in np.flatnonzero(gap > 0):
        outside[rows[at]].append(feature)
        distance[rows[at]] = max(distance[rows[at]], gap[at])
