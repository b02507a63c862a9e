"""Measured collectives of an imaginary fabric, written independently of the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayesperf.schema import validate, with_ids

__all__ = ["BUS", "LAUNCH", "STEP", "messages_table", "true_time"]

LAUNCH, STEP, BUS = 8e-6, 1.5e-6, 1e11
"""Seconds before the first step and of a step; bytes a second of a link."""

OPS = ("all_reduce", "all_gather", "all_to_all")
SIZES = tuple(float(4**k) for k in range(5, 15))


def true_time(op: str, size: float, ranks: int, growth: float = 0.0) -> float:
    """The faster of two protocols round a ring: one with twice the bytes, one that waits three times as long."""
    turns = 2 if op == "all_reduce" else 1
    latency = LAUNCH + turns * (ranks - 1) * STEP
    wire = turns * (ranks - 1) / ranks * size / BUS * (ranks / 2) ** growth
    return float(min(latency + 2 * wire, 3 * latency + wire))


def messages_table(
    seed: int,
    *,
    targets: tuple[str, ...] = ("node",),
    campaigns: tuple[str, ...] = ("monday",),
    ops: Sequence[str] = OPS,
    ranks: Sequence[int] = (2, 4, 8),
    sizes: Sequence[float] = SIZES,
    processes: int = 2,
    noise: float = 0.03,
    growth: float = 0.0,
) -> pd.DataFrame:
    """Every collective at every size and number of ranks.

    Parameters
    ----------
    seed
        Of the noise.
    targets, campaigns
        Names.
    ops, ranks, sizes
        What is measured; bytes for the sizes.
    processes
        Repeats of every configuration.
    noise
        Standard deviation of log time.
    growth
        Exponent with which the time of a byte grows with ranks.
    """
    rng = np.random.default_rng(seed)
    rows = [
        {
            "target": target,
            "op": op,
            "dtype": "float32",
            "flops": 0.0,
            "bytes": 2 * size,
            "message_bytes": size,
            "n_devices": n,
            "time_s": true_time(op, size, n, growth) * np.exp(noise * rng.standard_normal()),
            "campaign": campaign,
            "process": str(process),
        }
        for target in targets
        for campaign in campaigns
        for op in ops
        for n in ranks
        for size in sizes
        for process in range(processes)
    ]
    return with_ids(validate(pd.DataFrame(rows)), source="simulated")
