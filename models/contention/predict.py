"""Predictions: the roofline says what everybody takes alone, the physics what they take beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from bayesperf.configurations import records
from bayesperf.model import Draws, Floats, Predicted, Request
from bayesperf.models.common.labels import Index
from bayesperf.models.contention.alone import BESIDE
from bayesperf.models.contention.catalogue import shape_of
from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.encode import kernel_of, pair_names
from bayesperf.models.contention.levels import LEVELS, row_parameters, scale_of
from bayesperf.models.contention.mixes import Member, code_mixes, cpus_in, members_of
from bayesperf.models.contention.physics import Mix, contend
from bayesperf.models.roofline import Roofline
from bayesperf.models.roofline.encode import footprint
from bayesperf.models.roofline.physics import ABSENT

__all__ = ["Slowdowns", "predict", "slowdowns"]

PORTION = 200_000
"""Draws times rows times members times members that are worked on at a time."""


@dataclass(frozen=True)
class Slowdowns:
    """Log slowdowns of rows beside others, (draw, row) each.

    Parameters
    ----------
    log
        With the error of pairs that were measured.
    wrong
        Scale of that error where the pair was not measured, else 0.
    noise
        Scale of the difference between repeats: of slowdowns where the fitted ones were measured around their mixes,
        else of times beside others.
    alone
        Scale of what is to be added for the time alone, where a slowdown is a ratio of two measurements; 0 where
        `noise` holds it.
    notes
        What had to be assumed.
    """

    log: Floats
    wrong: Floats
    noise: Floats
    alone: Floats
    notes: tuple[str, ...]


def predict(
    encoded: Encoded,
    draws: Draws,
    workloads: pd.DataFrame,
    request: Request,
    targets: pd.DataFrame | None,
    rng: np.random.Generator,
) -> Predicted:
    """See `bayesperf.model.PerformanceModel.predict`."""
    workloads = workloads.reset_index(drop=True)
    victims = workloads.drop(columns=[name for name in BESIDE if name in workloads])
    alone = Roofline().predict(encoded.solo, draws, victims, request, targets, rng)
    beside = _beside(workloads)
    if not beside.any():
        return alone
    rows = np.flatnonzero(beside)
    found = slowdowns(encoded, draws, workloads.iloc[rows], np.median(alone.log_time[:, rows], axis=0), rng)
    slow = np.zeros_like(alone.log_time)
    slow[:, rows] = found.log
    misfit, repeat = alone.misfit.copy(), alone.repeat.copy()
    misfit[:, rows] = np.hypot(misfit[:, rows], found.wrong)
    # A time beside others is one alone times a slowdown where the noise is of slowdowns; else that noise is of it.
    ratios, single = np.hypot(repeat[:, rows], found.noise), np.maximum(repeat[:, rows], found.noise)
    repeat[:, rows] = np.where(found.alone > 0, single, ratios)
    lost = np.where(slow > 0, alone.log_time + np.log(np.maximum(np.expm1(slow), 1e-300)), ABSENT)
    shares = {name: np.asarray(share) * np.exp(-np.maximum(slow, 0.0)) for name, share in alone.shares.items()}
    return replace(
        alone,
        log_time=alone.log_time + slow,
        misfit=misfit,
        repeat=repeat,
        terms={**alone.terms, "interference": np.maximum(lost, ABSENT)},
        shares={**shares, "interference": -np.expm1(-np.maximum(slow, 0.0))},
        notes=(*alone.notes, *found.notes),
    )


def _beside(workloads: pd.DataFrame) -> np.ndarray:
    if "corunners" not in workloads:
        return np.zeros(len(workloads), dtype=bool)
    return np.array([isinstance(label, str) and bool(label.strip()) for label in workloads["corunners"]], dtype=bool)


def slowdowns(
    encoded: Encoded, draws: Draws, workloads: pd.DataFrame, log_time: Floats, rng: np.random.Generator
) -> Slowdowns:
    """Slowdowns of workloads beside others.

    Parameters
    ----------
    encoded, draws
        The fit.
    workloads
        Rows with ``target`` and ``corunners``.
    log_time
        Log time that each is expected to take alone, for those never measured, (row,).
    rng
        Of what was never measured.
    """
    workloads = workloads.reset_index(drop=True)
    mix, ops, notes = _coded(encoded, workloads, log_time)
    targets, names = workloads["target"].tolist(), pair_names(workloads)
    labels = _Extended(encoded, targets, [op for row in ops for op in row])
    notes += labels.notes
    members = mix.count.shape[1]
    op = np.array([[labels.op[o] for o in row] + [0] * (members - len(row)) for row in ops], dtype=np.intp)
    target = np.array([labels.target[name] for name in targets], dtype=np.intp)
    p = labels.extended(draws, rng)
    place = {name: at for at, name in enumerate(encoded.pairs)}
    pair = np.array([place.get(name, -1) for name in names], dtype=np.intp)
    log = _contended(p, target, op, mix)
    wrong = scale_of(np, p, "pair", log, target)
    noise = scale_of(np, p, "noise", log, target)
    apart = np.array([name not in encoded.paired for name in targets])
    known = pair >= 0
    log = log + np.where(known, wrong * p["pair"][:, np.where(known, pair, 0)], 0.0)
    alone = np.where(apart, scale_of(np, p, "noise", 0.0 * log, target), 0.0)
    return Slowdowns(log, np.where(known, 0.0, wrong), noise, alone, tuple(dict.fromkeys(notes)))


def _contended(p: Draws, target: Index, op: Index, mix: Mix) -> Floats:
    """Log slowdowns, (draw, row), in portions that fit into a cache."""
    size, n = len(p["corner"]), len(target)
    found = np.empty((size, n))
    step = max(1, PORTION // (size * mix.count.shape[1] ** 2))
    for start in range(0, n, step):
        at = slice(start, start + step)
        part = Mix(**{name: getattr(mix, name)[at] for name in Mix.__dataclass_fields__})
        found[:, at] = contend(np, row_parameters(np, p, target[at], op[at]), part).total
    return found


def _coded(encoded: Encoded, workloads: pd.DataFrame, log_time: Floats) -> tuple[Mix, list[list[str]], list[str]]:
    sizes, notes = footprint(workloads), list[str]()
    victims, beside, ops = [], list[Sequence[Member]](), list[list[str]]()
    targets = workloads["target"].tolist()
    for at, row in enumerate(records(workloads)):
        target = targets[at]
        places = encoded.places.get(target)
        known = encoded.catalogue.exact(target, shape_of(row))
        alone = known.log_time if known else float(log_time[at])
        threads = known.threads if known else encoded.catalogue.threads(target, row["op"], row["flops"], row["bytes"])
        cpus = cpus_in(row.get("cpus")) or (places.victim if places else None)
        victims.append((kernel_of(row, float(sizes[at]), alone, threads), cpus))
        members, said = members_of(target, row, encoded.catalogue, places)
        if places and not isinstance(row.get("corunner_cpus"), str):
            said.append(f"processes on {target} placed as when it was measured")
        beside.append(members)
        ops.append([str(row["op"]), *(m.kernel.op for m in members)])
        notes += said
    return code_mixes(targets, victims, beside, encoded.rates), ops, notes


class _Extended:
    """Targets and operations of a fit, and behind them those that it has never seen beside others."""

    def __init__(self, encoded: Encoded, targets: Sequence[str], ops: Sequence[str]):
        self.target = {name: at for at, name in enumerate(dict.fromkeys([*encoded.targets, *targets]))}
        self.op = {name: at for at, name in enumerate(dict.fromkeys([*encoded.ops, *ops]))}
        self._targets, self._ops = len(encoded.targets), len(encoded.ops)
        new = list(self.target)[self._targets :]
        self.notes = [f"{name}: nothing ran beside others there; contention as of targets in general" for name in new]

    def extended(self, draws: Draws, rng: np.random.Generator) -> dict[str, Floats]:
        """Draws with new members, each from the level above."""
        p = {name: np.asarray(values, dtype=float) for name, values in draws.items()}
        size = len(p["corner"])
        for name in LEVELS:
            new = rng.standard_normal((size, len(self.target) - self._targets))
            spread, common = p[f"{name}_spread"].reshape(-1, 1), p[f"{name}_common"].reshape(-1, 1)
            p[name] = np.concatenate([p[name], common + spread * new], axis=1)
        for name in ("demand_effect", "victim_effect"):
            new = rng.standard_normal((size, len(self.op) - self._ops))
            p[name] = np.concatenate([p[name], p[f"{name}_spread"].reshape(-1, 1) * new], axis=1)
        return p
