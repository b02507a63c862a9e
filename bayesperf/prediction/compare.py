"""Targets compared on the same workloads: which is faster, by how much, and how sure is that?

All targets are predicted from the same posterior draws in one go, so that what they share (an operation's loss on every
target, the roofline's sharpness) cancels in their ratio, and in the same circumstances: each in a fresh campaign of its
own, in a named one, or at the mean over campaigns. What is compared is the time that a workload takes there in the long
run: the misfit of each configuration is part of it, the difference between two repeats is not, unless asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf.errors import InputError, check_between, check_counts
from bayesperf.model import LIMITS, Floats, Predicted
from bayesperf.prediction.options import check_options, request_of
from bayesperf.prediction.predictive import limit_probabilities, student
from bayesperf.prediction.room import draws_in, refuse_beyond_memory
from bayesperf.prediction.support import support_of, unseen_operations
from bayesperf.schema import validate_workloads

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile, Workloads

__all__ = ["CLASS", "CONFIDENCE", "COUNT", "CompareOptions", "Comparison", "compare"]

CONFIDENCE = 0.95
"""Probability from which a comparison is called; below it is ambiguous."""

COUNT = "count"
"""Optional workload column: how often each is executed in the total."""

CLASS = "class"
"""Optional workload column: what kind of workload each is; else its operation and element type say."""

RESULTS = ("a", "b", "p_a_faster", "ratio", "ratio_lower", "ratio_upper", "faster", "supported")
"""Columns that `Comparison.pairs` adds to those of the workloads."""

DRAWS = 4000


class CompareOptions(TypedDict, total=False):
    """Options of `compare`.

    Parameters
    ----------
    campaign
        A campaign in which all targets were measured.
    mean
        Compare at the mean over campaigns. Without either, each target is in a fresh campaign of its own.
    repeats
        Compare two single executions; else the times that they take in the long run (False).
    confidence
        Probability from which a pair is called; below it is ``ambiguous`` (0.95).
    draws
        How many draws, at most those of the posterior (4000).
    seed
        The same seed gives the same draws (0).
    sheets
        Further spec sheets, for targets that were not measured.
    allow_unconverged
        Compare although the diagnostics gate failed (False).
    """

    campaign: str | None
    mean: bool
    repeats: bool
    confidence: float
    draws: int
    seed: int
    sheets: pd.DataFrame | None
    allow_unconverged: bool


@dataclass(frozen=True)
class Comparison:
    """Times of the same workloads on several targets, draw by draw.

    Parameters
    ----------
    workloads
        What was compared, without a target.
    targets
        Names, in the order given.
    times
        Draws of time, dims (draw, target, workload), s.
    supported
        Whether each workload lies inside what was measured of each target, dims (target, workload).
    limits
        Probability that each workload is bound by each limit on each target, dims (target, workload, limit).
    confidence
        Probability from which a comparison is called.
    notes
        What was assumed.
    profile
        The fit that predicted them: the evidence.
    """

    workloads: pd.DataFrame
    targets: tuple[str, ...]
    times: xr.DataArray
    supported: xr.DataArray
    limits: xr.DataArray
    confidence: float
    notes: tuple[str, ...]
    profile: Profile = field(repr=False)

    @property
    def totals(self) -> xr.DataArray:
        """Draws of the time of all workloads together, each as often as its ``count`` says, (draw, target), s."""
        return (self.times * xr.DataArray(self._counts, dims="workload")).sum("workload")

    @property
    def _counts(self) -> Floats:
        return self.workloads[COUNT].to_numpy(float) if COUNT in self.workloads else np.ones(len(self.workloads))

    @property
    def class_of(self) -> list[str]:
        """Class of each workload: its column ``class`` where the table has one, else operation and element type."""
        absent = [None] * len(self.workloads)
        dtypes, given = (self.workloads.get(name, absent) for name in ("dtype", CLASS))
        pairs = zip(self.workloads["op"], dtypes, strict=True)
        kinds = [f"{op} {dtype}" if isinstance(dtype, str) else str(op) for op, dtype in pairs]
        return [kind if pd.isna(name) else str(name) for kind, name in zip(kinds, given, strict=True)]

    def classes(self, interval: float = 0.9) -> pd.DataFrame:
        """Every pair of targets over each class of workloads, each as often as its ``count`` says.

        Returns
        -------
        DataFrame
            One row per class and pair: class, workloads (how many), the columns of `total`, supported (share of the
            workloads that lies inside what was measured on both).
        """
        names = self.class_of
        parts = []
        for name in dict.fromkeys(names):
            mine = np.array([other == name for other in names])
            if not self._counts[mine].any():
                continue
            weighted = self.times.isel(workload=mine) * xr.DataArray(self._counts[mine], dims="workload")
            times = weighted.sum("workload").expand_dims("workload", axis=-1)
            for a, b in itertools.combinations(self.targets, 2):
                inside = self.supported.sel(target=a).values[mine] & self.supported.sel(target=b).values[mine]
                found = pd.DataFrame(self._judged(a, b, times, interval))
                parts.append(found.assign(workloads=int(mine.sum()), supported=float(inside.mean()), **{CLASS: name}))
        joined = pd.concat(parts, ignore_index=True)
        return joined[[CLASS, "workloads", *(c for c in joined if c not in (CLASS, "workloads"))]]

    @property
    def fastest(self) -> xr.DataArray:
        """Probability that each target is the fastest, (target, workload)."""
        return self._fastest(self.times)

    @property
    def fastest_in_total(self) -> xr.DataArray:
        """Probability that each target is the fastest over all workloads, (target,)."""
        return self._fastest(self.totals)

    def _fastest(self, times: xr.DataArray) -> xr.DataArray:
        first = times.argmin("target")
        every = [(first == at).mean("draw") for at in range(len(self.targets))]
        return xr.concat(every, dim=pd.Index(self.targets, name="target"))

    def pairs(self, interval: float = 0.9) -> pd.DataFrame:
        """Every pair of targets on every workload.

        Returns
        -------
        DataFrame
            One row per workload and pair: the workload's columns, a, b, p_a_faster, ratio (median of the time on a over
            the time on b), ratio_lower, ratio_upper (equal-tailed `interval`), faster (the name, or ``ambiguous``),
            supported (on both).
        """
        tables = []
        for a, b in itertools.combinations(self.targets, 2):
            found = self._judged(a, b, self.times, interval)
            both = self.supported.sel(target=a) & self.supported.sel(target=b)
            tables.append(self.workloads.assign(**found, supported=both.values, _at=range(len(self.workloads))))
        joined = pd.concat(tables, ignore_index=True).sort_values("_at", kind="stable", ignore_index=True)
        return joined.drop(columns="_at")

    def total(self, interval: float = 0.9) -> pd.DataFrame:
        """Every pair of targets over all workloads together; columns as `pairs`, without those of workloads."""
        totals = self.totals.expand_dims("workload", axis=-1)
        found = [pd.DataFrame(self._judged(a, b, totals, interval)) for a, b in itertools.combinations(self.targets, 2)]
        return pd.concat(found, ignore_index=True)

    def _judged(self, a: str, b: str, times: xr.DataArray, interval: float) -> dict[str, Any]:
        check_between(0, 1, interval=interval)
        one, other = (times.sel(target=name).transpose("draw", "workload").values for name in (a, b))
        tail = (1 - interval) / 2
        lower, median, upper = np.quantile(one / other, [tail, 0.5, 1 - tail], axis=0)
        # Equal times, as of one target under two names, count half.
        p = (one < other).mean(axis=0) + 0.5 * (one == other).mean(axis=0)
        return {
            "a": a,
            "b": b,
            "p_a_faster": p,
            "ratio": median,
            "ratio_lower": lower,
            "ratio_upper": upper,
            "faster": np.select([p >= self.confidence, p <= 1 - self.confidence], [a, b], "ambiguous"),
        }

    def to_html(self, path: str | Path) -> None:
        """Write the comparison as one self-contained page, atomically."""
        from bayesperf.report.comparison import comparison_page
        from bayesperf.report.page import write_page

        write_page(Path(path), comparison_page(self))


def compare(
    profile: Profile, targets: Sequence[str], workloads: Workloads, **options: Unpack[CompareOptions]
) -> Comparison:
    """Compare targets on the same workloads: P(A faster than B), the ratio of their times, each and in total.

    Parameters
    ----------
    profile
        A fit of some table.
    targets
        Two or more: measured ones, or ones with a spec sheet.
    workloads
        As for `Profile.predict`; optional columns: ``count`` says how often each is executed in the total, ``class``
        what kind of workload it is.
    **options
        See `CompareOptions`.

    Raises
    ------
    InputError
        Fewer than two targets, a name given twice, or an option that makes no sense.
    UnconvergedError
        The gate failed, and nobody opted in.
    UnknownNameError
        A target neither measured nor with a spec sheet, or a campaign that it was not measured in.
    TableError
        A workload lacks a required column or has a bad value.
    """
    from bayesperf.prediction.profile import frame_of

    check_options(options, CompareOptions)
    profile.refuse_unconverged(options.get("allow_unconverged", False))
    request = request_of(options.get("campaign"), None, options.get("mean", False))
    confidence, draws, seed = options.get("confidence", CONFIDENCE), options.get("draws", DRAWS), options.get("seed", 0)
    names = list(targets) if isinstance(targets, Iterable) and not isinstance(targets, str) else [targets]
    if len(set(map(str, names))) < max(2, len(names)):
        raise InputError(f"compare takes at least two different targets; measured are {', '.join(profile.targets)}")
    check_between(0.5, 1, confidence=confidence)
    check_counts(2, draws=draws)
    check_counts(0, seed=seed)
    table = validate_workloads(frame_of(workloads)).drop(columns=["target", "device"], errors="ignore")
    _check_columns(table)
    # One prediction of everything: new members of a level, such as an operation never measured, are drawn once for all.
    stacked = pd.concat([table.assign(target=name) for name in names], ignore_index=True)
    rng = np.random.default_rng(seed)
    posterior = profile.draws(limit=draws)
    refuse_beyond_memory(len(stacked) * draws_in(posterior), "compare fewer workloads at a time, or fewer draws")
    sheets = profile.sheets_with(options.get("sheets"))
    predicted = profile.model.predict(profile.inference.encoded, posterior, stacked, request, sheets, rng)
    inside = support_of(profile.reach, stacked).inside
    dims, shape = ("target", "workload"), (len(names), len(table))
    coords = {"target": names, "workload": table.index.to_numpy()}
    times = xr.DataArray(
        _long_run(predicted, options.get("repeats", False), rng).reshape(-1, *shape),
        dims=("draw", *dims),
        coords=coords,
        attrs={"units": "s"},
    )
    supported = xr.DataArray(inside.reshape(shape), dims=dims, coords=coords)
    probabilities = limit_probabilities(predicted).reshape(*shape, len(LIMITS))
    limits = xr.DataArray(probabilities, dims=(*dims, "limit"), coords={**coords, "limit": list(LIMITS)})
    notes = (*predicted.notes, *unseen_operations(profile.reach, stacked))
    return Comparison(table, tuple(names), times, supported, limits, confidence, notes, profile)


def _long_run(predicted: Predicted, repeats: bool, rng: np.random.Generator) -> Floats:
    """Draws of the time of each workload, with what the model misses of it; (draw, row), s."""
    scale = np.hypot(predicted.misfit, predicted.repeat) if repeats else predicted.misfit
    noise = student(rng, predicted.tail, scale.shape[1])
    return np.asarray(np.exp(predicted.log_time + scale * noise))


def _check_columns(table: pd.DataFrame) -> None:
    taken = [name for name in RESULTS if name in table]
    if taken:
        raise InputError(
            f"workloads: {', '.join(taken)} would be replaced by the comparison's columns; rename or drop them, as "
            "after an earlier prediction"
        )
    if COUNT not in table:
        return
    counts = pd.to_numeric(table[COUNT], errors="coerce").to_numpy(float, na_value=np.nan)
    bad = np.flatnonzero(~(np.isfinite(counts) & (counts >= 0)))
    if len(bad):
        raise InputError(
            f"workloads, row {bad[0]}, column {COUNT}: how often a workload is executed is a number of at least 0, "
            f"not {table[COUNT].iloc[bad[0]]!s:.60}"
        )
    if not counts.any():
        raise InputError(f"workloads, column {COUNT}: none is executed, so there is nothing to compare")
