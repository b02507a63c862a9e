"""Simulated measurement tables that the tests of models, inference, prediction and validation share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.schema import validate, with_ids

__all__ = ["roofline_table"]

RATE, BANDWIDTH, CHAINED, LAUNCH = 2e11, 2e10, 2e-7, 3e-5


def roofline_table(
    seed: int,
    *,
    targets: Sequence[str] = ("box",),
    campaigns: Sequence[str] = ("monday",),
    processes: int = 2,
    noise: float = 0.02,
    shift: float = 0.0,
    heldout: bool = False,
) -> pd.DataFrame:
    """A plain roofline with overheads, written independently of the model.

    Parameters
    ----------
    seed
        Of the noise.
    targets, campaigns
        Names.
    processes
        Repeats of every configuration.
    noise
        Standard deviation of log time.
    shift
        Log factor on the time of every held-out row.
    heldout
        Add held-out rows: the same operations at sizes that are not fitted.
    """
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []

    def add(target: str, campaign: str, op: str, flops: float, moved: float, role: str = "fit") -> None:
        work = max(flops / RATE, moved / BANDWIDTH)
        time = (CHAINED + work if work else LAUNCH) * np.exp(shift * (role == "heldout"))
        for process in range(processes):
            rows.append(
                {
                    "target": target,
                    "op": op,
                    "dtype": "float32",
                    "flops": flops,
                    "bytes": moved,
                    "working_set_bytes": moved,
                    "time_s": time * np.exp(noise * rng.standard_normal()),
                    "time_se_s": 0.002 * time,
                    "statistic": "slope",
                    "campaign": campaign,
                    "role": role,
                    "process": str(process),
                }
            )

    for target in targets:
        for campaign in campaigns:
            for n in (128, 256, 512, 1024, 2048):
                add(target, campaign, "matmul", 2.0 * n**3, 12.0 * n**2)
            for op in ("stream_copy", "stream_triad", "stream_read"):
                for size in (2e6, 8e6, 3.2e7, 1.28e8):
                    add(target, campaign, op, 0.0 if op == "stream_copy" else size / 8, size)
            add(target, campaign, "dispatch", 0.0, 0.0)
            if heldout:
                for n in (384, 640, 768, 896, 1280, 1536):
                    add(target, campaign, "matmul", 2.0 * n**3, 12.0 * n**2, "heldout")
                for size in (4e6, 6e6, 1.2e7, 1.6e7, 4.8e7, 6.4e7):
                    add(target, campaign, "stream_triad", size / 8, size, "heldout")
    return with_ids(validate(pd.DataFrame(rows)), source="simulated")


def products_table(seed: int, *, targets: tuple[str, ...] = ("a", "b"), shapes: int = 40) -> pd.DataFrame:
    """Matrix products of many shapes with one systematic error: those with a short contraction are slow.

    Parameters
    ----------
    seed
        Of shapes and noise.
    targets
        All with rate `RATE` and bandwidth `BANDWIDTH`.
    shapes
        Distinct shapes, the same on every target.
    """
    rng = np.random.default_rng(seed)
    # Distinct shapes: repeats of one would be one observation.
    m, n, k = (64.0 * rng.permutation(np.arange(1, shapes + 1)) for _ in range(3))
    flops, moved = 2 * m * n * k, 4 * (m * k + k * n + m * n)
    slow = 0.3 * np.exp(-k / 256)
    rows = []
    for target in targets:
        time = (LAUNCH + np.maximum(flops / RATE, moved / BANDWIDTH) * np.exp(slow)) * np.exp(
            0.02 * rng.standard_normal(shapes)
        )
        columns = {"flops": flops, "bytes": moved, "m": m, "n": n, "k": k, "parallelism": m * n, "time_s": time}
        rows.append(pd.DataFrame(columns).assign(target=target, op="matmul", dtype="float32", campaign="monday"))
    return with_ids(validate(pd.concat(rows, ignore_index=True)), source="simulated")
