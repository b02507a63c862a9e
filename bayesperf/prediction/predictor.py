"""Predictions for compilers and runtimes: prepared once, compiled by JAX, arrays in and arrays out.

`Profile.predict` takes any table and says everything; it codes text, checks columns and draws new members anew each
time. A `Predictor` does that once for each kind of workload (operation, element type, and what else is text) and then
takes sizes only. The draws are those of one fresh campaign (or of the one asked for) in every call, so that times of
different workloads keep what they share.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from bayesperf.errors import InputError, TableError, UnknownNameError, check_counts
from bayesperf.model import Floats, Prepared
from bayesperf.prediction.options import PredictOptions, check_options, request_of
from bayesperf.prediction.predictive import in_order, levels_of, quantiles_of, student
from bayesperf.prediction.support import unseen_targets
from bayesperf.schema import COLUMNS, SHAPE_COLUMNS, validate_workloads

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["Predictor", "PredictorOptions"]

QUANTILES = (0.05, 0.5, 0.95)

KNOWN = frozenset({*(column.name for column in COLUMNS), *SHAPE_COLUMNS})
"""Columns of a workload that a model may read; any other name is a misspelt one."""

WORK = ("flops", "bytes")
"""Columns that every workload has."""

FIXED = ("target", "campaign", "stack")
"""What a predictor was prepared for, and a call cannot change."""

POOL = 1024
"""Workloads whose noise is drawn independently; further ones of one call start over."""

MOST = 4096
"""Workloads that are computed at a time."""

LARGEST = 1e30
"""Largest size: times of larger ones leave single precision."""

CONSTANT_BYTES = 3e7
"""Parameters up to this size are constants of the compiled function, which then does what they alone decide beforehand.
Larger ones would be slow to compile."""


class PredictorOptions(PredictOptions, total=False):
    """Options of a `Predictor`: those of `Profile.predict`, and one of its own.

    Parameters
    ----------
    quantiles
        Which quantiles a call returns (0.05, 0.5, 0.95).
    """

    quantiles: Sequence[float]


class _Compiled(NamedTuple):
    """A prepared kind of workload, its compiled function, and what that takes before the coded workloads."""

    prepared: Prepared
    times: Any
    given: tuple[Any, ...]


class Predictor:
    """Quantiles of the time of workloads on one target; made by `Profile.predictor`.

    The first call of a kind, and of a new power of two of workloads, compiles (a second or so); later ones are quick.
    The arithmetic is in single precision unless JAX is set to double: about five digits of a time.

    Examples
    --------
    ``fast("matmul", "float32", flops=2e9, bytes=1.2e7)`` returns an array of shape (1, 3), in seconds.
    """

    def __init__(self, profile: Profile, target: str | None = None, **options: Unpack[PredictorOptions]):
        check_options(options, PredictorOptions)
        profile.refuse_unconverged(options.get("allow_unconverged", False))
        self._request = request_of(options.get("campaign"), options.get("stack"), options.get("mean", False))
        draws, self._seed = options.get("draws", 1000), options.get("seed", 0)
        check_counts(1, draws=draws)
        check_counts(0, seed=self._seed)
        self.quantiles = np.atleast_1d(levels_of(options.get("quantiles", QUANTILES)))
        self.target = profile.one_target(pd.DataFrame(index=[0]), target)
        self.notes: tuple[str, ...] = tuple(unseen_targets(profile.reach, [self.target]))
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
        parts = [quantiles_of(in_order(draws), self.quantiles).T for draws in self._parts(op, dtype, sizes)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def draws(self, op: str, dtype: str | None = None, **sizes: Any) -> Floats:
        """Draws of the same times, noise included, (draw, workload), s."""
        parts = list(self._parts(op, dtype, sizes))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _parts(self, op: str, dtype: str | None, sizes: dict[str, Any]) -> Iterator[Floats]:
        """Draws of at most `MOST` workloads at a time."""
        texts = {name: value for name, value in sizes.items() if isinstance(value, str) and name not in WORK}
        for name in [name for name in FIXED if name in sizes]:
            raise InputError(f"{name} is that of the predictor: make another one, Profile.predictor({name}=...)")
        for name in [name for name in sizes if name not in KNOWN]:
            raise UnknownNameError("workload column", name, KNOWN)
        if not isinstance(op, str) or not isinstance(dtype, str | None):
            raise TableError(f"op and dtype are text, not {op!r:.60} and {dtype!r:.60}", source="workload")
        columns = self._columns({name: value for name, value in sizes.items() if name not in texts})
        kind = self._kind(op, dtype, texts, columns)
        for start in range(0, len(columns["flops"]), MOST):
            yield self._times(kind, _slice(columns, start, start + MOST))

    def _columns(self, sizes: dict[str, Any]) -> dict[str, Floats]:
        missing = [name for name in WORK if name not in sizes]
        if missing:
            raise TableError(f"give {' and '.join(missing)} of every workload", source="workload")
        arrays = {name: _numbers(name, values) for name, values in sizes.items()}
        n = max(len(values) for values in arrays.values())
        if not n:
            raise TableError("there are no workloads", source="workload")
        for name, values in arrays.items():
            if values.ndim != 1 or len(values) not in (1, n):
                problem = f"one number or one for each of {n} workloads, not an array of shape {values.shape}"
                raise TableError(problem, source="workload", column=name)
            wrong = ~((values >= 0) & (values <= LARGEST))
            if name not in WORK:
                wrong &= ~np.isnan(values)
            if wrong.any():
                raise TableError(f"a number from 0 to {LARGEST:g} is needed", source="workload", column=name)
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
            def one(row: Any) -> Any:
                parts = prepared.predict(parameters, jax.tree.map(lambda values: values[None], row))
                return tuple(part[:, 0] for part in parts)

            # Row by row: what all rows of a kind share, such as their cell's coefficients, is not repeated for each.
            log_time, misfit, repeat = jax.vmap(one, out_axes=1)(coded)
            rows = jnp.arange(log_time.shape[1]) % noise.shape[1]
            return jnp.exp(log_time + jnp.hypot(misfit, repeat) * noise[:, rows])

        noise = student(rng, prepared.tail, POOL)
        parameters, noise = jax.device_put((prepared.parameters, noise), _device())
        if sum(values.nbytes for values in jax.tree.leaves(parameters)) > CONSTANT_BYTES:
            return _Compiled(prepared, jax.jit(times), (parameters, noise))
        return _Compiled(prepared, jax.jit(functools.partial(times, parameters)), (noise,))

    def _times(self, kind: _Compiled, columns: dict[str, Floats]) -> Floats:
        n = len(columns["flops"])
        # A compiled function has a size: rows are repeated up to the next power of two.
        size = 1 << (n - 1).bit_length()
        filled = columns if n == size else {name: np.resize(values, size) for name, values in columns.items()}
        return np.asarray(kind.times(*kind.given, kind.prepared.code(filled)))[:, :n]


def _numbers(name: str, values: Any) -> Floats:
    try:
        return np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise TableError(f"numbers are needed, not {values!r:.60}", source="workload", column=name) from None


def _slice(columns: dict[str, Floats], start: int, stop: int) -> dict[str, Floats]:
    return {name: values[start:stop] for name, values in columns.items()}


def _device() -> Any:
    """The host where JAX has it: for arrays this small, the way to an accelerator takes longer than the work."""
    import jax

    try:
        return jax.devices("cpu")[0]
    except RuntimeError:
        return jax.devices()[0]
