"""Coordinates in which a large posterior is nearly round, so that NUTS takes short trajectories.

A posterior of many parameters has directions that differ in length by orders of magnitude, and that are no axes: what
raises a rate lowers the discrepancy beside it. A sampler that adapts a scale per axis needs hundreds of gradients for
one draw. Here the mean negative Hessian of the log density over some draws of a short pilot, which is the expected
information (Fisher; Louis, 1982), gives a linear map

    x = mean + scale * (y + V' (w * (V y)))

of the sampler's coordinates y to the parameters x: scales of the axes, and of the few eigenvectors V along which they
are not enough. The density of y is that of x times a constant, so what is sampled stays what it was, whatever the map.
"""

from __future__ import annotations

import ctypes
import dataclasses
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import nutpie

from bayesperf.inference.mapped import Map, mapped
from bayesperf.model import Floats

log = logging.getLogger("bayesperf.fit")

__all__ = ["LARGE", "LARGEST", "precondition"]

LARGE, LARGEST = 240, 3000
"""Dimensions from which this pays, and up to which the eigenvectors of a full matrix are affordable."""

ROUNDS = ((120, 20, 6), (120, 60, 16))
"""Steps of tuning and draws of each chain of a pilot, and the Hessians over which is averaged; the second one runs in
the coordinates that the first one gave, and from its draws."""

DEPTH = 7
"""Doublings of a pilot's trajectories at most: its draws need not be independent."""

STEP = 1e-5
"""Of the differences of gradients that give a Hessian."""

ROUND, SHORTEST = 1.5, 0.005
"""Eigenvalue (or its inverse) from which a direction is stretched, and the smallest that is believed: an average over
few draws knows no direction longer than that."""

MOST_DIRECTIONS = 250


def precondition(compiled: Any, *, chains: int, seed: int, cores: int | None, progress: bool = False) -> Any:
    """Give a compiled model in other coordinates, whose chains begin at draws of a pilot.

    Parameters
    ----------
    compiled
        What nutpie made of a model by Numba; returned as it is where this does not pay.
    chains
        How many will be sampled.
    seed
        Of the pilot.
    cores
        Chains that run at a time; all that the process may use, when None.
    progress
        Show the pilot's progress.
    """
    if not LARGE <= compiled.n_dim <= LARGEST:
        return compiled
    log.info("looking for coordinates in which %d parameters are sampled fast", compiled.n_dim)
    ready = compiled
    where = Map.identity(compiled.n_dim)
    for at, (tune, draws, hessians) in enumerate(ROUNDS):
        points = where(_pilot(ready, chains, tune, draws, seed + at, cores, progress))
        found = _round(_gradient(compiled), points, hessians)
        if found is None:
            return ready
        where = found
        ready = _starting_at(mapped(compiled, where), where.inverse(points))
    return ready


def _pilot(compiled: Any, chains: int, tune: int, draws: int, seed: int, cores: int | None, progress: bool) -> Floats:
    """Draws in the sampler's coordinates, (chain, draw, dimension)."""
    tree = nutpie.sample(
        compiled, draws=draws, tune=tune, chains=chains, cores=cores, seed=seed, save_warmup=False,
        progress_bar=progress, maxdepth=DEPTH, store_unconstrained=True,
    )  # fmt: skip
    return np.asarray(tree["sample_stats"]["unconstrained_draw"].values, dtype=np.float64)


def _starting_at(compiled: Any, points: Floats) -> Any:
    """Let chains begin at some of the points, (chain, draw, dimension)."""
    flat = points.reshape(-1, points.shape[2])

    # By the chain's seed: chains may ask in any order, and the same seed must give the same draws.
    def point(seed: int | None = None) -> Floats:
        return np.asarray(flat[np.random.default_rng(seed).integers(len(flat))])

    return dataclasses.replace(compiled, initial_point_func=point)


def _gradient(compiled: Any) -> Callable[[Floats], Floats | None]:
    """Gradient of the log density at a point; None where it is not finite."""
    function, data, size = compiled.compiled_logp_func.ctypes, compiled.user_data, compiled.n_dim
    pointer = ctypes.POINTER(ctypes.c_double)

    def gradient(x: Floats) -> Floats | None:
        found, value = np.empty(size), np.empty(1)
        x = np.ascontiguousarray(x, dtype=np.float64)
        arguments = (array.ctypes.data_as(pointer) for array in (x, found, value))
        return None if function(size, *arguments, data.ctypes.data) else found

    return gradient


def _information(gradient: Callable[[Floats], Floats | None], x: Floats) -> Floats | None:
    """Negative Hessian at a point, (dimension, dimension), by differences of gradients."""
    here = gradient(x)
    information = np.empty((len(x), len(x)))
    for at in range(len(x)):
        aside = x.copy()
        aside[at] += STEP
        there = gradient(aside)
        if here is None or there is None:
            return None
        information[at] = (here - there) / STEP
    return 0.5 * (information + information.T)


def _round(gradient: Callable[[Floats], Floats | None], draws: Floats, hessians: int) -> Map | None:
    """Coordinates in which draws, (chain, draw, dimension), would be round; None where none of them tells."""
    every = max(draws.shape[0] * draws.shape[1] // hessians, 1)
    flat = draws.swapaxes(0, 1).reshape(-1, draws.shape[2])
    # Compiled code holds no lock.
    with ThreadPoolExecutor() as pool:
        found = [one for one in pool.map(lambda x: _information(gradient, x), flat[::-every]) if one is not None]
    if not found or not np.isfinite(found).all():
        return None
    information = np.mean(found, axis=0)
    diagonal = np.diag(information)
    positive = diagonal > 0
    if not positive.any():
        return None
    # In expectation it is positive; where a few draws say otherwise, next to nothing is known.
    scale = 1.0 / np.sqrt(np.where(positive, diagonal, diagonal[positive].min()))
    values, vectors = np.linalg.eigh(scale[:, None] * information * scale)
    values = np.maximum(values, SHORTEST)
    longest = np.argsort(-np.abs(np.log(values)))[:MOST_DIRECTIONS]
    longest = longest[np.abs(np.log(values[longest])) > np.log(ROUND)]
    return Map(flat.mean(axis=0), scale, np.ascontiguousarray(vectors.T[longest]), values[longest] ** -0.5 - 1.0)
