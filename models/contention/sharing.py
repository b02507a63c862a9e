"""Do processes on a target take turns, or do they share? A posterior probability, undecided where rows cannot tell.

Taking turns costs the sum of the others' turns, whatever they do: a slowdown of ``1 + w n``. Sharing costs only what is
asked for twice: a partner that uses what one leaves costs nothing. Equal saturating partners give n either way, so only
rows beside complementary ones decide, and without them the verdict is undecided whatever the numbers say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from scipy.stats import norm as normal
from scipy.stats import qmc, t

from bayesperf.model import Floats
from bayesperf.models.contention.coded import Beside, Encoded
from bayesperf.models.contention.physics import RESOURCES, Mix, contend
from bayesperf.models.contention.priors import PRIORS

__all__ = ["Sharing", "compare", "sentences", "sharing", "sharing_of"]

DRAWS = 4096
"""Points of the prior over which each explanation is averaged."""

CERTAIN = 0.95
"""Probability from which a verdict is given."""

APART = 0.3
"""Log by which turns must cost more than sharing for a partner to be complementary."""

ALIKE = 0.7
"""Cosine of the demands of both from which a partner is not complementary, whatever else."""

EXPECTED, EXPECTED_FREEDOM = 0.07, 2.0
"""Standard deviation of a log slowdown measured once, before any is seen, and how many differences that is worth."""

TAIL = 8.0
"""Degrees of freedom of the noise."""


@dataclass(frozen=True)
class Sharing:
    """Verdict on one target.

    Parameters
    ----------
    target
        Which.
    slicing
        Posterior probability that its processes take turns, even odds before; 0.5 without complementary partners.
    verdict
        ``slicing``, ``sharing`` or ``undecided``.
    rows, complementary
        Pairs of a victim and a mix, and how many of them could tell.
    """

    target: str
    slicing: float
    verdict: str
    rows: int
    complementary: int


def sharing(encoded: Encoded) -> pd.DataFrame:
    """Verdicts on every target of a coded table; columns as `Sharing` has them."""
    return pd.DataFrame([vars(found) for found in sharing_of(encoded)])


def sharing_of(encoded: Encoded) -> list[Sharing]:
    """Verdicts on every target that others ran on beside a victim."""
    return [_of_target(encoded.beside, at, target) for at, target in enumerate(encoded.targets)]


def _of_target(beside: Beside, at: int, target: str) -> Sharing:
    mine = (beside.target == at) & _telling(beside.mix)
    # Repeats and campaigns of one pair share what the model gets wrong about it.
    first, code = np.unique(beside.pair[mine], return_index=True)[1], beside.pair[mine]
    chosen = np.flatnonzero(mine)[first]
    if not len(chosen):
        return Sharing(target, 0.5, "undecided", 0, 0)
    slow = (beside.log_time - beside.base)[mine]
    groups = [slow[code == beside.pair[row]] for row in chosen]
    log = np.array([np.median(values) for values in groups])
    return compare(target, _part(beside.mix, chosen), log, _scatter(groups))


def _scatter(groups: Sequence[Floats]) -> Floats:
    """Standard deviation of every group's median, from the scatter of all and what is expected of it, (group,)."""
    squares = sum(float(((values - values.mean()) ** 2).sum()) for values in groups)
    freedom = sum(len(values) - 1 for values in groups)
    one = np.sqrt((EXPECTED_FREEDOM * EXPECTED**2 + squares) / (EXPECTED_FREEDOM + freedom))
    return np.array([one / np.sqrt(len(values)) for values in groups])


def _telling(mix: Mix) -> np.ndarray:
    """Rows whose processes would not have to take turns by their number alone, or that share one processor."""
    crowd = (mix.others[:, 0] * mix.overlap[:, 0] * mix.load).sum(axis=1) + mix.load[:, 0]
    capacity = mix.capacity[:, 0]
    return np.asarray(np.isnan(capacity) | (capacity <= 1.0) | (crowd <= capacity + 0.1), dtype=bool)


def compare(target: str, mix: Mix, log_slowdown: Floats, scatter: Floats) -> Sharing:
    """Compare both explanations of log slowdowns and their standard deviations, (row,) each, one row per pair."""
    mix = replace(mix, capacity=np.full_like(mix.capacity, np.nan), overlap=np.ones_like(mix.overlap))
    others = mix.others[:, 0].sum(axis=1)
    turns = np.log1p(others)
    shared = contend(np, _plain(len(others), mix.count.shape[1]), mix).total[0]
    tells = (turns - shared > APART) & (_alike(mix) < ALIKE)
    if not tells.any():
        return Sharing(target, 0.5, "undecided", len(others), 0)
    evidence = [
        _evidence(mean, log_slowdown, spread * scatter, tells) for mean, spread in (_slicing(others), _sharing(mix))
    ]
    slicing = float(1.0 / (1.0 + np.exp(np.clip(evidence[1] - evidence[0], -50.0, 50.0))))
    verdict = "slicing" if slicing >= CERTAIN else "sharing" if slicing <= 1.0 - CERTAIN else "undecided"
    return Sharing(target, slicing, verdict, len(others), int(tells.sum()))


def _alike(mix: Mix) -> Floats:
    """Cosine between what a victim uses and what all others do together, (row,)."""
    use = np.stack([getattr(mix, name) for name in RESOURCES], axis=-1)
    victim, others = use[:, 0], (mix.others[:, 0, :, None] * use).sum(axis=1)
    size = np.linalg.norm(victim, axis=1) * np.linalg.norm(others, axis=1)
    return np.asarray((victim * others).sum(axis=1) / np.maximum(size, 1e-12))


def _evidence(mean: Floats, log_slowdown: Floats, noise: Floats, tells: np.ndarray) -> float:
    """Log likelihood of the rows that tell, given the others, under an explanation's predictions, (draw, row).

    Equal partners prove neither, but they say how much each explanation's resource holds and loses: complementary ones
    are judged by what follows from that, not by all that is possible anywhere.
    """
    scale = np.sqrt(noise**2 + (np.exp(PRIORS.pair_slope[0]) * mean) ** 2)
    log = t.logpdf(log_slowdown, TAIL, mean, scale)
    return float(logsumexp(log.sum(axis=1)) - logsumexp(log[:, ~tells].sum(axis=1)))


def _points(dimensions: int) -> Floats:
    return np.asarray(normal.ppf(qmc.Halton(dimensions, seed=1).random(DRAWS)))


def _spread(z: Floats) -> Floats:
    """What the noise may be, relative to what the scatter says: 30 % either way, (draw, 1)."""
    return np.exp(0.3 * z)


def _slicing(others: Floats) -> tuple[Floats, Floats]:
    z = _points(2)
    location, scale = PRIORS.turn_weight
    weight = np.exp(location + scale * z[:, :1])
    return np.log1p(weight * others), _spread(z[:, 1:2])


def _sharing(mix: Mix) -> tuple[Floats, Floats]:
    z = _points(9)
    rows, members = mix.count.shape

    def of(at: int, prior: tuple[float, float], spread: float = 0.0) -> Floats:
        return np.asarray(prior[0] + np.hypot(prior[1], spread) * z[:, at : at + 1])

    effect = np.exp(PRIORS.effect[0])
    own = effect * np.broadcast_to(z[:, 7:8, None], (len(z), rows, members))
    p = _plain(rows, members) | {
        "compute_room": 1.0 + np.exp(of(0, PRIORS.compute_room, PRIORS.room_spread)),
        "memory_room": 1.0 + np.exp(of(1, PRIORS.memory_room, PRIORS.room_spread)),
        "compute_loss": np.exp(of(2, PRIORS.loss, PRIORS.loss_spread)),
        "memory_loss": np.exp(of(3, PRIORS.loss, PRIORS.loss_spread)),
        "private_bytes": of(4, PRIORS.private_bytes, PRIORS.private_bytes_spread),
        "cache_taken": 1.0 / (1.0 + np.exp(-of(5, PRIORS.cache_taken, PRIORS.cache_taken_spread))),
        "corner": 1.0 + np.exp(of(6, PRIORS.corner)),
        "demand_effect": own,
    }
    return contend(np, p, mix).total, _spread(z[:, 8:9])


def _plain(rows: int, members: int) -> dict[str, Floats]:
    """A device of which everything is shared and nothing is lost, with room for everybody's turns."""
    one, each = np.ones((1, 1)), np.zeros((1, rows, members))
    return {
        "turn_weight": 0.0 * one, "turn_capacity": 1e9 * one, "turn_corner": 8.0 * one, "corner": 5.0 * one,
        **dict.fromkeys([f"{name}_room" for name in RESOURCES], one),
        **dict.fromkeys([f"{name}_loss" for name in RESOURCES], 0.0 * one),
        "private_bytes": 0.0 * one, "cache_taken": 0.0 * one, "demand_effect": each, "victim_effect": each,
    }  # fmt: skip


def _part(mix: Mix, rows: np.ndarray) -> Mix:
    return Mix(**{name: getattr(mix, name)[rows] for name in Mix.__dataclass_fields__})


def sentences(found: Sequence[Sharing]) -> list[str]:
    """Say the verdicts in plain words."""
    said = []
    for one in found:
        if one.verdict == "slicing":
            words = f"processes take turns on {one.target} (time slicing, probability {one.slicing:.2f})"
        elif one.verdict == "sharing":
            words = f"processes run at the same time on {one.target} (sharing, probability {1 - one.slicing:.2f})"
        elif not one.complementary:
            words = (
                f"whether processes take turns on {one.target} or share it is undecided: no aggressor uses what a "
                "victim leaves; measure a compute-bound victim beside a memory-bound aggressor"
            )
        else:
            words = f"whether processes take turns on {one.target} is undecided (probability {one.slicing:.2f})"
        said.append(f"{words[0].upper()}{words[1:]}.")
    return said
