"""What moved: posterior probabilities of the explanations of a group that fails to transfer.

Each explanation shifts the log times y of the group's rows along a direction d by delta ~ N(0, 0.2^2)::

    y = m + K c + d delta + sigma t_nu,      c ~ N(0, 1)

m and sigma are a draw of the posterior; K c is a fresh campaign's effect, with the covariance that the model predicts
for it; d is the sensitivity to compute, memory or overhead time, ones (the level), or the indicator of a subset of
shapes. Campaign and shift are integrated inside the rows' likelihood, by Laplace's method around their mode (five
numbers, a Gaussian prior), and the result is averaged over the posterior's draws. Where few draws carry that average
(Pareto k above 0.7: Vehtari, Simpson, Gelman, Yao and Gabry 2024), the parameters' uncertainty is put into the Gaussian
part as well: their principal directions join K, and one integral takes the place of the average. Where neither is
finite, nothing is computed. On rows of one regime several explanations fit alike; then the probe that would separate
them is named.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from arviz_stats.base import array_stats
from scipy.special import gammaln, logsumexp

from bayesperf.configurations import configurations
from bayesperf.errors import InputError, UnknownNameError
from bayesperf.model import Floats, Predicted, Request
from bayesperf.schema import validate, with_ids

if TYPE_CHECKING:
    from bayesperf.validation.result import Validation

__all__ = ["Evidence", "Moved", "explain", "what_moved"]

SHIFT = 0.2
"""Standard deviation of a shift, in log time, before anything was seen."""

MAX_K = 0.7
DRAWS = 400
STEPS = 30
"""Newton steps at most; a handful are enough."""

WIDER = (0.25, 0.5, 1.0)
"""Log factors by which the noise may be wider than predicted, equally probable."""

SPLITS = 12
"""Subsets of shapes that are tried: one for each operation, the others by size."""

RATIO = 0.1
"""An explanation this many times less probable than the best is still said to be confused with it."""

LEVELS = {
    "compute": "compute time",
    "memory": "memory time",
    "overhead": "overhead",
    "communication": "communication time",
    "interference": "interference",
}

PROBES = {
    frozenset({"memory", "overhead"}): "the same operation at several sizes: overhead does not grow with them",
    frozenset({"compute", "level"}): "short and sustained runs: a clock falls under load, a level does not",
    frozenset({"memory", "level"}): "a sweep of the working set: caches show whether memory alone moved",
    frozenset({"compute", "memory"}): "an intensity sweep across the ridge",
    frozenset({"compute", "overhead"}): "the same operation at several sizes: overhead does not grow with them",
    frozenset({"overhead", "level"}): "an empty launch beside a long kernel",
    frozenset({"subset", "compute"}): "aligned against skinny shapes: another kernel is chosen for some only",
    frozenset({"subset", "memory"}): "aligned against skinny shapes: another kernel is chosen for some only",
    frozenset({"subset", "level"}): "the operations that are not in this group: do they move too?",
}
"""Which probe tells two explanations apart."""


@dataclass(frozen=True)
class Evidence:
    """What a group shows.

    Parameters
    ----------
    residual
        Log measured time less the posterior mean, (row,).
    signal
        Draws of log time less the posterior mean, without a campaign's effect, (draw, row).
    campaign
        Draws of what a fresh campaign adds, (draw, row).
    shares
        Sensitivities to the log of each term, by limit, (row,) each.
    scale, tail
        Scale of the noise, (draw, row), and its degrees of freedom, (draw,).
    subsets
        Indicators of subsets of rows, by their description, (row,) each.
    """

    residual: Floats
    signal: Floats
    campaign: Floats
    shares: Mapping[str, Floats]
    scale: Floats
    tail: Floats
    subsets: Mapping[str, Floats]


@dataclass(frozen=True)
class Moved:
    """Explanations of a group's failure.

    Parameters
    ----------
    table
        One row per explanation, the most probable first: explanation (``none``, ``compute``, ``memory``, ``overhead``,
        ``level``, ``noise``, ``subset``, ``other``), detail, probability, shift, shift_lower, shift_upper (change of
        time as a share, with 90 % interval; NaN where there is no single one). Empty when nothing could be computed.
    method
        ``draws``, ``laplace``, or ``not computed``.
    pareto_k
        Largest over the explanations, of the average over draws.
    probes
        Measurements that would tell the best explanations apart.
    """

    table: pd.DataFrame
    method: str
    pareto_k: float
    probes: tuple[str, ...]

    @property
    def words(self) -> str:
        """The finding in a sentence or two."""
        if not len(self.table):
            return "not computed: the posterior's draws say too little of these rows"
        best = self.table.iloc[0]
        said = f"{best['detail']} ({best['probability']:.0%})"
        if np.isfinite(best["shift"]):
            low, high = sorted((best["shift_lower"], best["shift_upper"]))
            said = f"{best['detail']} {best['shift']:+.0%} [{low:+.0%}, {high:+.0%}] ({best['probability']:.0%})"
        others = self.table.iloc[1:][self.table["probability"].iloc[1:] > RATIO * best["probability"]]
        also = [f"{d} ({p:.0%})" for d, p in zip(others["detail"], others["probability"], strict=True)]
        if also:
            said += "; or " + ", ".join(also)
        return said + "".join(f". To tell apart: {probe}" for probe in self.probes)


def explain(evidence: Evidence) -> Moved:
    """Weigh the explanations of a group."""
    given = (evidence.residual, evidence.signal, evidence.campaign, evidence.scale, evidence.tail)
    if not all(np.isfinite(values).all() for values in given):
        return Moved(pd.DataFrame(columns=COLUMNS), "not computed", np.nan, ())
    candidates = list(_candidates(evidence))
    spread = _principal(evidence.campaign, 4)
    by_draw = [_log_evidence(evidence, spread, c, evidence.signal, evidence.scale, evidence.tail) for c in candidates]
    k = max(_pareto_k(value) for value, _, _ in by_draw)
    if np.isfinite(k) and k <= MAX_K:
        method, found = "draws", [_averaged(value, mean, sd) for value, mean, sd in by_draw]
    else:
        joint = np.column_stack([spread, _principal(evidence.signal, 8)])
        zero, tail = np.zeros((1, len(evidence.residual))), np.median(evidence.tail, keepdims=True)
        scale = np.sqrt(np.mean(evidence.scale**2, axis=0, keepdims=True))
        method = "laplace"
        found = [_averaged(*_log_evidence(evidence, joint, c, zero, scale, tail)) for c in candidates]
    if not all(np.isfinite(value) for value, _, _ in found):
        return Moved(pd.DataFrame(columns=COLUMNS), "not computed", k, ())
    table = _table(candidates, found)
    return Moved(table, method, k, _probes(table))


COLUMNS = ("explanation", "detail", "probability", "shift", "shift_lower", "shift_upper")


@dataclass(frozen=True)
class _Candidate:
    """An explanation: kind, words, direction (row, 0 or 1), log factor of the noise, each row's own shift, weight."""

    kind: str
    detail: str
    direction: Floats
    wider: float = 0.0
    own: float = 0.0
    log_prior: float = 0.0


def _candidates(evidence: Evidence) -> Sequence[_Candidate]:
    n = len(evidence.residual)
    nothing = np.zeros((n, 0))
    found = [_Candidate("none", "nothing moved", nothing)]
    for name, share in evidence.shares.items():
        if np.linalg.norm(share) > 0.05 * np.sqrt(n):
            found.append(_Candidate(name, LEVELS.get(name, name), SHIFT * share[:, None]))
    found.append(_Candidate("level", "everything alike", SHIFT * np.ones((n, 1))))
    found += [_Candidate("noise", "wider noise", nothing, wider=w, log_prior=-np.log(len(WIDER))) for w in WIDER]
    count = max(len(evidence.subsets), 1)
    for words, rows in evidence.subsets.items():
        found.append(_Candidate("subset", words, SHIFT * rows[:, None], log_prior=-np.log(count)))
    # Every row its own shift: a wrong list of explanations must be seen to be wrong.
    found.append(_Candidate("other", "none of these", nothing, own=SHIFT))
    return found


def _principal(draws: Floats, most: int) -> Floats:
    """Principal directions of draws (draw, row), scaled by their standard deviations: (row, k)."""
    centred = draws - draws.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred / np.sqrt(max(len(draws) - 1, 1)), full_matrices=False)
    keep = np.flatnonzero(sizes > 1e-3 * max(float(sizes.max(initial=0.0)), 1e-9))[:most]
    return np.asarray((axes[keep] * sizes[keep, None]).T)


def _log_evidence(
    evidence: Evidence, spread: Floats, candidate: _Candidate, signal: Floats, scale: Floats, tail: Floats
) -> tuple[Floats, Floats, Floats]:
    """Log evidence of each draw, and mean and deviation of its shift (in units of `SHIFT`), (draw,) each."""
    design = np.column_stack([spread, candidate.direction])
    k = design.shape[1]
    error = evidence.residual - signal
    scale = np.hypot(scale * np.exp(candidate.wider), candidate.own)
    tail = tail[:, None]
    squares = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    mode = np.zeros((len(error), k))
    for _ in range(STEPS):
        left = (error - mode @ design.T) / scale
        weight = (tail + 1) / (tail + left**2) / scale**2
        curvature = (weight @ squares).reshape(-1, k, k) + np.eye(k)
        step = np.linalg.solve(curvature, ((weight * error) @ design)[..., None])[..., 0] - mode
        mode = mode + step
        if np.abs(step).max(initial=0.0) < 1e-4:
            break
    left = (error - mode @ design.T) / scale
    density = gammaln((tail + 1) / 2) - gammaln(tail / 2) - 0.5 * np.log(np.pi * tail) - np.log(scale)
    density = density - (tail + 1) / 2 * np.log1p(left**2 / tail)
    inverse = np.linalg.inv(curvature)
    log_determinant = np.linalg.slogdet(curvature)[1]
    value = density.sum(axis=1) - 0.5 * (mode**2).sum(axis=1) - 0.5 * log_determinant + candidate.log_prior
    if candidate.direction.shape[1] != 1:
        return value, np.full(len(value), np.nan), np.full(len(value), np.nan)
    return value, mode[:, -1], np.sqrt(inverse[:, -1, -1])


def _pareto_k(log_weights: Floats) -> float:
    if len(log_weights) < 100 or np.ptp(log_weights) < 1e-9:
        return 0.0
    return float(array_stats.psislw(log_weights)[1])


def _averaged(value: Floats, mean: Floats, spread: Floats) -> tuple[float, float, float]:
    """Log of the mean evidence, and the shift's moments over draws weighted by it."""
    total = float(logsumexp(value) - np.log(len(value)))
    weight = np.exp(value - logsumexp(value))
    centre = float(weight @ mean)
    return total, centre, float(np.sqrt(weight @ (spread**2 + (mean - centre) ** 2)))


def _table(candidates: Sequence[_Candidate], found: Sequence[tuple[float, float, float]]) -> pd.DataFrame:
    values = np.array([value for value, _, _ in found])
    share = np.exp(values - logsumexp(values))
    rows: dict[str, dict[str, Any]] = {}
    for c, p, (_, centre, spread) in zip(candidates, share, found, strict=True):
        ends = np.expm1(SHIFT * (centre + spread * np.array([0.0, -1.645, 1.645])))
        row = dict(zip(COLUMNS, (c.kind, c.detail, float(p), *map(float, ends)), strict=True))
        old = rows.get(c.kind)
        # Of several of a kind (subsets, widths of the noise) the best speaks for all.
        if old is None:
            rows[c.kind] = {**row, "_best": p}
        else:
            better = row if p > old["_best"] else old
            rows[c.kind] = {**better, "probability": old["probability"] + float(p), "_best": max(p, old["_best"])}
    table = pd.DataFrame(list(rows.values())).drop(columns="_best")
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def _probes(table: pd.DataFrame) -> tuple[str, ...]:
    best = float(table["probability"].iloc[0])
    near = table.loc[table["probability"] > RATIO * best, "explanation"]
    pairs = itertools.combinations(near, 2)
    return tuple(dict.fromkeys(PROBES[frozenset(pair)] for pair in pairs if frozenset(pair) in PROBES))


def what_moved(validation: Validation, group: str, *, seed: int = 0) -> Moved:
    """Weigh the explanations of one group of a validation.

    Parameters
    ----------
    validation
        From `Profile.validate`.
    group
        One of its groups, such as one whose verdict is ``fails``.
    seed
        The same seed gives the same probabilities.

    Raises
    ------
    UnknownNameError
        No such group.
    InputError
        Fewer than three configurations.
    """
    groups = list(validation.groups["group"])
    if group not in groups:
        raise UnknownNameError("group", group, groups)
    rows = validation.rows[validation.rows["group"] == group]
    ids = {name for names in rows["measurement_ids"] for name in names}
    table = with_ids(validate(validation.heldout, source="held-out table"), source="held-out table")
    summary = configurations(table[table["measurement_id"].isin(ids).to_numpy()].reset_index(drop=True))
    if len(summary.first) < 3:
        raise InputError(f"{group} has {len(summary.first)} configurations; what moved needs at least 3 of them")
    profile = validation.profile
    draws = profile.draws(limit=DRAWS)

    def predict(request: Request) -> Predicted:
        # The same random numbers: what differs is the campaign.
        rng = np.random.default_rng(seed)
        encoded, sheets = profile.inference.encoded, profile.spec_sheets
        return profile.model.predict(encoded, draws, summary.first, request, sheets, rng)

    same, fresh = predict(Request(effect="none", own=True)), predict(Request(effect="fresh", own=True))
    mean = same.log_time.mean(axis=0)
    scale = np.sqrt(same.misfit**2 + same.repeat**2 * summary.weight + summary.within * summary.weight)
    return explain(
        Evidence(
            residual=summary.log_time - mean,
            signal=same.log_time - mean,
            campaign=fresh.log_time - same.log_time,
            shares={name: same.shares[name].mean(axis=0) for name in same.shares},
            scale=scale,
            tail=np.asarray(same.tail),
            subsets=subsets_of(summary.first),
        )
    )


def subsets_of(table: pd.DataFrame) -> dict[str, Floats]:
    """Subsets of configurations for which a library may choose another kernel: by operation, and by size."""
    found: dict[str, Floats] = {}
    ops = list(dict.fromkeys(table["op"]))
    if len(ops) > 1:
        for op in ops[:SPLITS]:
            found[f"{op} only"] = (table["op"] == op).to_numpy(float)
    size = np.where(table["flops"] > 0, table["flops"], table["bytes"]).astype(float)
    unit = "FLOP" if (table["flops"] > 0).all() else "work"
    order = np.unique(size)
    if len(order) > 3:
        for cut in order[np.unique(np.linspace(0, len(order) - 1, SPLITS + 2).round().astype(int))][1:-1]:
            found[f"shapes from {cut:.2g} {unit}"] = (size >= cut).astype(float)
            found[f"shapes below {cut:.2g} {unit}"] = (size < cut).astype(float)
    return found
