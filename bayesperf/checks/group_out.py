"""Refits without one target, one campaign, one of anything: how well what was never seen is predicted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from arviz_stats import SamplingWrapper, loo_kfold

from bayesperf.checks.adjust import clustered_mean
from bayesperf.checks.observed import MEASURED, Predictive, fitted_configurations, labels_of, predictive_of
from bayesperf.checks.predictive import observed_name
from bayesperf.configurations import Configurations, configurations
from bayesperf.errors import InputError, check_between
from bayesperf.inference.diagnostics import warnings_of
from bayesperf.model import PerformanceModel, Request
from bayesperf.prediction.fit import fit
from bayesperf.prediction.profile import Profile
from bayesperf.schema import is_excluded, rows_for, validate, with_ids
from bayesperf.specs import check_targets, spec_of
from bayesperf.store import concat
from bayesperf.validation.scores import score_table

__all__ = ["LeftOut", "leave_out"]

log = logging.getLogger("bayesperf.checks")

DRAWS = 2000

FRESH = Request(effect="fresh", own=True)


@dataclass(frozen=True)
class LeftOut:
    """Predictions of configurations by fits that have not seen their group.

    Parameters
    ----------
    rows
        One row per configuration: group, what names it, measurement_ids, measured_s, median_s, lower_s, upper_s,
        inside, pit, log_density (of log time). In the model's order.
    groups
        One row per group: group, n, error (median absolute log error), shift (mean log of measured over predicted),
        coverage, log_density, crps, interval_score with their baselines, converged (of its refit).
    scores
        By score: mean over rows and ``se``, the standard error clustered by group, and n_groups. Lower is better but
        for log_density; ``crps_gain`` is what the baseline loses more.
    elpd
        ArviZ's ``ELPDDataLOOKFold``, which `arviz_stats.compare` and `stack` take; its own ``se`` treats rows as
        independent, which they are not: see `scores`.
    probability
        Of the intervals.
    notes
        What went wrong and what is assumed.
    """

    rows: pd.DataFrame
    groups: pd.DataFrame
    scores: pd.DataFrame
    elpd: Any
    probability: float
    notes: tuple[str, ...]


def leave_out(
    table: pd.DataFrame | Sequence[pd.DataFrame] | Profile,
    by: str | Sequence[str] = "target",
    targets: pd.DataFrame | None = None,
    model: str | PerformanceModel = "roofline",
    *,
    probability: float = 0.9,
    seed: int = 0,
    **options: Any,
) -> LeftOut:
    """Leave each group out in turn, fit the others, and predict it.

    A left-out campaign is predicted as a fresh one, a left-out target from its spec sheet; every row of a group shares
    what was drawn for it, so groups, not rows, are what is counted. Takes one fit more than there are groups.

    Parameters
    ----------
    table
        Measurements, as for `bayesperf.fit`; or a profile, whose rows, spec sheets and model are used, which saves the
        fit of everything.
    by
        Column whose values are the groups, such as ``target``, ``campaign``, ``stack``, ``op``; or several columns. An
        absent value is a group as well.
    targets, model
        As for `bayesperf.fit`.
    probability
        Of the intervals that are scored.
    seed
        Of the predictions, and of the fits unless `options` has another.
    options
        Passed to `bayesperf.fit`: draws, tune, chains, attempts, progress.

    Raises
    ------
    InputError
        Fewer than two groups, an unknown column, or a target that nothing would be known of without its group.
    """
    check_between(0, 1, probability=probability)
    options = {"seed": seed, **options}
    columns = [by] if isinstance(by, str) else list(by)
    # Before minutes of fitting: what cannot be done should cost a second.
    if isinstance(table, Profile):
        full = table
        _refuse(full.table, columns, full.spec_sheets)
    else:
        _refuse(_rows(table), columns, targets)
        full = fit(table, targets, model, **options)
    summary = fitted_configurations(full)
    group = _groups(summary.first, columns)
    refits = _Refits(full, summary, group, probability, seed, options)
    folds = pd.factorize(group)[0] + 1
    elpd = loo_kfold(full.tree, refits, pointwise=True, var_name=observed_name(full), folds=folds)
    rows = pd.concat(refits.rows).sort_index().assign(log_density=elpd.elpd_i.values)
    groups = pd.DataFrame(refits.groups)
    groups["log_density"] = groups["group"].map(rows.groupby("group", sort=False)["log_density"].mean())
    return LeftOut(rows, groups, _scores(rows, groups), elpd, probability, tuple(dict.fromkeys(refits.notes)))


def _rows(table: pd.DataFrame | Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows that `bayesperf.fit` will fit, as far as their groups are concerned."""
    whole = table if isinstance(table, pd.DataFrame) else concat(table)
    rows = rows_for(with_ids(validate(whole), source="table"), "fit")
    return rows[~is_excluded(rows)].reset_index(drop=True)


def _refuse(rows: pd.DataFrame, by: list[str], targets: pd.DataFrame | None) -> None:
    """Refuse what has no groups, and groups without which nothing is known of a target."""
    group = _groups(rows, by)
    if len(set(group)) < 2:
        raise InputError(f"leaving out by {', '.join(by)} needs two groups or more, and all rows are in one")
    if pd.Series(group).groupby(configurations(rows).code).nunique().max() > 1:
        raise InputError(
            f"repeats of one configuration lie in different groups of {', '.join(by)}, and would predict each other: "
            "leave out by a column that tells configurations apart, such as target, campaign, stack or op"
        )
    sheets = None if targets is None else check_targets(targets.reset_index())
    for target, code in pd.Series(group).groupby(rows["target"].to_numpy()).unique().items():
        device = rows.loc[rows["target"] == target, "device"].iloc[0] if "device" in rows else None
        if len(code) == 1 and not spec_of(sheets, device if isinstance(device, str) else str(target)):
            raise InputError(
                f"all rows of {target} are in the group {code[0]!r}, and without them nothing is known of it: give its "
                "spec sheet (targets=), or measure it in more than one group"
            )


def _groups(first: pd.DataFrame, by: list[str]) -> npt.NDArray[np.object_]:
    for name in by:
        if name not in first:
            raise InputError(f"the table has no column {name!r} to leave out by; it has: {', '.join(map(str, first))}")
    text = [["" if pd.isna(value) else str(value) for value in first[name]] for name in by]
    return np.array([" / ".join(parts) for parts in zip(*text, strict=True)], dtype=object)


class _Refits(SamplingWrapper):
    """ArviZ's interface to refitting, by `bayesperf.fit`; keeps what each refit said of its group."""

    def __init__(
        self,
        full: Profile,
        summary: Configurations,
        group: npt.NDArray[np.object_],
        probability: float,
        seed: int,
        options: dict[str, Any],
    ):
        super().__init__(model=full.model, idata_orig=full.tree)  # type: ignore[no-untyped-call]
        self.full, self.summary, self.group = full, summary, group
        self.probability, self.seed, self.options = probability, seed, options
        self.rows: list[pd.DataFrame] = []
        self.groups: list[dict[str, Any]] = []
        self.notes: list[str] = []

    def sel_observations(self, idx: npt.NDArray[np.intp]) -> tuple[pd.DataFrame, npt.NDArray[np.intp]]:
        """Rows of the table to fit, and positions of the observations to predict."""
        left = {name for at in idx for name in self.summary.ids[at]}
        table = self.full.table
        return table[~table["measurement_id"].isin(left).to_numpy()].reset_index(drop=True), np.asarray(idx)

    def sample(self, modified_observed_data: pd.DataFrame) -> Profile:
        """Fit the others."""
        return fit(modified_observed_data, self.full.spec_sheets, self.full.model, **self.options)

    def get_inference_data(self, fitted_model: Profile) -> Profile:
        """Pass the fit on: `log_likelihood__i` needs its model as well."""
        return fitted_model

    def log_likelihood__i(self, excluded_obs: npt.NDArray[np.intp], idata__i: Profile) -> xr.DataArray:
        """Log density of each left-out observation under each draw, (sample, observation)."""
        at = np.asarray(excluded_obs)
        ids = {name: i for i, position in enumerate(at) for name in self.summary.ids[position]}
        code = self.full.table["measurement_id"].map(ids)
        held = self.full.table[code.notna().to_numpy()]
        some = configurations(held, code[code.notna()].to_numpy(np.intp))
        rng = np.random.default_rng([self.seed, *map(int, at[:1])])
        request = MEASURED if _in_measured_campaigns(idata__i.table, some.first) else FRESH
        predictive = predictive_of(idata__i, some, request, idata__i.draws(limit=DRAWS), rng)
        self._keep(idata__i, at, some, predictive, rng)
        return xr.DataArray(predictive.log_density(), dims=("sample", "observation"))

    def _keep(
        self,
        profile: Profile,
        at: npt.NDArray[np.intp],
        some: Configurations,
        predictive: Predictive,
        rng: np.random.Generator,
    ) -> None:
        name, values = self.group[at[0]], predictive.draw(rng)
        lower, median, upper = np.quantile(
            values, [(1 - self.probability) / 2, 0.5, (1 + self.probability) / 2], axis=0
        )
        y = predictive.observed
        self.rows.append(
            labels_of(some.first)
            .assign(
                group=name,
                measurement_ids=pd.Series(some.ids),
                measured_s=np.exp(y),
                median_s=np.exp(median),
                lower_s=np.exp(lower),
                upper_s=np.exp(upper),
                inside=(y >= lower) & (y <= upper),
                pit=predictive.pit(),
            )
            .set_axis(at)
        )
        scored = score_table(profile.table, some, np.full(len(at), name, dtype=object), values, self.probability)
        self.groups.append(
            {
                "group": name,
                "n": len(at),
                "error": float(np.median(np.abs(y - median))),
                "shift": float(np.mean(y - median)),
                "coverage": float(np.mean((y >= lower) & (y <= upper))),
                **{k: float(scored[k].iloc[0]) for k in scored.columns[2:]},
                "converged": profile.converged,
            }
        )
        log.info("left out %s: %d configurations predicted", name, len(at))
        failed = warnings_of([check for check in profile.gate if not check.passed])
        self.notes += predictive.notes
        self.notes += [f"without {name}: {line}" for line in failed]


def _in_measured_campaigns(fitted: pd.DataFrame, first: pd.DataFrame) -> bool:
    """Whether every configuration belongs to a campaign and stack that its target was fitted in."""
    names = ["target", *(name for name in ("campaign", "stack") if name in fitted or name in first)]

    def keys(table: pd.DataFrame) -> set[tuple[Any, ...]]:
        columns = [table[n].fillna("") if n in table else pd.Series("", index=table.index) for n in names]
        return set(zip(*columns, strict=True))

    return keys(first) <= keys(fitted)


def _scores(rows: pd.DataFrame, groups: pd.DataFrame) -> pd.DataFrame:
    """Mean of every score and its standard error with groups as clusters."""
    inside = rows["inside"].to_numpy(float)
    error = np.abs(np.log(rows["measured_s"].to_numpy(float) / rows["median_s"].to_numpy(float)))
    own = {"log_density": rows["log_density"].to_numpy(), "coverage": inside, "absolute_log_error": error}
    found = {name: clustered_mean(values, rows["group"].to_numpy()) for name, values in own.items()}
    # Scores are means by group already: as many equal rows have the same sums.
    size, repeated = groups["n"].to_numpy(int), groups["group"].to_numpy(dtype=object)
    for name in ("crps", "interval_score"):
        columns = {name: groups[name], f"{name}_baseline": groups[f"{name}_baseline"]}
        columns[f"{name}_gain"] = groups[f"{name}_baseline"] - groups[name]
        for key, values in columns.items():
            found[key] = clustered_mean(np.repeat(values.to_numpy(float), size), np.repeat(repeated, size))
    return pd.DataFrame.from_dict(found, orient="index", columns=["mean", "se", "n_groups"])
