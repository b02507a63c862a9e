"""A watcher for a stream of measurements: has this target changed, since when, and by how much?

Rows are compared with the profile's prediction one by one. Standing errors (parameters, this campaign, the misfit of a
configuration) are learned along the way (`offsets`); what is left is tested for a change of level (`changepoint`):
over all rows, and over the rows that one limit bounds, as a slower memory does not show in compute-bound rows. The
mean of these e-values is an e-value; it may be looked at after every row.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayesperf.configurations import KEYS
from bayesperf.errors import InputError, check_between, check_counts
from bayesperf.model import LIMITS
from bayesperf.prediction.options import check_options, request_of
from bayesperf.prediction.profile import frame_of
from bayesperf.prediction.support import unseen_targets
from bayesperf.schema import validate
from bayesperf.validation.changepoint import ChangePoints
from bayesperf.validation.offsets import Offsets

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile, Workloads

__all__ = ["ALPHA", "DRIFT", "DRIFT_ROWS", "TOLERANCE", "WatchOptions", "WatchState", "Watcher", "watch"]

TOLERANCE, ALPHA, DRIFT = 0.1, 0.01, 0.01

DRIFT_ROWS = 1000
"""Rows over which the drift that a watcher allows is stated."""

ALL = "all rows"
SHARE_OF_ALL = 0.5
"""Weight of the test over all rows; those over the rows of one limit share the rest."""

BLOCKS = 64
"""Rows of a change that are told apart."""

SPLIT = 0.9
"""Share of the noise's scale that a configuration's repeats have in common, where the profile cannot tell: assumed."""


@dataclass(frozen=True)
class WatchState:
    """What a watcher knows after some row.

    Parameters
    ----------
    rows
        Rows seen.
    log_e
        Log e-value of "something changed by more than the tolerance" now.
    raised
        Whether it ever reached log(1 / alpha); stays.
    raised_at
        Row at which it first did, counted from 1; None before.
    where
        ``all rows``, or those of one limit, such as ``memory-bound rows``: what changed, by the largest e-value.
    since, since_lower, since_upper
        First row after the change with its 90 % interval; None while nothing speaks for one.
    shift, shift_lower, shift_upper
        Change of the time as a share (0.2: 20 % slower) with its 90 % interval; None like `since`.
    skipped
        Rows that ran beside co-runners, which the model does not predict.
    """

    rows: int
    log_e: float
    raised: bool
    raised_at: int | None = None
    where: str = ALL
    since: int | None = None
    since_lower: int | None = None
    since_upper: int | None = None
    shift: float | None = None
    shift_lower: float | None = None
    shift_upper: float | None = None
    skipped: int = 0

    def __str__(self) -> str:
        if not self.raised:
            return f"no change seen in {self.rows} row{'s' * (self.rows != 1)} (log e-value {self.log_e:.1f})"
        assert self.shift is not None
        assert self.shift_lower is not None
        assert self.shift_upper is not None
        return (
            f"changed: {self.where} take {self.shift:+.0%} [{self.shift_lower:+.0%}, {self.shift_upper:+.0%}] against "
            f"before, since about row {self.since} [{self.since_lower}, {self.since_upper}]; raised at row "
            f"{self.raised_at} of {self.rows}"
        )


class WatchOptions(TypedDict, total=False):
    """Options of `watch`; tolerance, alpha and drift are stated beforehand.

    Parameters
    ----------
    tolerance
        Relative change that counts as nothing; 0 for any change (0.1).
    alpha
        Chance that a stream without a change ever raises (0.01).
    drift
        How far the level may wander over `DRIFT_ROWS` rows, as a relative standard deviation, and still be no change
        (0.01).
    campaign, stack
        The measured campaign and software stack that the stream belongs to; it is a fresh campaign without one.
    draws
        Posterior draws that carry the standing errors (256).
    seed
        Of what the prediction draws (0).
    targets
        Further spec sheets.
    allow_unconverged
        Watch although the diagnostics gate failed (False).
    """

    tolerance: float
    alpha: float
    drift: float
    campaign: str | None
    stack: str | None
    draws: int
    seed: int
    targets: pd.DataFrame | None
    allow_unconverged: bool


def watch(profile: Profile, target: str | None = None, **options: Unpack[WatchOptions]) -> Watcher:
    """Make a watcher for a stream of measurements of one target.

    Parameters
    ----------
    profile
        Whose predictions are compared with the stream.
    target
        Whose rows will come; the only target of the profile when None.
    **options
        See `WatchOptions`.

    Raises
    ------
    UnconvergedError
        The gate failed, and nobody opted in.
    InputError
        A tolerance, alpha or drift that makes no sense.
    """
    check_options(options, WatchOptions)
    profile.refuse_unconverged(options.get("allow_unconverged", False))
    return Watcher(profile, profile.one_target(pd.DataFrame(index=[0]), target), options)


class Watcher:
    """Watches one target, row by row; made by `watch`."""

    def __init__(self, profile: Profile, target: str, options: WatchOptions):
        tolerance, alpha = options.get("tolerance", TOLERANCE), options.get("alpha", ALPHA)
        drift, draws = options.get("drift", DRIFT), options.get("draws", 256)
        if tolerance != 0:
            check_between(0, 1, tolerance=tolerance)
        check_between(0, 1, alpha=alpha)
        check_between(0, 0.5, drift=drift)
        check_counts(8, draws=draws)
        check_counts(0, seed=options.get("seed", 0))
        self.target, self.tolerance, self.alpha, self.drift = target, tolerance, alpha, drift
        self._profile, self._seed = profile, options.get("seed", 0)
        self._request = request_of(options.get("campaign"), options.get("stack"), mean=False)
        self._targets = profile.sheets_with(options.get("targets"))
        self._draws = profile.draws(limit=draws)
        self._offsets = Offsets(len(next(iter(self._draws.values()))))
        self._known: dict[Hashable, _Configuration] = {}
        self._tests: dict[str, ChangePoints] = {}
        self._rows_of: dict[str, list[int]] = {}
        self._state = WatchState(0, 0.0, False)
        self.notes: tuple[str, ...] = tuple(unseen_targets(profile.reach, [target]))

    @property
    def state(self) -> WatchState:
        """What is known now."""
        return self._state

    def update(self, rows: Workloads) -> WatchState:
        """Take one row (a mapping) or several (a table), in the order in which they were measured.

        Parameters
        ----------
        rows
            Workload columns and ``time_s``; ``target`` may be absent.

        Returns
        -------
        WatchState
            After the last row.

        Raises
        ------
        TableError
            A row breaks the contract; none of the rows given was taken.
        InputError
            A row of another target.
        """
        table = self._checked(rows)
        keys = [name for name in KEYS if name in table and name not in ("campaign", "role", "target")]
        for at in range(len(table)):
            row = table.iloc[at]
            if not self._profile.model.predicts_corunners and isinstance(row.get("corunners"), str):
                self._state = replace(self._state, skipped=self._state.skipped + 1)
                continue
            key = tuple(None if pd.isna(row[name]) else row[name] for name in keys)
            key = tuple(sorted((name, value) for name, value in zip(keys, key, strict=True) if value is not None))
            if key not in self._known or key not in self._offsets:
                self._meet(key, table.iloc[at : at + 1])
            self._take(key, float(row["time_s"]), _relative_error(row))
        return self._state

    def _checked(self, rows: Workloads) -> pd.DataFrame:
        table = frame_of(rows)
        if "target" not in table:
            table = table.assign(target=self.target)
        table = validate(table, source="row of the stream")
        others = sorted(set(table["target"]) - {self.target})
        if others:
            raise InputError(f"this watch is of {self.target}; make another one for {', '.join(others)}")
        return table.reset_index(drop=True)

    def _meet(self, key: Hashable, row: pd.DataFrame) -> None:
        """Predict a configuration that the stream has not shown before."""
        model, inference = self._profile.model, self._profile.inference
        # The same seed for every configuration: what they share, such as the fresh campaign, is drawn alike.
        rng = np.random.default_rng(self._seed)
        workload = row.drop(columns="time_s").reset_index(drop=True)
        parts = model.predict(inference.encoded, self._draws, workload, self._request, self._targets, rng)
        misfit, repeat = (float(np.sqrt(np.mean(scale**2))) for scale in (parts.misfit, parts.repeat))
        if repeat == 0.0:
            misfit, repeat = SPLIT * misfit, float(np.sqrt(1.0 - SPLIT**2)) * misfit
            self._note(f"repeatability assumed: no configuration of the profile was repeated on {self.target}")
        for remark in parts.notes:
            self._note(remark)
        names = [name for name in LIMITS if name in parts.terms]
        largest = np.argmax(np.stack([parts.terms[name][:, 0] for name in names]), axis=0)
        limit = names[int(np.bincount(largest, minlength=len(names)).argmax())]
        signal = parts.log_time[:, 0]
        self._known[key] = _Configuration(float(signal.mean()), repeat, f"{limit}-bound rows")
        self._offsets.add(key, signal, misfit)
        self._tail = float(np.median(parts.tail))

    def _note(self, remark: str) -> None:
        self.notes = tuple(dict.fromkeys([*self.notes, remark]))

    def _take(self, key: Hashable, time_s: float, within: float) -> None:
        known, rows = self._known[key], self._state.rows + 1
        error = np.log(time_s) - known.log_time
        centre, variance = self._offsets.predict(key)
        noise = float(np.hypot(known.noise, within))
        tests = {name: self._test(name) for name in (ALL, known.limit)}
        level = float(max(tests.values(), key=lambda test: float(test.log_e[0])).level[0])
        for name, test in tests.items():
            test.step(np.array([error - centre]), np.array([np.sqrt(noise**2 + variance)]))
            self._rows_of[name].append(rows)
        if not self._state.raised:
            # After an alarm the standing errors stay: they would learn the change.
            self._offsets.learn(key, error - level, noise * float(tests[ALL].factor[0]), self._tail)
        self._state = self._judged(rows)

    def _test(self, name: str) -> ChangePoints:
        if name not in self._tests:
            drift = float(np.log1p(self.drift) / np.sqrt(DRIFT_ROWS))
            tolerance = float(np.log1p(self.tolerance))
            self._tests[name] = ChangePoints(tolerance=tolerance, drift=drift, tail=self._tail, blocks=BLOCKS)
            self._rows_of[name] = []
        return self._tests[name]

    def _judged(self, rows: int) -> WatchState:
        old = self._state
        each = {name: float(test.log_e[0]) + _log_share(name) for name, test in self._tests.items()}
        # Limits that no row has had yet have an e-value of one.
        idle = 1.0 - sum(np.exp(_log_share(name)) for name in each)
        log_e = float(logsumexp([*each.values(), np.log(max(idle, 1e-300))]))
        where = max(each, key=lambda name: each[name])
        now = bool(log_e >= -np.log(self.alpha))
        state = WatchState(
            rows,
            log_e,
            raised=old.raised or now,
            raised_at=old.raised_at if old.raised or not now else rows,
            where=where,
            skipped=old.skipped,
        )
        if not (state.raised or log_e > 0):
            return state
        jump, numbers = self._tests[where].jump(), self._rows_of[where]
        since = [numbers[min(at, len(numbers)) - 1] for at in jump.since]
        low, middle, high = (float(np.expm1(size)) for size in jump.size)
        return replace(
            state,
            since_lower=since[0],
            since=since[1],
            since_upper=since[2],
            shift_lower=low,
            shift=middle,
            shift_upper=high,
        )


@dataclass(frozen=True)
class _Configuration:
    """Predicted mean of log time, scale of a repeat's noise, and what bounds it."""

    log_time: float
    noise: float
    limit: str


def _log_share(name: str) -> float:
    return float(np.log(SHARE_OF_ALL if name == ALL else (1.0 - SHARE_OF_ALL) / len(LIMITS)))


def _relative_error(row: pd.Series) -> float:
    """Standard error that a row states of itself, relative; 0 where it states none."""
    error = row.get("time_se_s")
    return 0.0 if error is None or pd.isna(error) else float(error) / float(row["time_s"])
