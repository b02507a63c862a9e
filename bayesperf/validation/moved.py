"""What moved: posterior probabilities of the explanations of a group that fails to transfer.

All held-out rows of the group's target are asked together, as its other regimes tell explanations apart that one regime
confuses: compute alone moved if memory-bound rows did not. Where no single explanation fits them all, the group's own
rows are asked alone. Where several fit alike, the measurement that would separate them is named. `explanations` lists
what is weighed, `weighing` says how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import logsumexp

from bayesperf.configurations import Configurations
from bayesperf.model import Predicted
from bayesperf.validation.explanations import ACTIONS, Candidate, candidates_for, probes_for, subsets_of
from bayesperf.validation.weighing import Evidence, Method, Weight, weigh

__all__ = ["COLUMNS", "Judged", "Moved", "explain", "explain_failures", "verdict_columns"]

COLUMNS = ("explanation", "detail", "probability", "shift", "shift_lower", "shift_upper")

NAMED = 0.8
"""Probability from which one explanation is named alone."""

RATIO = 0.1
"""An explanation this many times less probable than the best is still said to be confused with it."""

FEW = 3
"""Configurations that it takes to tell anything."""

PROBES = 2
"""Measurements that are proposed at most."""

DRAWS = 400


@dataclass(frozen=True)
class Moved:
    """Explanations of a group's failure.

    Parameters
    ----------
    table
        One row per explanation, the most probable first: explanation (``none``, a limit's name, ``level``, ``noise``,
        ``subset``, ``other``), detail, probability, shift, shift_lower, shift_upper (change of the time as a share,
        with 90 % interval; NaN where there is no single one). Empty when nothing could be computed.
    method
        ``draws``, ``laplace``, or ``not computed``.
    pareto_k
        Largest over the explanations, of the average over draws.
    rows
        Configurations that were asked.
    probes
        Measurements that would tell the best explanations apart.
    """

    table: pd.DataFrame
    method: Method
    pareto_k: float
    rows: int
    probes: tuple[str, ...]

    @property
    def named(self) -> bool:
        """Whether one explanation stands out."""
        return bool(len(self.table)) and float(self.table["probability"].iloc[0]) >= NAMED

    @property
    def words(self) -> str:
        """The finding in a sentence."""
        if not len(self.table):
            few = f"what moved takes {FEW} held-out configurations or more"
            return "not computed: " + (few if self.rows < FEW else "the posterior says too little of these rows")
        best, *others = self.table.to_dict(orient="records")
        also = [_said(row) for row in others if row["probability"] > RATIO * best["probability"]]
        if self.named or not also:
            return _said(best) + (f"; or {', '.join(also)}" if also else "")
        return "undecided between " + " and ".join(filter(None, (_said(best), ", ".join(also))))

    @property
    def advice(self) -> str:
        """What to do next: look where the best explanation points, or measure what tells the best ones apart."""
        if not len(self.table):
            return f"hold out {FEW} configurations or more of this target, of all regimes" if self.rows < FEW else ""
        action = ACTIONS[self.table["explanation"].iloc[0]]
        to_tell = f"to tell apart, measure {'; and '.join(self.probes)}" if self.probes else ""
        parts = (action, to_tell) if self.named else (to_tell, action if not to_tell else "")
        return "; ".join(filter(None, parts))

    def facts(self) -> dict[str, Any]:
        """Everything, for programs."""
        return {
            "words": self.words,
            "advice": self.advice,
            "named": self.named,
            "method": self.method,
            "pareto_k": self.pareto_k,
            "n_rows": self.rows,
            "explanations": self.table,
            "probes": list(self.probes),
        }


def _said(row: Mapping[Any, Any]) -> str:
    if not np.isfinite(row["shift"]):
        return f"{row['detail']} ({row['probability']:.0%})"
    ends = f"{row['shift']:+.0%} [{row['shift_lower']:+.0%}, {row['shift_upper']:+.0%}]"
    return f"{row['detail']} {ends} ({row['probability']:.0%})"


def explain(evidence: Evidence) -> Moved:
    """Weigh the explanations of what some rows show."""
    n = len(evidence.residual)
    nothing = Moved(pd.DataFrame(columns=COLUMNS), "not computed", np.nan, n, ())
    if n < FEW:
        return nothing
    candidates = candidates_for(n, evidence.shares, evidence.subsets)
    method, k, weights = weigh(evidence, candidates)
    if not weights:
        return nothing
    table = _table(candidates, weights)
    near = table.loc[table["probability"] > RATIO * table["probability"].iloc[0], "explanation"]
    return Moved(table, method, k, n, probes_for(near)[:PROBES])


def _table(candidates: Sequence[Candidate], weights: Sequence[Weight]) -> pd.DataFrame:
    values = np.array([weight.log_evidence for weight in weights])
    shares = np.exp(values - logsumexp(values))
    rows: dict[str, dict[str, Any]] = {}
    # Of several of a kind (subsets, widths of the noise) the best speaks for all.
    for at in np.argsort(-shares, kind="stable"):
        candidate, weight, share = candidates[at], weights[at], float(shares[at])
        if candidate.kind in rows:
            rows[candidate.kind]["probability"] += share
        else:
            ends = np.expm1(weight.shift + weight.spread * np.array([0.0, -1.645, 1.645]))
            row = (candidate.kind, candidate.detail, share, *map(float, ends))
            rows[candidate.kind] = dict(zip(COLUMNS, row, strict=True))
    return pd.DataFrame(list(rows.values())).sort_values(
        "probability", ascending=False, kind="stable", ignore_index=True
    )


@dataclass(frozen=True)
class Judged:
    """Held-out configurations as a validation sees them.

    Parameters
    ----------
    summary
        The configurations.
    group
        Group of each, (row,).
    outside
        Which lie outside of what was measured, (row,).
    same, fresh
        Predictions of the same draws as in the fitted and as in a fresh campaign.
    fitted
        Whether the rows belong to fitted campaigns.
    """

    summary: Configurations
    group: npt.NDArray[Any]
    outside: npt.NDArray[np.bool_]
    same: Predicted
    fresh: Predicted
    fitted: bool

    def evidence(self, rows: npt.NDArray[np.intp]) -> Evidence:
        """What some of the configurations show."""
        n = len(self.same.log_time)
        draws = np.unique(np.linspace(0, n - 1, min(n, DRAWS)).round().astype(int))
        at = np.ix_(draws, rows)
        log_time, summary = self.same.log_time[at], self.summary
        repeats = self.same.repeat[at] ** 2 * summary.weight[rows]
        within = (summary.within * summary.weight)[rows]
        mean = log_time.mean(axis=0)
        return Evidence(
            residual=summary.log_time[rows] - mean,
            signal=log_time - mean,
            campaign=np.zeros(log_time.shape) if self.fitted else self.fresh.log_time[at] - log_time,
            shares={name: share[at].mean(axis=0) for name, share in self.same.shares.items()},
            scale=np.sqrt(self.same.misfit[at] ** 2 + repeats + within),
            tail=np.asarray(self.same.tail)[draws],
            subsets=subsets_of(summary.first.iloc[rows].reset_index(drop=True), self.outside[rows]),
        )


def explain_failures(judged: Judged, failed: Sequence[str]) -> dict[str, Moved]:
    """Explain the failed ones of a validation's groups."""
    target = judged.summary.first["target"].to_numpy()
    together: dict[Any, Moved] = {}
    found = {}
    for group in failed:
        own = np.flatnonzero(judged.group == group)
        name = target[own[0]]
        if name not in together:
            together[name] = explain(judged.evidence(np.flatnonzero(target == name)))
        moved = together[name]
        lost = not len(moved.table) or moved.table["explanation"].iloc[0] == "other"
        found[group] = explain(judged.evidence(own)) if lost and len(own) < moved.rows else moved
    return found


def verdict_columns(groups: pd.DataFrame, moved: Mapping[str, Moved]) -> pd.DataFrame:
    """Add to a validation's groups what moved in each: the columns that `Validation.groups` names ``moved*``."""
    words = {name: (found.words, found.advice) for name, found in moved.items()}
    best = {name: found.table.iloc[0] for name, found in moved.items() if len(found.table)}

    def column(name: str, absent: object) -> list[Any]:
        return [best[group][name] if group in best else absent for group in groups["group"]]

    return groups.assign(
        moved=[words.get(group, ("", ""))[0] for group in groups["group"]],
        moved_advice=[words.get(group, ("", ""))[1] for group in groups["group"]],
        moved_explanation=column("explanation", ""),
        moved_probability=column("probability", np.nan),
        moved_shift=column("shift", np.nan),
        moved_shift_lower=column("shift_lower", np.nan),
        moved_shift_upper=column("shift_upper", np.nan),
    )
