"""What a fit leaves over at its own measurements: how many lie outside, on which side, and whether in two groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.stats

from bayesperf.checks.adjust import holm
from bayesperf.checks.mixture import Modes, repeat_modes, two_modes
from bayesperf.checks.observed import fitted_blocks, fitted_configurations, labels_of
from bayesperf.errors import check_between
from bayesperf.model import Floats

if TYPE_CHECKING:
    from bayesperf.configurations import Configurations
    from bayesperf.prediction.profile import Profile

__all__ = ["ALPHA", "Residuals", "poor_fits", "residuals"]

ALPHA = 0.05
"""Chance that any group of a profile that fits gets a line, for each of the four kinds of line."""

DRAWS = 1000

TOLERANCE = float(np.log(1.1))
"""A bias below 10 % is not worth a line, however certain: what validation grants as well."""


@dataclass(frozen=True)
class Residuals:
    """Fitted configurations beside what the fit says of them, in their own campaign.

    Parameters
    ----------
    rows
        One row per configuration: what names it, measurement_ids, measured_s, predicted_s (posterior mean of the log,
        noise left out), residual (log of their ratio), pit (posterior predictive probability of a time at most as
        long), inside (whether within its own interval).
    groups
        One row per target and operation: n, outside, expected (n times one less the probability), p_outside; bias (mean
        residual, weighted as Student-t noise asks for) with its 90 % posterior interval bias_lower and bias_upper, and
        p_bias; modes_gap (log distance of two groups of configurations), modes_share (of the smaller), p_modes,
        two_modes; and the same of repeats of one configuration: repeats_gap, repeats_share, p_repeats, two_levels. All
        p-values are adjusted over groups (Holm).
    probability
        Of the intervals.
    """

    rows: pd.DataFrame
    groups: pd.DataFrame
    probability: float


def residuals(profile: Profile, probability: float = 0.99) -> Residuals:
    """Compare fitted configurations with the fit.

    The rows were used for the fit, so their intervals hold somewhat more of them than they promise: what still lies
    outside is not described. Whether the residuals of an operation fall into two groups is tested by
    `bayesperf.checks.two_modes`; such an operation is reported, as no width describes it.

    Parameters
    ----------
    profile
        A fit, converged or not.
    probability
        Of each configuration's own equal-tailed interval, noise included.

    Raises
    ------
    InputError
        The probability is not between 0 and 1.
    """
    check_between(0, 1, probability=probability)
    summary = fitted_configurations(profile)
    seen = profile.model.observations(profile.inference.encoded)
    names = seen[["target", "op"]].reset_index(drop=True)
    code = np.asarray(names.groupby(["target", "op"], sort=False).ngroup(), dtype=np.intp)
    found = _compare(profile, summary, code)
    outside = (found.pit < (1 - probability) / 2) | (found.pit > (1 + probability) / 2)
    rows = labels_of(summary.first).assign(
        op=names["op"],
        measurement_ids=pd.Series(summary.ids),
        measured_s=np.exp(summary.log_time),
        predicted_s=np.exp(summary.log_time - found.residual),
        residual=found.residual,
        pit=found.pit,
        inside=~outside,
    )
    repeats = _repeats(profile, summary)
    groups = [
        {
            "target": names["target"].iloc[at[0]],
            "op": names["op"].iloc[at[0]],
            "n": len(at),
            "outside": int(outside[at].sum()),
            "expected": len(at) * (1 - probability),
            "p_outside": _p_outside(found.pit[at], int(outside[at].sum()), probability),
            **found.bias(at, group),
            **_named(two_modes(found.residual[at]), "modes"),
            **_named(repeat_modes([repeats[i] for i in at]), "repeats"),
        }
        for group, at in enumerate(_members(code))
    ]
    return Residuals(rows, _adjusted(pd.DataFrame(groups)), probability)


@dataclass(frozen=True)
class _Comparison:
    """Residual, its weight in a mean, its information of a shift and its pit, (configuration,); weighted mean residual
    of each group under each draw, (group, draw).
    """

    residual: Floats
    weight: Floats
    information: Floats
    pit: Floats
    shift: Floats

    def bias(self, at: npt.NDArray[np.intp], group: int) -> dict[str, float]:
        """Shift of a group with its interval, and how improbable noise alone makes it."""
        value = float(np.average(self.residual[at], weights=self.weight[at]))
        lower, upper = np.quantile(self.shift[group], [0.05, 0.95])
        p = 2 * float(scipy.stats.norm.sf(abs(value) * np.sqrt(self.information[at].sum())))
        return {"bias": value, "bias_lower": float(lower), "bias_upper": float(upper), "p_bias": p}


def _compare(profile: Profile, summary: Configurations, code: npt.NDArray[np.intp]) -> _Comparison:
    draws = profile.draws(limit=DRAWS)
    n, groups = len(summary.ids), int(code.max()) + 1
    residual, weight, information, pit = (np.empty(n) for _ in range(4))
    shift: Floats = np.zeros((groups, len(next(iter(draws.values())))))
    for at, predictive in fitted_blocks(profile, summary, draws):
        error = predictive.observed - predictive.log_time
        residual[at], pit[at] = error.mean(axis=0), predictive.pit()
        # Weights of a Student-t location: a few configurations far out are no bias of all.
        variance, tail = (predictive.scale**2).mean(axis=0), float(predictive.tail.mean())
        weight[at] = (tail + 1) / (tail + residual[at] ** 2 / variance) / variance
        information[at] = (tail + 1) / (tail + 3) / variance
        np.add.at(shift, code[at], weight[at, None] * error.T)
    return _Comparison(residual, weight, information, pit, shift / np.bincount(code, weight)[:, None])


def _members(code: npt.NDArray[np.intp]) -> list[npt.NDArray[np.intp]]:
    order = np.argsort(code, kind="stable")
    return np.split(order, np.cumsum(np.bincount(code))[:-1])


def _p_outside(pit: Floats, outside: int, probability: float) -> float:
    """Probability of as many outside, or of one as far outside: few rows far out count like many a little out."""
    many = float(scipy.stats.binom.sf(outside - 1, len(pit), 1 - probability))
    far = len(pit) * 2 * float(np.minimum(pit, 1 - pit).min())
    return min(1.0, 2 * min(many, far))


def _repeats(profile: Profile, summary: Configurations) -> list[Floats]:
    """Log times of the repeats of every configuration."""
    time = profile.table.set_index("measurement_id")["time_s"].astype(float)
    # One look-up for all: there may be many.
    values = np.log(time.loc[[name for ids in summary.ids for name in ids]].to_numpy())
    return np.split(values, np.cumsum([len(ids) for ids in summary.ids])[:-1])


def _named(modes: Modes, name: str) -> dict[str, Any]:
    values = {"gap": modes.gap, "share": modes.share, "separate": modes.separate}
    return {f"p_{name}": modes.p, **{f"{name}_{key}": value for key, value in values.items()}}


def _adjusted(groups: pd.DataFrame) -> pd.DataFrame:
    for name in ("p_outside", "p_bias"):
        groups[name] = holm(groups[name])
    # One family: both ask whether there are two of something.
    both = holm(groups[["p_modes", "p_repeats"]].to_numpy().ravel()).reshape(-1, 2)
    for at, (kind, said) in enumerate((("modes", "two_modes"), ("repeats", "two_levels"))):
        groups[f"p_{kind}"] = both[:, at]
        groups[said] = (both[:, at] < ALPHA) & groups.pop(f"{kind}_separate")
    return groups


# In words.


def poor_fits(profile: Profile, probability: float = 0.99) -> list[str]:
    """Say in plain sentences which fitted operations the model does not describe; empty when there are none.

    Each kind of sentence appears in a profile that fits with a chance of at most `ALPHA`.

    Parameters
    ----------
    profile
        A fit.
    probability
        As for `residuals`.
    """
    found = residuals(profile, probability)
    lines = []
    for group in found.groups.itertuples(index=False):
        own = found.rows[(found.rows["target"] == group.target) & (found.rows["op"] == group.op)]
        lines += _lines(group, own, probability)
    return lines


def _lines(group: Any, rows: pd.DataFrame, probability: float) -> list[str]:
    where, said = f"{group.op} on {group.target}", []
    if group.p_outside < ALPHA and group.outside:
        worst = rows.iloc[int(np.argmax(np.where(rows["inside"], -1.0, rows["residual"].abs())))]
        said.append(
            f"{group.outside} of {group.n} fitted configurations of {where} lie outside their own "
            f"{100 * probability:.3g} % interval ({group.expected:.2g} expected): the model does not describe them, "
            f"and predictions near them are wrong. Farthest: {_work(worst)}, {_times(worst['residual'])} predicted."
        )
    if group.p_bias < ALPHA and abs(group.bias) > TOLERANCE:
        low, high = (f"{100 * np.expm1(v):+.0f} %" for v in (group.bias_lower, group.bias_upper))
        said.append(
            f"Fitted configurations of {where} take {_times(group.bias)} predicted on average ({low} to {high}): "
            "other rows or a prior pull the fit away from them."
        )
    if group.two_modes:
        said.append(
            f"Fitted configurations of {where} fall into two groups {100 * np.expm1(group.modes_gap):.0f} % apart, "
            f"{100 * group.modes_share:.0f} % of them in the smaller: two kernels or two conditions share this name. "
            "Tell them apart (op, dtype, condition, stack) and fit again; no width describes both."
        )
    if group.two_levels:
        said.append(
            f"Repeats of {where} jump between two levels {100 * np.expm1(group.repeats_gap):.0f} % apart: fresh "
            "processes take different kernels or clocks. A prediction cannot say which one the next process gets."
        )
    return said


def _times(log_ratio: float) -> str:
    ratio = float(np.exp(log_ratio))
    return f"{ratio:.2f} times as long as" if ratio < 10 else f"{ratio:.0f} times as long as"


def _work(row: pd.Series) -> str:
    return f"{row['flops']:.3g} FLOP and {row['bytes']:.3g} bytes"
