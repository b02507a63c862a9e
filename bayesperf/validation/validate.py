"""Held-out measurements against a profile: where it transfers, where it fails, where nobody can say yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.configurations import Configurations, configurations
from bayesperf.errors import InputError, check_between, check_counts
from bayesperf.model import LIMITS, Draws, Floats, Predicted, Request
from bayesperf.prediction.room import draws_in, refuse_beyond_memory
from bayesperf.prediction.support import Support, support_of
from bayesperf.schema import SHAPE_COLUMNS, is_excluded, rows_for, validate, with_ids
from bayesperf.validation.grouptest import Replicates, family_wise, group_statistics, replicate
from bayesperf.validation.moved import Judged, explain_failures, verdict_columns
from bayesperf.validation.result import Validation
from bayesperf.validation.scores import score_table
from bayesperf.validation.verdicts import judge, realised_shift

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["validate_profile"]

DRAWS, FEWEST, PAIRS = 2000, 500, 10_000_000
"""Replicates: so many, but of large tables no more than bring the pairs of a replicate and a row to PAIRS, at least
FEWEST."""

PAIR_BYTES = 300.0
"""What such a pair takes, of both estimands together: measured."""

PROBABILITY = 0.9


@dataclass(frozen=True)
class _Estimand:
    """Held-out rows as one estimand predicts them."""

    predicted: Predicted
    replicates: Replicates
    residual: Floats
    lower: Floats
    upper: Floats


UNCONVERGED = "the profile is unconverged: its diagnostics gate failed, and verdicts of its draws may be wrong"


def validate_profile(
    profile: Profile, heldout: pd.DataFrame, *, tolerance: float = 0.1, alpha: float = 0.05, seed: int = 0
) -> Validation:
    """Compare held-out measurements with their predictions, by target and regime.

    A regime is the most probable limit of a configuration, inside or outside the measured support; both are decided
    before any outcome is looked at. Two estimands are tested: *same campaign* (parameters as fitted, or the measured
    campaign's effect) and *fresh campaign*. The verdict is of the first where the held-out rows belong to a fitted
    campaign, else of the second.

    Parameters
    ----------
    profile
        A fit; an unconverged one is validated all the same, and is marked elsewhere.
    heldout
        Measurements; where any row has the role ``heldout``, only those are used.
    tolerance
        Relative shift of the time that counts as nothing; 0 grants none, and then no group `transfers`.
    alpha
        Chance that any group of a family without shifts is called ``fails``.
    seed
        The same seed gives the same verdicts.

    Raises
    ------
    TableError
        The table breaks the contract.
    InputError
        No held-out row is left, a bad tolerance or alpha.
    """
    # Nothing granted at all is a fair question.
    if tolerance != 0:
        check_between(0, 1, tolerance=tolerance)
    check_between(0, 1, alpha=alpha)
    check_counts(0, seed=seed)
    table, left_out = _heldout_rows(heldout, profile)
    summary = configurations(table)
    draws = _draws_for(profile, len(summary.first))
    same = _predict(profile, summary, draws, Request(effect="none", own=True), seed)
    fresh = _predict(profile, summary, draws, Request(effect="fresh", own=True), seed)
    fitted = _in_fitted_campaign(profile, summary.first)
    main = same if fitted else fresh
    support = support_of(profile.table, summary.first)
    limit = _most_probable(main.predicted)
    regime = [
        f"{name}, {'inside' if inside else 'outside'}" for name, inside in zip(limit, support.inside, strict=True)
    ]
    group = (summary.first["target"] + ": " + pd.Series(regime)).to_numpy(dtype=object)
    log_tolerance = float(np.log1p(tolerance))
    groups = _judge_groups(summary.first, group, regime, same, fresh, fitted, log_tolerance, alpha)
    judged = Judged(summary, group, ~support.inside, same.predicted, fresh.predicted, fitted)
    moved = explain_failures(judged, list(groups.loc[groups["verdict"] == "fails", "group"]))
    rows = _rows(summary, group, limit, support, main)
    settings = {
        "tolerance": tolerance,
        "alpha": alpha,
        "estimand": "same campaign" if fitted else "fresh campaign",
        "seed": seed,
        "converged": profile.converged,
        "replicates": draws_in(draws),
        "interval": PROBABILITY,
    }
    scores = score_table(profile.table, summary, group, main.replicates.values, PROBABILITY)
    doubts = [] if profile.converged else [UNCONVERGED]
    notes = tuple(dict.fromkeys([*doubts, *left_out, *same.predicted.notes, *fresh.predicted.notes]))
    return Validation(verdict_columns(groups, moved), rows, scores, settings, notes, moved, profile, table)


def _heldout_rows(heldout: pd.DataFrame, profile: Profile) -> tuple[pd.DataFrame, list[str]]:
    """Rows to judge, and what was left out of them in words."""
    table = with_ids(validate(heldout, source="held-out table"), source="held-out table")
    marked = rows_for(table, "heldout")
    table = marked if len(marked) else table
    table = table[~is_excluded(table)].reset_index(drop=True)
    if not len(table):
        raise InputError("no held-out rows are left: all were excluded by a recorded rule")
    # Rows that the parameters were made from say nothing of how they transfer.
    table = table[~table["measurement_id"].isin(profile.table["measurement_id"]).to_numpy()].reset_index(drop=True)
    if not len(table):
        raise InputError("every row was fitted: give measurements that the profile has not seen")
    if profile.model.predicts_corunners or "corunners" not in table or table["corunners"].isna().all():
        return table, []
    alone = table[table["corunners"].isna().to_numpy()].reset_index(drop=True)
    if not len(alone):
        raise InputError(f"every held-out row ran beside co-runners, which model {profile.model_name} does not predict")
    note = (
        f"left out: {len(table) - len(alone)} rows beside co-runners, which model {profile.model_name} does not predict"
    )
    return alone, [note]


def _draws_for(profile: Profile, rows: int) -> Draws:
    """Posterior draws for so many configurations.

    Raises
    ------
    InputError
        There is no memory for the fewest.
    """
    draws = profile.draws(limit=int(np.clip(PAIRS // rows, FEWEST, DRAWS)))
    refuse_beyond_memory(rows * draws_in(draws), "validate fewer rows at a time", PAIR_BYTES)
    return draws


def _predict(profile: Profile, summary: Configurations, draws: Draws, request: Request, seed: int) -> _Estimand:
    rng = np.random.default_rng(seed)
    inference = profile.inference
    predicted = inference.model.predict(inference.encoded, draws, summary.first, request, profile.spec_sheets, rng)
    scale = np.sqrt(predicted.misfit**2 + predicted.repeat**2 * summary.weight + summary.within * summary.weight)
    replicates = replicate(predicted.log_time, scale, predicted.tail, rng)
    tail = (1 - PROBABILITY) / 2
    lower, upper = np.quantile(replicates.values, [tail, 1 - tail], axis=0) - replicates.mean
    return _Estimand(predicted, replicates, summary.log_time - replicates.mean, lower, upper)


def _in_fitted_campaign(profile: Profile, first: pd.DataFrame) -> bool:
    """Whether all held-out rows belong to campaigns that were fitted (an absent campaign is one of its own)."""
    names = ["target", *(name for name in ("campaign", "stack") if name in first or name in profile.table)]
    fitted = {tuple(row) for row in _text(profile.table, names).itertuples(index=False)}
    return all(tuple(row) in fitted for row in _text(first, names).itertuples(index=False))


def _text(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    return pd.DataFrame({n: table[n].fillna("").astype(str) if n in table else "" for n in names}, index=table.index)


def _most_probable(predicted: Predicted) -> list[str]:
    names = [name for name in LIMITS if name in predicted.terms]
    largest = np.argmax(np.stack([predicted.terms[name] for name in names]), axis=0)
    counts = np.stack([(largest == at).sum(axis=0) for at in range(len(names))])
    return [names[at] for at in counts.argmax(axis=0)]


def _judge_groups(
    first: pd.DataFrame,
    group: npt.NDArray[Any],
    regime: list[str],
    same: _Estimand,
    fresh: _Estimand,
    fitted: bool,
    tolerance: float,
    alpha: float,
) -> pd.DataFrame:
    names = list(dict.fromkeys(group))
    members = [np.flatnonzero(group == name) for name in names]
    p_same = family_wise([_test(same, rows, tolerance) for rows in members])
    p_fresh = family_wise([_test(fresh, rows, tolerance) for rows in members])
    found = []
    for at, (name, rows) in enumerate(zip(names, members, strict=True)):
        main = same if fitted else fresh
        shift = realised_shift(
            main.residual[rows],
            main.replicates.noise_variance(rows),
            same.replicates.signal[:, rows],
            fresh.replicates.signal[:, rows],
        )
        p = float(p_same[at] if fitted else p_fresh[at])
        verdict = judge(p, shift, len(rows), tolerance=tolerance, alpha=alpha)
        inside = (main.residual[rows] >= main.lower[rows]) & (main.residual[rows] <= main.upper[rows])
        found.append(
            {
                "group": name,
                "target": first["target"].iloc[rows[0]],
                "regime": regime[rows[0]],
                "verdict": verdict.name,
                "reason": verdict.reason,
                "advice": verdict.advice,
                "n_rows": len(rows),
                "p_same": float(p_same[at]),
                "p_fresh": float(p_fresh[at]),
                "shift": shift.value,
                "shift_lower": shift.lower,
                "shift_upper": shift.upper,
                "spread_ratio": shift.spread_ratio,
                "coverage_90": float(inside.mean()),
            }
        )
    return pd.DataFrame(found)


def _test(estimand: _Estimand, rows: npt.NDArray[np.intp], tolerance: float) -> Any:
    shares = [estimand.predicted.shares[name][:, rows].mean(axis=0) for name in estimand.predicted.shares]
    directions = [np.ones(len(rows)), *(share for share in shares if np.linalg.norm(share) > 0.05)]
    bounds = (estimand.lower[rows], estimand.upper[rows])
    return group_statistics(estimand.residual[rows], estimand.replicates, rows, directions, bounds, tolerance)


def _rows(
    summary: Configurations, group: npt.NDArray[Any], limit: list[str], support: Support, main: _Estimand
) -> pd.DataFrame:
    shapes = [name for name in ("target", "op", "dtype", "n_devices", *SHAPE_COLUMNS) if name in summary.first]
    mean, values = main.replicates.mean, main.replicates.values
    return summary.first[shapes].assign(
        group=group,
        measurement_ids=pd.Series(summary.ids),
        flops=summary.first["flops"],
        bytes=summary.first["bytes"],
        measured_s=np.exp(summary.log_time),
        median_s=np.exp(np.median(values, axis=0)),
        lower_s=np.exp(mean + main.lower),
        upper_s=np.exp(mean + main.upper),
        inside=(main.residual >= main.lower) & (main.residual <= main.upper),
        pit=(values <= summary.log_time).mean(axis=0),
        limit=limit,
        supported=support.inside,
        unsupported_features=["+".join(names) for names in support.features],
    )
