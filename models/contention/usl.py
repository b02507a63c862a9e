"""Equal processes on one target, 1 to n: Gunther's universal scalability law, from the same rows.

Throughput ``X(n) = n / (1 + sigma (n - 1) + kappa n (n - 1))`` relative to one process, so that each of n equal
processes takes ``1 + sigma (n - 1) + kappa n (n - 1)`` times as long as alone: sigma is what they queue for, kappa what
each pair of them costs. It is a summary of equal processes; mixes follow from demands (see `physics`), never from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t

from bayesperf.model import Floats
from bayesperf.models.contention.coded import Beside, Encoded

__all__ = ["scalability"]

SIGMA, KAPPA, NOISE = np.linspace(0.0, 1.5, 151), np.linspace(0.0, 0.5, 101), np.geomspace(0.005, 0.3, 12)
"""Grid of the posterior: every value is as likely before, noise on the log scale."""

TAIL = 5.0
"""Degrees of freedom of the noise."""


@dataclass(frozen=True)
class _Sweep:
    target: str
    op: str
    n: Floats
    log: Floats


def scalability(encoded: Encoded, interval: float = 0.9) -> pd.DataFrame:
    """Fit the law to every victim that ran beside equals, at two numbers of processes or more.

    Returns
    -------
    DataFrame
        One row per target and kernel: target, op, processes (largest n), rows, and of sigma and kappa the posterior
        median and the ends of the interval (``sigma``, ``sigma_lower``, ``sigma_upper``, ...); ``misfit`` is the root
        mean square of what the law leaves of log slowdowns.
    """
    found = [
        {
            "target": sweep.target,
            "op": sweep.op,
            "processes": int(sweep.n.max()),
            "rows": len(sweep.n),
            **_fitted(sweep, interval),
        }
        for sweep in _sweeps(encoded)
    ]
    columns = ["target", "op", "processes", "rows", "sigma", "sigma_lower", "sigma_upper", "kappa", "kappa_lower"]
    return pd.DataFrame(found, columns=[*columns, "kappa_upper", "misfit"])


def _sweeps(encoded: Encoded) -> list[_Sweep]:
    beside = encoded.beside
    equal = np.flatnonzero(_equal(beside))
    kernel = np.round(beside.mix.log_bytes[:, 0], 6)
    groups: dict[tuple[int, int, float], list[int]] = {}
    for row in equal:
        groups.setdefault((int(beside.target[row]), int(beside.op[row, 0]), float(kernel[row])), []).append(int(row))
    found = []
    for (target, op, _), members in groups.items():
        rows = np.array(members)
        n = 1.0 + beside.mix.others[rows, 0].sum(axis=1)
        if len(np.unique(n)) > 1:
            log = beside.log_time[rows] - beside.base[rows]
            found.append(_Sweep(encoded.targets[target], encoded.ops[op], n, log))
    return found


def _equal(beside: Beside) -> np.ndarray:
    """Rows whose aggressors all are what the victim is."""
    mix = beside.mix
    same = (beside.op == beside.op[:, :1]) & np.isclose(mix.log_bytes, mix.log_bytes[:, :1], atol=1e-6)
    return np.asarray((same | (mix.count == 0)).all(axis=1), dtype=bool)


def _fitted(sweep: _Sweep, interval: float) -> dict[str, float]:
    sigma, kappa = np.meshgrid(SIGMA, KAPPA, indexing="ij")
    n = sweep.n[:, None, None]
    mean = np.log1p(sigma * (n - 1) + kappa * n * (n - 1))
    standard = (sweep.log[:, None, None] - mean)[..., None] / NOISE
    log = (t.logpdf(standard, TAIL) - np.log(NOISE)).sum(axis=0)
    weight = np.exp(log - log.max()).sum(axis=-1)
    weight /= weight.sum()
    tail = (1.0 - interval) / 2.0
    found: dict[str, float] = {}
    for name, values, axis in (("sigma", SIGMA, 1), ("kappa", KAPPA, 0)):
        cumulated = np.cumsum(weight.sum(axis=axis))
        for suffix, level in (("", 0.5), ("_lower", tail), ("_upper", 1.0 - tail)):
            found[f"{name}{suffix}"] = float(values[min(int(np.searchsorted(cumulated, level)), len(values) - 1)])
    best = np.log1p(found["sigma"] * (sweep.n - 1) + found["kappa"] * sweep.n * (sweep.n - 1))
    return {**found, "misfit": float(np.sqrt(np.mean((sweep.log - best) ** 2)))}
