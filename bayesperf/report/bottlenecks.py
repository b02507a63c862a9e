"""What bounds each class of workloads on each target: posterior probabilities over its measured configurations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.model import LIMITS
from bayesperf.report.basis import Bases
from bayesperf.report.document import Bottleneck, Range
from bayesperf.report.words import BINARY, quantity
from bayesperf.schema import SHAPE_COLUMNS

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["bottlenecks", "fitted_rows", "footprints", "ranges_words", "undescribed", "workload_columns"]

MOST_CONFIGURATIONS = 400
"""Configurations of a target that are predicted, evenly spaced over all."""

DRAWS = 400

_WORKLOAD = (
    *("target", "op", "dtype", "flops", "bytes", "working_set_bytes", "parallelism", "message_bytes", "n_devices"),
    *("condition", "corunners", "corunner_shapes", "stack"),
)


def fitted_rows(profile: Profile) -> pd.DataFrame:
    """The fitted rows without their attributes, which pandas would copy with every selection."""
    rows = profile.table.copy(deep=False)
    rows.attrs = {}
    return rows


def undescribed(profile: Profile) -> frozenset[str]:
    """Operations that the model was given and does not describe: none of its observations is of them."""
    known = set(map(str, profile.model.observations(profile.inference.encoded)["op"]))
    return frozenset(set(map(str, profile.table["op"])) - known)


def workload_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """What `Profile.predict` takes of measurements: no times, no circumstances."""
    named = [name for name in (*_WORKLOAD, *SHAPE_COLUMNS) if name in rows]
    return rows[named].reset_index(drop=True)


def bottlenecks(
    profile: Profile, table: pd.DataFrame, bases: Bases, targets: list[str], *, seed: int
) -> list[Bottleneck]:
    """One entry per target and class (operation and element type), in order of the table.

    Fitted and held-out configurations count alike: a class is what was measured of it. Co-runners are left out where
    the model does not predict them.
    """
    unknown = undescribed(profile)
    found = []
    for target in targets:
        rows = table[(table["target"] == target) & ~table["op"].isin(unknown)]
        if "corunners" in rows and not profile.model.predicts_corunners:
            rows = rows[rows["corunners"].isna()]
        if rows.empty:
            continue
        code = bases.configuration[rows.index.to_numpy()]
        first = rows.iloc[np.sort(np.unique(code, return_index=True)[1])]
        if len(first) > MOST_CONFIGURATIONS:
            first = first.iloc[np.linspace(0, len(first) - 1, MOST_CONFIGURATIONS).round().astype(int)]
        predicted = profile.predict(
            workload_columns(first), target, mean=True, draws=DRAWS, seed=seed, allow_unconverged=True
        )
        found += _classes(target, rows, first, predicted.limits.to_numpy(), bases)
    return found


def _classes(
    target: str, rows: pd.DataFrame, first: pd.DataFrame, limits: np.ndarray, bases: Bases
) -> list[Bottleneck]:
    names, of_rows = _class(first), _class(rows)
    entries = []
    for name in dict.fromkeys(names):
        mine = np.array([other == name for other in names])
        mean = limits[mine].mean(axis=0)
        members = rows[np.array([other == name for other in of_rows])]
        entries.append(
            Bottleneck(
                target=target,
                workloads=name,
                limits={limit: float(p) for limit, p in zip(LIMITS, mean, strict=True)},
                most_probable=LIMITS[int(mean.argmax())],
                ranges=_ranges(first[mine], limits[mine].argmax(axis=1)),
                basis=bases.of_rows(members),
            )
        )
    return entries


def _class(rows: pd.DataFrame) -> list[str]:
    dtypes = rows["dtype"] if "dtype" in rows else [None] * len(rows)
    pairs = zip(rows["op"], dtypes, strict=True)
    return [f"{op} {dtype}" if isinstance(dtype, str) else str(op) for op, dtype in pairs]


def _ranges(first: pd.DataFrame, limit: np.ndarray) -> list[Range]:
    """Working sets of each limit that is anywhere the most probable, smallest first."""
    footprint, moved = footprints(first), first["bytes"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        intensity = first["flops"].to_numpy(float) / moved
    found = []
    for at in dict.fromkeys(limit[np.argsort(footprint, kind="stable")].tolist()):
        mine = limit == at
        sizes, shares = footprint[mine], intensity[mine & (moved > 0)]
        found.append(
            Range(
                limit=LIMITS[at],
                from_bytes=float(sizes.min()),
                to_bytes=float(sizes.max()),
                from_intensity=float(shares.min()) if len(shares) else None,
                to_intensity=float(shares.max()) if len(shares) else None,
                configurations=len(sizes),
            )
        )
    return found


def ranges_words(ranges: Sequence[Range]) -> list[str]:
    """Say where each limit holds: by working set or by arithmetic intensity, whichever tells the limits apart."""
    sizes = [(r.from_bytes, r.to_bytes) for r in ranges]
    shares = [(r.from_intensity, r.to_intensity) for r in ranges if r.from_intensity is not None]
    if not _apart(sizes) and len(shares) == len(ranges) and _apart(shares):
        order = sorted(ranges, key=lambda r: r.from_intensity or 0.0)
        return [f"{r.limit}: {_span(r.from_intensity or 0.0, r.to_intensity or 0.0, 'FLOP/B')}" for r in order]
    said = [f"{r.limit}: {_span(r.from_bytes, r.to_bytes, BINARY)}" for r in ranges]
    return said if _apart(sizes) else [*said, "neither size nor intensity alone decides"]


def _apart(spans: Sequence[tuple[Any, Any]]) -> bool:
    return all(one[1] < other[0] for one, other in itertools.pairwise(sorted(spans)))


def _span(low: float, high: float, unit: str) -> str:
    one, other = quantity(low, unit), quantity(high, unit)
    return one if one == other else f"{one} to {other}"


def footprints(rows: pd.DataFrame) -> np.ndarray:
    """Working set of each row, its traffic where none is stated, (row,), bytes."""
    moved = rows["bytes"].to_numpy(float)
    stated = rows["working_set_bytes"].to_numpy(float) if "working_set_bytes" in rows else np.full(len(rows), np.nan)
    return np.where(np.isfinite(stated), stated, moved)
