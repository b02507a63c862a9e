"""Do two runs of the same plan on the same machine agree?

``python tests/benchmarks/repeatability.py [--suite tiny] [--tables FIRST SECOND]``

Measures a suite, repeats its plan as a campaign of its own, and compares the two point by point: the mean log time over
the fresh processes, with a 95 % interval made of the spread between processes (pooled over the configurations of a
probe, by `bayesperf.measure.variance`, from that run alone) and the error within each; its half-width is Student's
quantile at the degrees of freedom of that spread, which in a short suite are few. Points agree where the intervals
overlap; at least 90 % must. Nothing between campaigns is granted. Exits 1 where they do not agree.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t

import bayesperf as bp
from bayesperf.configurations import KEYS
from bayesperf.measure.run import measure, repeat
from bayesperf.measure.variance import variance_parts

__all__ = ["agreement", "intervals", "main"]

WANTED = 0.9


def intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Mean log time of each configuration over its processes, and its standard error.

    Returns
    -------
    DataFrame
        Indexed by the configuration's columns; ``probe``, ``mean`` (log s), ``half`` (half-width of its 95 % interval),
        ``processes``.
    """
    parts = variance_parts(table).set_index(["target", "probe"])
    between, freedom = parts["process"] ** 2, parts["rows"] - parts["configurations"] * parts["campaigns"]
    keys = [name for name in KEYS if name in table and name != "campaign"]
    frame = table.assign(
        mean=np.log(table["time_s"].to_numpy(float)),
        within=(table["time_se_s"].to_numpy(float) / table["time_s"].to_numpy(float)) ** 2,
        between=[between[key] for key in zip(table["target"], table["probe"], strict=True)],
        freedom=[freedom[key] for key in zip(table["target"], table["probe"], strict=True)],
    )
    frame[keys] = frame[keys].astype(object).where(frame[keys].notna(), "")
    grouped = frame.groupby(keys, sort=False).agg(
        probe=("probe", "first"), mean=("mean", "mean"), within=("within", "mean"), between=("between", "first"),
        freedom=("freedom", "first"), processes=("mean", "size"),
    )  # fmt: skip
    variance = (grouped["between"] + grouped["within"]) / grouped["processes"]
    half = t.ppf(0.975, grouped["freedom"]) * np.sqrt(variance)
    return grouped.assign(half=half).drop(columns=["within", "between", "freedom"])


def agreement(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Points that both tables have: their log ratio, and whether their 95 % intervals overlap.

    Raises
    ------
    ValueError
        A probe has a single process: nothing is known of the spread between them.
    """
    joined = intervals(first).add_suffix("_1").join(intervals(second).add_suffix("_2"), how="inner")
    if joined[["half_1", "half_2"]].isna().any(axis=None):
        raise ValueError("a probe was measured in one process only: the spread between processes is not known")
    apart = (joined["mean_2"] - joined["mean_1"]).abs()
    return joined.assign(
        ratio=np.exp(joined["mean_2"] - joined["mean_1"]), overlap=apart <= joined["half_1"] + joined["half_2"]
    )


def show(points: pd.DataFrame) -> float:
    """Print one line per probe, then all; returns the share of points whose intervals overlap."""
    print(
        f"{'probe':16s} {'points':>6s} {'overlap':>8s} {'ratio: median':>14s} {'5 %':>7s} {'95 %':>7s} {'interval':>9s}"
    )
    for probe, group in [*points.groupby("probe_1", sort=True), ("all", points)]:
        low, middle, high = np.quantile(group["ratio"], [0.05, 0.5, 0.95])
        width = float(np.median(group["half_1"]))
        print(
            f"{probe:16s} {len(group):6d} {group['overlap'].mean():8.1%} {middle:14.3f} {low:7.3f} {high:7.3f} "
            f"{f'+-{width:.1%}':>9s}"
        )
    return float(points["overlap"].mean())


def main(arguments: list[str] | None = None) -> int:
    """Measure twice, or compare two tables; 0 if they agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--suite", default="tiny")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", nargs=2, type=Path, metavar=("FIRST", "SECOND"), help="Compare, measure nothing.")
    given = parser.parse_args(arguments)
    if given.tables:
        first, second = (bp.read_measurements(path) for path in given.tables)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "first.parquet"
            measure(given.suite, out=path, seed=given.seed, campaign="first")
            first, second = bp.read_measurements(path), repeat(path, campaign="second")
    points = agreement(first, second)
    share = show(points)
    print(f"{share:.1%} of {len(points)} points agree, {WANTED:.0%} are wanted")
    return 0 if share >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
