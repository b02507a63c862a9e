"""Prepared predictions of one kind of workload at any size: members extended once, the physics compiled by JAX.

Nothing of the physics is written again. `prepare` lets `predict` do its work for one workload and keeps what it gave to
`row_times`: draws of every member that the workload needs, and its codes. `row_terms` and `log_bandwidth` take features
of rows as NumPy constants, where a compiled function gets them as arguments; they run here with other globals
(`rebound`): features are JAX arrays, and the place of a row on the bandwidth curve, which takes a search, is what
`Kernel.code` has found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayesperf.model import Draws, Floats, Request
from bayesperf.models.roofline import predict as predicting
from bayesperf.models.roofline.coded import Codes, Encoded, Labels, Sheets
from bayesperf.models.roofline.curve import CurveCodes, code_curve, log_bandwidth
from bayesperf.models.roofline.discrepancy import Basis, evaluate, features_of
from bayesperf.models.roofline.encode import code_rows, footprint
from bayesperf.models.roofline.hierarchy import Members, lacking_variance, row_terms
from bayesperf.models.roofline.physics import smooth_roofline
from bayesperf.models.roofline.quantise import log_inflation
from bayesperf.models.roofline.quick import row_times
from bayesperf.models.roofline.units import unit_of

__all__ = ["Coded", "Kernel", "prepare"]

NOTHING = -60.0
"""Log of work that one workload lacks where others of its kind have some: its time is below every other term."""


def rebound(function: Any, **names: Any) -> Any:
    """Return a function of the same code in which the global `names` mean something else."""
    scope = {**function.__globals__, **names}
    return FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)


class _Numbers(np.ndarray):
    """A numeric column as the coding functions read one of a DataFrame, at a tenth of the cost."""

    def to_numpy(self, dtype: type) -> Floats:
        """Plain array."""
        return np.asarray(self, dtype=dtype)

    def fillna(self, value: float) -> _Numbers:
        """Values, and `value` where there is none."""
        return np.where(np.isnan(self), value, self).view(_Numbers)


class _Table(dict[str, _Numbers]):
    """Numeric columns by name; its length is that of a column, as a DataFrame's is."""

    def __init__(self, columns: Mapping[str, Floats]):
        super().__init__({name: np.asarray(values, dtype=float).view(_Numbers) for name, values in columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self.values())))


class Coded(NamedTuple):
    """Features of rows, (row,) each; `phi` is (row, rank). The first three are the curve's codes."""

    own: Any
    last: Any
    position: Any
    log_flops: Any
    log_bytes: Any
    phi: Any
    lacking: Any


@dataclass(frozen=True)
class Kernel:
    """One operation of one dtype on one target in one campaign; see `bayesperf.model.Prepared`.

    Parameters
    ----------
    parameters
        Draws of the members that it needs.
    tail, notes
        As `Predicted` has them.
    codes
        Codes of one row of it.
    members, sheets
        Of all levels.
    operation, basis
        Its name with its condition, and its discrepancy's features, if it has some.
    units
        Parallel units of the target, NaN where unknown.
    tiled
        Whether it runs on matrix units, whose tiles are quantised.
    """

    parameters: dict[str, Floats]
    tail: Floats
    notes: Sequence[str]
    codes: Codes
    members: Members
    sheets: Sheets
    operation: str
    basis: Mapping[str, Basis]
    units: float
    tiled: bool

    def code(self, sizes: Mapping[str, Floats]) -> Coded:
        """Code rows given by their numeric columns, (row,) each; ``flops`` and ``bytes`` are among them."""
        table: Any = _Table(sizes)
        n = len(table)
        inflation = log_inflation(table, np.full(n, self.units)) if self.tiled else np.zeros(n)
        flops, moved = table["flops"].to_numpy(float), table["bytes"].to_numpy(float)
        curve = code_curve(self.sheets.curves, np.repeat(self.codes.target, n), np.log(footprint(table)))
        phi, lacking = np.zeros((n, self.codes.phi.shape[1])), np.zeros(n)
        if self.basis:
            phi, lacking = evaluate(self.basis, np.full(n, self.operation, dtype=object), features_of(table))
            if phi.shape[1] < self.codes.phi.shape[1]:
                phi = np.pad(phi, ((0, 0), (0, self.codes.phi.shape[1] - phi.shape[1])))
        log_flops, log_bytes = (np.log(np.where(work > 0, work, np.exp(NOTHING))) for work in (flops, moved))
        return Coded(curve.own, curve.last, curve.position, log_flops + inflation, log_bytes, phi, lacking)

    def predict(self, parameters: Any, coded: Any) -> tuple[Any, Any, Any]:
        """Log time and the scales of misfit and repeats, (draw, row) each; made to be compiled by JAX."""
        import jax.numpy as jnp

        n = coded.log_flops.shape[0]
        codes = replace(
            _repeated(self.codes, n),
            log_flops=coded.log_flops,
            log_bytes=coded.log_bytes,
            phi=coded.phi,
            lacking=coded.lacking,
        )
        curve = CurveCodes(coded.own, coded.last, coded.position)
        terms_of = rebound(row_terms, code_curve=lambda *_: curve, log_bandwidth=rebound(log_bandwidth, np=jnp))
        compute, memory, overhead = terms_of(jnp, parameters, codes, self.members, self.sheets)
        sharpness = parameters["sharpness"].reshape(-1, 1)
        log_time = (
            smooth_roofline(jnp, compute, memory, overhead, sharpness) + parameters["campaign"][:, codes.campaign]
        )
        misfit = parameters["misfit"][:, codes.noise]
        misfit = jnp.sqrt(misfit**2 + lacking_variance(parameters, codes, self.members))
        repeat = parameters["repeat"][:, codes.noise] if "repeat" in parameters else jnp.zeros_like(misfit)
        return log_time, misfit, repeat


def prepare(
    encoded: Encoded,
    draws: Draws,
    workload: Mapping[str, Any],
    request: Request,
    targets: pd.DataFrame | None,
    rng: np.random.Generator,
) -> Kernel:
    """Prepare one kind of workload; see `bayesperf.model.PerformanceModel.prepare`.

    Raises
    ------
    UnknownNameError
        A target neither measured nor with a spec sheet, or an unknown campaign.
    """
    coded: dict[str, Any] = {}
    given: dict[str, Any] = {}

    def coding(table: pd.DataFrame, labels: Labels, kinds: Any, units: dict[str, float], bases: Any) -> Codes:
        coded.update(labels=labels, units=units, bases=bases)
        return code_rows(table, labels, kinds, units, bases)

    def physics(p: dict[str, Floats], codes: Codes, members: Members, sheets: Sheets) -> Any:
        given.update(p=p, codes=codes, members=members, sheets=sheets)
        return row_times(p, codes, members, sheets)

    table = pd.DataFrame([dict(workload)])
    watched = rebound(predicting.predict, code_rows=coding, row_times=physics)
    predicted = watched(encoded, draws, table, request, targets, rng)
    codes = given["codes"]
    (operation,) = coded["labels"].of("op")[int(codes.op[0])]
    return Kernel(
        # What the sampler moved is not what the physics reads.
        parameters={name: values for name, values in given["p"].items() if not name.endswith("_raw")},
        tail=np.asarray(predicted.tail),
        notes=predicted.notes,
        codes=codes,
        members=given["members"],
        sheets=given["sheets"],
        operation=operation,
        basis={name: basis for name, basis in coded["bases"].items() if name == operation},
        units=coded["units"].get(workload["target"], np.nan),
        tiled=unit_of(operation, str(workload.get("dtype", "unknown"))).startswith("matrix"),
    )


def _repeated(codes: Codes, n: int) -> Codes:
    """Codes of `n` rows like the one coded; their features are still to be filled in."""
    return Codes(**{f.name: np.repeat(getattr(codes, f.name), n, axis=0) for f in fields(codes)})
