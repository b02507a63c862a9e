"""Predictions of any number of workloads in bounded memory: a part of the table at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import pandas as pd

from bayesperf.errors import check_counts
from bayesperf.prediction.options import PredictOptions, check_options
from bayesperf.schema import validate_workloads

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile, Workloads

__all__ = ["PAIRS", "FrameOptions", "predict_frame"]

PAIRS = 2_000_000
"""Pairs of a draw and a workload that are held at a time: about 300 MB."""


class FrameOptions(PredictOptions, total=False):
    """Options of `predict_frame`: those of `Profile.predict`, and two of its own.

    Parameters
    ----------
    interval
        Probability of the interval (0.9).
    pairs
        Pairs of a draw and a workload that are held at a time (`PAIRS`).
    """

    interval: float
    pairs: int


def predict_frame(
    profile: Profile, workloads: Workloads, target: str | None = None, **options: Unpack[FrameOptions]
) -> pd.DataFrame:
    """Predict workloads: their own columns, and those that `Prediction.to_frame` adds; remarks in ``attrs["notes"]``.

    Only summaries are kept, so that the number of workloads is bounded by the table alone. Every part is predicted from
    the same draws of the parameters and of the campaign.

    Parameters
    ----------
    profile
        A fit.
    workloads, target
        As for `Profile.predict`.
    **options
        See `FrameOptions`.

    Raises
    ------
    UnconvergedError, UnknownNameError, TableError, InputError
        As `Profile.predict`.
    """
    from bayesperf.prediction.profile import frame_of

    check_options(options, FrameOptions)
    interval, pairs = options.get("interval", 0.9), options.get("pairs", PAIRS)
    others = {name: value for name, value in options.items() if name not in ("interval", "pairs")}
    check_counts(1, pairs=pairs, draws=options.get("draws", 1000))
    table = validate_workloads(frame_of(workloads))
    rows = max(1, pairs // options.get("draws", 1000))
    parts, notes = [], dict[str, None]()
    for start in range(0, len(table), rows):
        part = table.iloc[start : start + rows].reset_index(drop=True)
        predicted = profile.predict(part, target, **others)  # type: ignore[arg-type]
        parts.append(predicted.to_frame(interval))
        notes |= dict.fromkeys(predicted.notes)
    frame = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    frame.attrs = {**table.attrs, "notes": list(notes)}
    return frame
