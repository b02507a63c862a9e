"""Predictions for compilers and runtimes: prepared once, compiled by JAX, arrays in and arrays out.

`Profile.predict` takes any table and says everything; it codes text, checks columns and draws new members anew each
time. A `Predictor` does that once for each kind of workload (operation, element type, and what else is text) and then
takes sizes only. The draws are those of one fresh campaign (or of the one asked for) in every call, so that times of
different workloads keep what they share.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from bayesperf.errors import InputError, TableError, check_counts
from bayesperf.model import Floats, Prepared
from bayesperf.prediction.options import PredictOptions, request_of
from bayesperf.prediction.predictive import in_order, quantiles_of, student
from bayesperf.schema import validate_workloads

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["Predictor", "PredictorOptions"]

QUANTILES = (0.05, 0.5, 0.95)

POOL = 1024
"""Workloads whose noise is drawn independently; further ones of one call start over."""

MOST = 4096
"""Workloads that are computed at a time."""


class PredictorOptions(PredictOptions, total=False):
    """Options of a `Predictor`: those of `Profile.predict`, and one of its own.

    Parameters
    ----------
    quantiles
        Which quantiles a call returns (0.05, 0.5, 0.95).
    """

    quantiles: Sequence[float]


class _Compiled(NamedTuple):
    """A prepared kind of workload with its parameters on the device and its compiled function."""

    prepared: Prepared
    parameters: Any
    noise: Any
    times: Any


class Predictor:
    """Quantiles of the time of workloads on one target; made by `Profile.predictor`.

    The first call of a kind, and of a new power of two of workloads, compiles (a second or so); later ones are quick.
    The arithmetic is in single precision unless JAX is set to double: about five digits of a time.

    Examples
    --------
    ``fast("matmul", "float32", flops=2e9, bytes=1.2e7)`` returns an array of shape (1, 3), in seconds.
    """

    def __init__(self, profile: Profile, target: str | None = None, **options: Unpack[PredictorOptions]):
        profile.refuse_unconverged(options.get("allow_unconverged", False))
        self._request = request_of(options.get("campaign"), options.get("stack"), options.get("mean", False))
        draws, self._seed = options.get("draws", 1000), options.get("seed", 0)
        check_counts(1, draws=draws)
        check_counts(0, seed=self._seed)
        self.quantiles = np.asarray(options.get("quantiles", QUANTILES), dtype=float)
        if self.quantiles.ndim != 1 or not ((self.quantiles >= 0) & (self.quantiles <= 1)).all():
            raise InputError(f"quantiles are a list of numbers from 0 to 1, not {options.get('quantiles')}")
        self.target = profile.one_target(pd.DataFrame(index=[0]), target)
        self.notes: tuple[str, ...] = ()
        self._profile, self._draws = profile, profile.draws(limit=draws)
        self._targets = profile.sheets_with(options.get("targets"))
        self._kinds: dict[Hashable, _Compiled] = {}

    def __call__(self, op: str, dtype: str | None = None, **sizes: Any) -> Floats:
        """Quantiles of the time of workloads of one kind, (workload, quantile), s.

        Parameters
        ----------
        op, dtype
            The kind; with further text columns, such as ``condition``, among `sizes`.
        **sizes
            Numeric columns of the contract, a number or an array (workload,) each: ``flops`` and ``bytes``, and
            ``working_set_bytes``, ``parallelism``, shapes where they are known.

        Raises
        ------
        TableError
            ``flops`` or ``bytes`` are missing, or a value is bad.
        """
        return quantiles_of(in_order(self.draws(op, dtype, **sizes)), self.quantiles).T

    def draws(self, op: str, dtype: str | None = None, **sizes: Any) -> Floats:
        """Draws of the same times, noise included, (draw, workload), s."""
        texts = {name: value for name, value in sizes.items() if isinstance(value, str)}
        columns = self._columns({name: value for name, value in sizes.items() if name not in texts})
        n = len(columns["flops"])
        kind = self._kind(op, dtype, texts, columns)
        if n <= MOST:
            return self._times(kind, columns)
        parts = [_slice(columns, start, start + MOST) for start in range(0, n, MOST)]
        return np.concatenate([self._times(kind, part) for part in parts], axis=1)

    def _columns(self, sizes: dict[str, Any]) -> dict[str, Floats]:
        missing = [name for name in ("flops", "bytes") if name not in sizes]
        if missing:
            raise TableError(f"give {' and '.join(missing)} of every workload", source="workload")
        arrays = {name: np.atleast_1d(np.asarray(values, dtype=np.float64)) for name, values in sizes.items()}
        n = max(len(values) for values in arrays.values())
        for name, values in arrays.items():
            if values.ndim != 1 or len(values) not in (1, n):
                raise TableError(f"one number or one for each of {n} workloads, not {values.shape}", column=name)
            wrong = ~((values >= 0) & (values < np.inf))
            if name not in ("flops", "bytes"):
                wrong &= ~np.isnan(values)
            if wrong.any():
                raise TableError("a finite number of at least 0 is needed", source="workload", column=name)
        return {name: values if len(values) == n else np.repeat(values, n) for name, values in arrays.items()}

    def _kind(self, op: str, dtype: str | None, texts: dict[str, str], columns: dict[str, Floats]) -> _Compiled:
        computes, moves = bool((columns["flops"] > 0).any()), bool((columns["bytes"] > 0).any())
        key = (op, dtype, tuple(sorted(texts.items())), computes, moves)
        if key not in self._kinds:
            workload: dict[str, Any] = {"op": op, "dtype": dtype, **texts, "flops": computes, "bytes": moves}
            row = validate_workloads(pd.DataFrame([workload]).astype({"flops": float, "bytes": float}))
            self._kinds[key] = self._compile({str(k): v for k, v in row.iloc[0].items()} | {"target": self.target})
        return self._kinds[key]

    def _compile(self, workload: dict[str, Any]) -> _Compiled:
        import jax
        import jax.numpy as jnp

        rng = np.random.default_rng(self._seed)
        encoded = self._profile.inference.encoded
        prepared = self._profile.model.prepare(encoded, self._draws, workload, self._request, self._targets, rng)
        if prepared is None:
            raise InputError(f"model {self._profile.model_name!r} has no prepared form; use predict")
        self.notes = tuple(dict.fromkeys([*self.notes, *prepared.notes]))

        def times(parameters: Any, noise: Any, coded: Any) -> Any:
            log_time, misfit, repeat = prepared.predict(parameters, coded)
            rows = jnp.arange(log_time.shape[1]) % noise.shape[1]
            return jnp.exp(log_time + jnp.hypot(misfit, repeat) * noise[:, rows])

        noise = student(rng, prepared.tail, POOL)
        parameters, noise = jax.device_put((prepared.parameters, noise), _device())
        return _Compiled(prepared, parameters, noise, jax.jit(times))

    def _times(self, kind: _Compiled, columns: dict[str, Floats]) -> Floats:
        n = len(columns["flops"])
        # A compiled function has a size: rows are repeated up to the next power of two.
        size = 1 << (n - 1).bit_length()
        filled = columns if n == size else {name: np.resize(values, size) for name, values in columns.items()}
        return np.asarray(kind.times(kind.parameters, kind.noise, kind.prepared.code(filled)))[:, :n]


def _slice(columns: dict[str, Floats], start: int, stop: int) -> dict[str, Floats]:
    return {name: values[start:stop] for name, values in columns.items()}


def _device() -> Any:
    """The host where JAX has it: for arrays this small, the way to an accelerator takes longer than the work."""
    import jax

    try:
        return jax.devices("cpu")[0]
    except RuntimeError:
        return jax.devices()[0]
