"""What a roofline gets wrong systematically: a low-rank Gaussian process per operation, in the logs of what it does and
of its shape.

    delta(x) = phi(x) . c_cell,   c_cell ~ N(c_op, scale_cell),   c_op ~ N(0, scale_op)

phi are the features of a squared-exponential kernel on a few inducing points, chosen by pivoted Cholesky among the
measured configurations of the operation: ``phi(x) = L^-1 k(Z, x)`` with ``L L' = k(Z, Z)``, so that ``phi . phi'`` is
the Nystroem approximation of the kernel (Quinonero-Candela and Rasmussen, 2005). The variance that it lacks,
``1 - |phi(x)|^2``, is added to each row as FITC does: between measured configurations it is small, far from them all
phi vanish, delta reverts to zero, and the prediction widens by the whole scale. c_op is common to all targets (it is
how the formulas of an operation miss), the rest of c_cell belongs to one.

phi is centred over the measured rows, by the share of their time that is work: the mean error of an operation is its
rate and its bandwidth, which delta must not eat (Plumlee, 2017). Then it is rotated to its principal axes over the same
rows, which changes nothing of the prior and makes the coefficients nearly uncorrelated in the posterior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.model import Floats
from bayesperf.models.roofline.priors import PRIORS
from bayesperf.schema import SHAPE_COLUMNS

__all__ = ["RANK", "Basis", "basis_of", "evaluate", "features_of", "process", "rank_of"]

WORK = ("flops", "bytes", "parallelism")

RANK = 24
"""Inducing points of an operation, at most."""

MIN_CONFIGURATIONS = 32
"""From how many distinct configurations of an operation a shape can be told from noise."""

TOLERANCE = 1e-3
"""Share of the kernel's variance left at every measured configuration from which further points add nothing."""

_JITTER = 1e-8

_LEAST_WEIGHT = 1e-3
"""Weight of a row that is all overhead; not zero, as an operation may have no others."""


@dataclass(frozen=True)
class Basis:
    """Features of one operation.

    Parameters
    ----------
    points
        Inducing points in scaled features, (rank, feature).
    whiten
        Inverse Cholesky factor of their kernel matrix, rotated, (rank, rank).
    centre
        Mean of phi over the measured rows, (rank,).
    typical
        Mean features of the measured rows, taken where a workload does not tell its shape; NaN where none did,
        (feature,).
    common
        Whether several targets show it, so that what they share can be told from what is one target's own.
    """

    points: Floats
    whiten: Floats
    centre: Floats
    typical: Floats
    common: bool


def features_of(table: pd.DataFrame) -> Floats:
    """Logs of FLOP, bytes, parallelism and every shape column, each over its length scale, (row, feature).

    Intensity and size both show as differences of the first two. Of these, what is absent or unknown is 0 throughout; a
    shape that is not told is NaN.
    """
    names = (*WORK, *SHAPE_COLUMNS)
    features = np.full((len(table), len(names)), np.nan)
    features[:, : len(WORK)] = 0.0
    for at, name in enumerate(names):
        if name in table:
            values = table[name].to_numpy(float)
            known = np.isfinite(values) & (values > 0)
            length = PRIORS.discrepancy_length if name in WORK else PRIORS.discrepancy_shape_length
            features[known, at] = np.log(values[known]) / length
    return features


def basis_of(features: Floats, weight: Floats, *, common: bool) -> Basis | None:
    """Basis of an operation; None where too few configurations were measured.

    Parameters
    ----------
    features
        Of its rows, (row, feature).
    weight
        How much of each row's time is work, so that an error of it shows, (row,).
    common
        As in `Basis`.
    """
    told = ~np.isnan(features)
    typical = np.where(told, features, 0.0).sum(axis=0) / np.where(told.any(axis=0), told.sum(axis=0), np.nan)
    features = _complete(features, typical)
    distinct = np.unique(features, axis=0)
    if len(distinct) < MIN_CONFIGURATIONS:
        return None
    points = distinct[_pivots(distinct, min(RANK, len(distinct) // 4))]
    kernel = _kernel(points, points) + _JITTER * np.eye(len(points))
    whiten = np.linalg.inv(np.linalg.cholesky(kernel))
    phi = _kernel(features, points) @ whiten.T
    weight = np.maximum(weight, _LEAST_WEIGHT)
    centre = np.average(phi, axis=0, weights=weight)
    _, axes = np.linalg.eigh(np.cov(phi, rowvar=False, aweights=weight))
    axes = axes[:, ::-1]
    return Basis(points, axes.T @ whiten, centre @ axes, typical, common)


def rank_of(bases: Mapping[str, Basis]) -> int:
    """Features of the richest operation; the others have zeros behind their own."""
    return max((len(basis.points) for basis in bases.values()), default=0)


def evaluate(bases: Mapping[str, Basis], op: npt.NDArray[np.object_], features: Floats) -> tuple[Floats, Floats]:
    """Features of rows, (row, rank), and the share of variance they lack, (row,); 0 for operations without a basis."""
    phi, lacking = np.zeros((len(op), rank_of(bases))), np.zeros(len(op))
    for name, basis in bases.items():
        rows = np.flatnonzero(op == name)
        if len(rows):
            plain = _kernel(_complete(features[rows], basis.typical), basis.points) @ basis.whiten.T
            phi[rows, : len(basis.points)] = plain - basis.centre
            lacking[rows] = np.clip(1.0 - (plain**2).sum(axis=1), 0.0, 1.0)
    return phi, lacking


def process(xp: Any, coefficients: Any, cell: npt.NDArray[np.intp], phi: Floats) -> Any:
    """Value of a process at rows, (..., row), from coefficients, (..., cell, rank); where a cell is -1, phi are 0."""
    cell = np.maximum(cell, 0)
    if xp is not np:
        return (coefficients[..., cell, :] * phi).sum(axis=-1)
    # The same, without coefficients repeated for every row and draw.
    values = np.empty((*coefficients.shape[:-2], len(cell)))
    for code in np.unique(cell):
        rows = np.flatnonzero(cell == code)
        values[..., rows] = coefficients[..., code, :] @ phi[rows].T
    return values


def _complete(features: Floats, typical: Floats) -> Floats:
    """Shapes that are not told taken as typical; those that no measured row told do not count."""
    return np.where(np.isnan(typical), 0.0, np.where(np.isnan(features), typical, features))


def _kernel(a: Floats, b: Floats) -> Floats:
    square = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1)
    return np.asarray(np.exp(-0.5 * square))


def _pivots(points: Floats, most: int) -> list[int]:
    """Pivoted Cholesky: the points that explain most of what is left, one by one."""
    left, factor, chosen = np.ones(len(points)), np.zeros((len(points), most)), list[int]()
    for step in range(most):
        at = int(np.argmax(left))
        if left[at] < TOLERANCE:
            break
        column = _kernel(points, points[at : at + 1])[:, 0] - factor[:, :step] @ factor[at, :step]
        factor[:, step] = column / np.sqrt(left[at])
        left = np.maximum(left - factor[:, step] ** 2, 0.0)
        chosen.append(at)
    return chosen
