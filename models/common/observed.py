"""What was observed of configurations, and its likelihood: Student-t of log times, gamma of the scatter of repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesperf.configurations import Configurations
from bayesperf.model import Floats
from bayesperf.models.common.labels import Index

__all__ = ["Part", "Scatter", "observe", "scatter_of", "widened"]


@dataclass(frozen=True)
class Scatter:
    """Scatter of repeats: one entry per observation with at least two.

    Parameters
    ----------
    cell
        Code of what has a scale between repeats of its own, (entry,).
    dof
        Repeats less one, (entry,).
    square
        Sum of squared deviations of log time from their mean, (entry,).
    within
        Mean squared relative standard error inside a process, (entry,).
    """

    cell: Index
    dof: Floats
    square: Floats
    within: Floats


def scatter_of(summary: Configurations, cell: Index) -> Scatter:
    """Scatter of the configurations that were repeated, of the `cell` of each, (configuration,)."""
    repeated = summary.count > 1
    return Scatter(cell[repeated], summary.count[repeated] - 1.0, summary.square[repeated], summary.within[repeated])


def widened(scale: Any, tail: Any, within: Floats) -> Any:
    """Variance of repeats of Student-t noise of a `scale`: its square times nu / (nu - 2), and what shows inside."""
    return scale**2 * tail / (tail - 2.0) + within


@dataclass(frozen=True)
class Part:
    """Observations and what a model says of them.

    Parameters
    ----------
    ids
        Measurements behind each, the first one names it.
    log_time
        Observed, log seconds, (observation,).
    mean, variance
        Of log time, the squared scale of the noise, (observation,).
    scatter
        Of repeats.
    repeat
        Scale between repeats of each entry of it, (entry,); None where there are none.
    tail
        Degrees of freedom of the noise.
    """

    ids: Sequence[Sequence[str]]
    log_time: Floats
    mean: Any
    variance: Any
    scatter: Scatter
    repeat: Any
    tail: Any


def observe(parts: Sequence[Part]) -> None:
    """Add the likelihood of all parts to the model at hand: ``log_time``, and ``scatter`` where anything was repeated.

    Observations are data, so that a compiled model can be given another simulated set.
    """
    import pymc as pm
    import pytensor.tensor as pt

    model = pm.modelcontext(None)
    log_time = np.concatenate([part.log_time for part in parts])
    model.add_coords({"observation": [ids[0] for part in parts for ids in part.ids]})
    pm.StudentT(
        "log_time",
        nu=_joined(pt, [part.tail if len(parts) == 1 else pt.full((len(part.log_time),), part.tail) for part in parts]),
        mu=_joined(pt, [part.mean for part in parts]),
        sigma=pt.sqrt(_joined(pt, [part.variance for part in parts])),
        observed=_data(pm, "observed_log_time", log_time, "observation"),
        dims="observation",
    )
    repeated = [part for part in parts if len(part.scatter.dof)]
    square, dof = (
        np.concatenate([getattr(part.scatter, name) for part in repeated] or [np.zeros(0)])
        for name in ("square", "dof")
    )
    model.add_coords({"repeated": np.arange(len(dof))})
    if repeated:
        expected = [widened(part.repeat, part.tail, part.scatter.within) for part in repeated]
        observed = _data(pm, "observed_scatter", square, "repeated")
        pm.Gamma("scatter", alpha=dof / 2.0, beta=0.5 / _joined(pt, expected), observed=observed, dims="repeated")


def _joined(pt: Any, values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else pt.concatenate(list(values))


def _data(pm: Any, name: str, values: Floats, dim: str) -> Any:
    # With its shape in its type, or checks of it at run time would take seconds to compile.
    return pm.Data(name, values, dims=dim, shape=values.shape)
