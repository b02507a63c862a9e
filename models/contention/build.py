"""The PyMC model: the roofline of what ran alone, and beside it what taking turns and sharing add.

A row beside others is compared with the same work *measured* alone, so that what the roofline gets wrong about a kernel
does not pass for contention; how much of each resource the members use follows from the times that they take alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayesperf.models.common.cells import cells, level_spread
from bayesperf.models.common.observed import Part, observe
from bayesperf.models.contention.coded import Beside, Encoded
from bayesperf.models.contention.levels import LEVELS, TAIL, row_parameters, scale_of
from bayesperf.models.contention.physics import contend
from bayesperf.models.contention.priors import PRIORS
from bayesperf.models.roofline import build as roofline

__all__ = ["build", "build_contention"]

ENOUGH = 6
"""Mixes or repeats from which a target's own scale is determined by them: it is sampled centred."""


def build(encoded: Encoded) -> pm.Model:
    """Build the model of a coded table."""
    return roofline.build(encoded.solo, beside=lambda: _observed(encoded))


def build_contention(encoded: Encoded) -> pm.Model:
    """Build the part of it that is contention's: nothing there depends on the roofline's parameters."""
    with pm.Model(check_bounds=False) as model:
        observe([_observed(encoded)])
    return model


def _observed(encoded: Encoded) -> Part:
    """Add the parameters of contention to the model at hand; returns what they say of the mixes."""
    beside, model = encoded.beside, pm.modelcontext(None)
    model.add_coords({"shared": encoded.targets, "member_op": encoded.ops, "pairing": encoded.pairs})
    p: dict[str, Any] = {name: _level(name, known) for name, known in _informed(encoded).items()}
    p["corner"] = pm.Normal("corner", *PRIORS.corner)
    p["turn_corner"] = pm.Normal("turn_corner", *PRIORS.turn_corner)
    for name in ("demand_effect", "victim_effect"):
        spread = pm.LogNormal(f"{name}_spread", *PRIORS.effect)
        p[name] = pm.Deterministic(
            name, spread * pm.Normal(f"{name}_raw", 0.0, 1.0, dims="member_op"), dims="member_op"
        )
    p["pair_slope"] = pm.LogNormal("pair_slope", *PRIORS.pair_slope)
    p["noise_slope"] = pm.LogNormal("noise_slope", *PRIORS.noise_slope)
    slowdown = contend(pt, row_parameters(pt, p, beside.target, beside.op), beside.mix).total
    wrong = scale_of(pt, p, "pair", slowdown, beside.target)
    pair = pm.Normal("pair", 0.0, 1.0, dims="pairing")
    noise = scale_of(pt, p, "noise", slowdown, beside.target)
    mean = beside.base + slowdown + wrong * pair[beside.pair] + _error_alone(p, beside)
    variance = noise**2 * beside.repeat_weight + beside.within
    return Part(beside.ids, beside.log_time, mean, variance, beside.scatter, noise[beside.scatter.cell], TAIL)


def _error_alone(p: dict[str, Any], beside: Beside) -> Any:
    """Errors of times alone, (row,): of one measurement the same in all mixes that are compared with it."""
    apart = beside.alone_known + beside.alone_weight > 0
    if not apart.any():
        return 0.0
    pm.modelcontext(None).add_coords({"time_alone": np.arange(1 + beside.alone.max())})
    error = pm.Normal("alone_error", 0.0, 1.0, dims="time_alone")
    variance = pt.exp(2.0 * p["noise"][beside.target]) * beside.alone_weight + beside.alone_known
    # The root of 0 has no gradient.
    return pt.sqrt(pt.switch(apart, variance, 1.0)) * apart * error[beside.alone]


def _informed(encoded: Encoded) -> dict[str, npt.NDArray[np.bool_]]:
    """Which targets determine each parameter clearly, (target,) each: the scales of what is wrong about pairs and of
    noise, by enough of them; of the others nothing is claimed.
    """
    beside, n = encoded.beside, len(encoded.targets)
    first = np.unique(beside.pair, return_index=True)[1]
    rows, pairs = np.bincount(beside.target, minlength=n), np.bincount(beside.target[first], minlength=n)
    known = {name: np.zeros(n, dtype=bool) for name in LEVELS}
    return known | {"pair_scale": pairs >= ENOUGH, "noise": rows - pairs >= ENOUGH}


def _level(name: str, informed: npt.NDArray[np.bool_]) -> Any:
    """A parameter of every target: what targets have in common, and what each has of its own."""
    (location, scale), spread = LEVELS[name]
    common = pm.Normal(f"{name}_common", location, scale)
    width = level_spread(f"{name}_spread", spread, len(informed))
    return cells(name, common, width, informed, "shared")
