"""The PyMC model: the roofline of what ran alone, and beside it what taking turns and sharing add.

A row beside others is compared with the same work *measured* alone, so that what the roofline gets wrong about a kernel
does not pass for contention; how much of each resource the members use follows from the times that they take alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.levels import LEVELS, row_parameters, scale_of
from bayesperf.models.contention.physics import contend
from bayesperf.models.contention.priors import PRIORS
from bayesperf.models.roofline import build as roofline
from bayesperf.models.roofline.coded import Encoded as Solo
from bayesperf.models.roofline.hierarchy import lacking_variance, members_of, row_terms
from bayesperf.models.roofline.physics import smooth_roofline
from bayesperf.models.roofline.predictor import rebound

__all__ = ["add_contention", "build"]

MIN_TARGETS = 3
"""Of fewer targets the spread between them is not learned but fixed at its prior."""


def build(encoded: Encoded) -> pm.Model:
    """Build the model of a coded table."""

    def likelihood(solo: Solo, p: dict[str, Any]) -> None:
        log_time, variance, scatter = _solo(solo, p)
        found = add_contention(encoded)
        mean, scale, noise = found["mean"], found["scale"], found["noise"]
        beside = encoded.beside
        observed = np.concatenate([solo.log_time, beside.log_time])
        pm.StudentT(
            "log_time",
            nu=p["tail"],
            mu=pt.concatenate([log_time, mean]),
            sigma=pt.concatenate([pt.sqrt(variance), scale]),
            observed=_observed("observed_log_time", observed, "observation"),
            dims="observation",
        )
        repeats = encoded.beside.scatter
        if len(repeats.row):
            widened = noise[repeats.row] ** 2 * p["tail"] / (p["tail"] - 2.0) + repeats.within
            scatter.append((repeats.dof, widened, repeats.square))
        if scatter:
            dof, expected, square = zip(*scatter, strict=True)
            pm.Gamma(
                "scatter",
                alpha=np.concatenate(dof) / 2.0,
                beta=0.5 / pt.concatenate(list(expected)),
                observed=_observed("observed_scatter", np.concatenate(square), "repeated"),
                dims="repeated",
            )

    def coords(solo: Solo) -> dict[str, Any]:
        repeated = len(solo.scatter.dof) + len(encoded.beside.scatter.dof)
        observations = [ids[0] for ids in (*solo.ids, *encoded.beside.ids)]
        return {**roofline.coords_of(solo), "observation": observations, "repeated": np.arange(repeated)}

    # The roofline's own build, with a likelihood that has more rows.
    with_mixes = rebound(roofline.build, _likelihood=likelihood, coords_of=coords)
    model: pm.Model = with_mixes(encoded.solo)
    return model


def _solo(encoded: Solo, p: Mapping[str, Any]) -> tuple[Any, Any, list[tuple[Any, Any, Any]]]:
    """Mean and variance of the rows that ran alone, as the roofline has them, and what their repeats tell."""
    codes, members = encoded.codes, members_of(encoded.labels)
    log_time = smooth_roofline(pt, *row_terms(pt, p, codes, members, encoded.sheets), p["sharpness"])
    if "campaign" in p:
        log_time = log_time + p["campaign"][codes.campaign]
    variance = p["misfit"][codes.noise] ** 2 + encoded.within + lacking_variance(p, codes, members)
    if "repeat" not in p:
        return log_time, variance, []
    variance = variance + p["repeat"][codes.noise] ** 2 * encoded.repeat_weight
    scatter = encoded.scatter
    expected = p["repeat"][scatter.noise] ** 2 * p["tail"] / (p["tail"] - 2.0) + scatter.within
    return log_time, variance, [(scatter.dof, expected, scatter.square)]


def add_contention(encoded: Encoded) -> dict[str, Any]:
    """Add the parameters of contention to the model at hand.

    Returns
    -------
    dict
        ``mean`` and ``scale`` of each mix's log time and the ``noise`` between its repeats, (row,).
    """
    beside, model = encoded.beside, pm.modelcontext(None)
    model.add_coords({"shared": encoded.targets, "member_op": encoded.ops, "pairing": encoded.pairs})
    p: dict[str, Any] = {name: _level(name, len(encoded.targets)) for name in LEVELS}
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
    return {
        "mean": beside.base + slowdown + wrong * pair[beside.pair],
        "scale": pt.sqrt(noise**2 * beside.repeat_weight + beside.within),
        "noise": noise,
    }


def _level(name: str, targets: int) -> Any:
    """A parameter of every target: what targets have in common, and what each has of its own."""
    (location, scale), spread = LEVELS[name]
    common = pm.Normal(f"{name}_common", location, scale)
    if targets >= MIN_TARGETS:
        width = pm.LogNormal(f"{name}_spread", np.log(spread), 0.5)
    else:
        width = pm.Deterministic(f"{name}_spread", pt.as_tensor(np.float64(spread)))
    own = pm.Normal(f"{name}_raw", 0.0, 1.0, dims="shared")
    return pm.Deterministic(name, common + width * own, dims="shared")


def _observed(name: str, values: Any, dim: str) -> Any:
    # With its shape in its type, or checks of it at run time would take seconds to compile.
    return pm.Data(name, values, dims=dim, shape=values.shape)
