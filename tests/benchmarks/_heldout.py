"""What benchmarks on public tables share: hold-outs blocked by shape, scores of held-out rows, tables of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import bayesperf as bp
from bayesperf.validation.scores import baseline

__all__ = ["PROBABILITY", "fit_rows", "sample_rows", "score", "show", "split_by_shape"]

PROBABILITY = 0.9


def split_by_shape(table: pd.DataFrame, shape: Sequence[str], seed: int) -> np.ndarray:
    """Whether each row is held out: half of all shapes are, each on every target or on none, (row,)."""
    rng = np.random.default_rng(seed)
    named = table[[column for column in shape if column in table]].astype(str)
    codes, uniques = pd.factorize(pd.util.hash_pandas_object(named, index=False))
    return np.asarray((rng.random(len(uniques)) < 0.5)[codes])


def sample_rows(table: pd.DataFrame, by: list[str], rows: int, seed: int) -> pd.DataFrame:
    """At most `rows` of every group."""
    parts = [part.sample(min(rows, len(part)), random_state=seed) for _, part in table.groupby(by, sort=True)]
    return pd.concat(parts, ignore_index=True)


def fit_rows(rows: pd.DataFrame, sheets: pd.DataFrame, *, draws: int, attempts: int, seed: int) -> bp.Profile:
    """Fit, and say when the gate failed."""
    profile = bp.fit(rows.assign(role="fit"), targets=sheets, draws=draws, tune=draws, seed=seed, attempts=attempts)
    print(f"{len(rows)} rows fitted, converged: {profile.converged}", flush=True)
    for check in profile.gate:
        if not check.passed:
            print(f"gate: {check.name} {check.value:.4g} (limit {check.limit:.4g}) at {check.where}")
    return profile


def score(profile: bp.Profile, rows: pd.DataFrame, campaign: Literal["own", "fresh", "stack"]) -> pd.DataFrame:
    """Each held-out row with its prediction: error of the median, whether inside, interval score, baseline's score.

    Predicted for the row's own campaign, for a fresh one, or for a fresh one of the row's software stack.
    """
    parts = []
    by = ["target", "campaign"] if campaign == "own" else ["target", "stack"] if campaign == "stack" else ["target"]
    for _, part in rows.groupby(by):
        part = part.reset_index(drop=True)
        asked: dict[str, Any] = {}
        if campaign == "own":
            asked["campaign"] = part["campaign"].iloc[0]
        if campaign == "stack":
            asked["stack"] = part["stack"].iloc[0]
        prediction = profile.predict(part, allow_unconverged=True, draws=1000, **asked)
        lower, upper = np.log(prediction.interval(PROBABILITY).values)
        median, y = np.log(prediction.median().values), np.log(part["time_s"].to_numpy())
        centre, spread = baseline(profile.table, part)
        shift = (y[None, :] - prediction.parts.log_time).mean(axis=1)
        parts.append(
            part.assign(
                error=np.abs(np.exp(median - y) - 1.0),
                signed=y - median,
                inside=(y >= lower) & (y <= upper),
                half=0.5 * (upper - lower),
                score=_interval_score(y, lower, upper),
                baseline=_interval_score(y, centre - 1.645 * spread, centre + 1.645 * spread),
                # Mean log residual under each draw: it is predicted when 0 lies inside its 90 % range.
                shift_low=np.quantile(shift, 0.05),
                shift_high=np.quantile(shift, 0.95),
            )
        )
    return pd.concat(parts, ignore_index=True)


def _interval_score(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Interval score of log time; lower is better (Gneiting and Raftery, 2007)."""
    alpha = 1.0 - PROBABILITY
    return np.asarray((upper - lower) + 2 / alpha * (np.maximum(lower - y, 0) + np.maximum(y - upper, 0)))


def show(title: str, rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Print one line per group; returns its numbers."""
    grouped = rows.groupby(by)
    summary = grouped.agg(
        rows=("error", "size"), mape=("error", "mean"), coverage=("inside", "mean"), half=("half", "median"),
        shift=("signed", "mean"), score=("score", "mean"), baseline=("baseline", "mean"),
    )  # fmt: skip
    view = Table(title=title)
    for name in [*by, *summary.columns]:
        view.add_column(name, justify="left" if name in by else "right")
    for key, line in summary.iterrows():
        labels = key if isinstance(key, tuple) else (key,)
        view.add_row(
            *map(str, labels), f"{line['rows']:.0f}", f"{100 * line['mape']:.1f} %", f"{line['coverage']:.3f}",
            f"x{np.exp(line['half']):.2f}", f"{line['shift']:+.3f}", f"{line['score']:.3f}", f"{line['baseline']:.3f}",
        )  # fmt: skip
    Console(width=120).print(view)
    sys.stdout.flush()
    return summary
