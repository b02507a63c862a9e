"""Collectives: sizes and numbers of ranks that were not fitted, on public tables and on tables of one's own.

``python tests/benchmarks/communication.py`` needs the data sets (see `bayesperf list datasets`); parts:

- ``sizes``: AIConfigurator's NCCL tables (three GPUs, two releases on one). A third of the sizes is held out, each for
  every collective and number of ranks alike;
- ``ranks``: of the same tables 2 and 4 ranks are fitted, from two thirds of the sizes; 8 are predicted at all sizes;
- ``vidur``: all-reduce and send-receive between GPUs and between nodes, at most `ROWS` rows of each fabric, collective
  and number of ranks; the same number held out;
- ``own``: a table of this machine, ``--table FILE`` of `bayesperf measure --suite collectives`, a third of the sizes of
  each collective held out;
- ``calibration``: `--simulations` data sets drawn from the prior of two collectives at two numbers of ranks and four
  sizes; ranks of the truth among posterior draws, simultaneous bands (Holm over all parameters).

Errors are of predictive medians in the measured campaign, for messages of 64 KiB and more. The last line says whether
the limits were met (sizes: error at most 10 %, 90 % intervals cover 85 to 95 %; ranks: error at most 10 %); exit code 1
if not.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

import bayesperf as bp
from bayesperf.schema import is_excluded, validate, with_ids
from bayesperf.validation.scores import baseline

LEAST_BYTES = 65_536
ROWS = 40
PROBABILITY = 0.9
PARTS = ("sizes", "ranks", "vidur", "own", "calibration")


def main() -> None:
    """Run the parts asked for over the seeds, print tables, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["sizes", "ranks"], choices=PARTS)
    parser.add_argument("--targets", nargs="+", help="only these targets")
    parser.add_argument("--table", type=Path, help="measurements for the part `own`")
    parser.add_argument(
        "--seeds", nargs="+", type=int, default=[0, 1, 2], help="seeds of the splits and of the sampler"
    )
    parser.add_argument("--draws", type=int, default=500, help="draws and tuning steps per chain")
    parser.add_argument("--simulations", type=int, default=400, help="data sets of the part `calibration`")
    options = parser.parse_args()
    failed: list[str] = []
    for part in options.parts:
        if part == "calibration":
            failed += [f"calibration: {name} outside its band" for name in calibration(options.simulations)]
            continue
        table = load(part, options.table)
        if options.targets:
            table = table[table["target"].isin(options.targets)].reset_index(drop=True)
        for seed in options.seeds:
            fitted, held = SPLITS[part](table, seed)
            rows = score(fit(fitted, seed, options.draws), held)
            failed += judge(part, rows[rows["message_bytes"] >= LEAST_BYTES], seed)
    print("limits met" if not failed else "limits missed: " + "; ".join(failed))
    sys.exit(bool(failed))


def load(part: str, path: Path | None) -> pd.DataFrame:
    """Collectives of a part, without rows that a rule of the data set leaves out."""
    if part == "own":
        if path is None:
            raise SystemExit("the part `own` needs --table FILE: bayesperf measure --suite collectives --out FILE")
        table = bp.read_measurements(path)
        table = table[table["message_bytes"].notna() & (table["n_devices"] > 1) & (table["op"] != "copy_p2p")]
    elif part == "vidur":
        table = bp.datasets.load("vidur", kinds=["network"])
    else:
        table = bp.datasets.load("aiconfigurator", families=["nccl"])
        # The rows of int8 repeat these byte by byte; with them, fits take twice as long.
        table = table[table["dtype"] == "float16"]
    return table[~is_excluded(table)].reset_index(drop=True)


def by_size(table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A third of the sizes is held out, the smallest and the largest are not; no size is in both."""
    held = table["message_bytes"].isin(some_sizes(table, seed))
    return table[~held], table[held]


def some_sizes(table: pd.DataFrame, seed: int) -> np.ndarray:
    """A third of the sizes between the smallest and the largest."""
    sizes = np.sort(table["message_bytes"].unique())[1:-1]
    return np.random.default_rng(seed).choice(sizes, max(1, len(sizes) // 3), replace=False)


def by_ranks(table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two and four ranks are fitted, at two thirds of the sizes; eight are held out."""
    few = table[table["n_devices"] < 8]
    return few[~few["message_bytes"].isin(some_sizes(few, seed))], table[table["n_devices"] == 8]


def by_row(table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """At most `ROWS` rows of each fabric, collective and number of ranks are fitted, and as many held out."""
    mixed = table.sample(frac=1.0, random_state=seed)
    place = mixed.groupby(["target", "op", "n_devices"]).cumcount()
    return mixed[place < ROWS], mixed[(place >= ROWS) & (place < 2 * ROWS)]


def by_own_size(table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of each collective of a few sizes one between the ends is held out, another one by turns."""
    rng = np.random.default_rng(seed)
    out = np.zeros(len(table), dtype=bool)
    for _, rows in table.groupby(["target", "op", "n_devices"]):
        sizes = np.sort(rows["message_bytes"].unique())[1:-1]
        if len(sizes):
            out |= table.index.isin(rows.index[rows["message_bytes"] == rng.choice(sizes)])
    return table[~out], table[out]


def design() -> pd.DataFrame:
    """A small design, of which calibration replaces the times: two collectives, twice each."""
    cases = itertools.product(("all_reduce", "all_gather"), (2, 4), (1e3, 3e4, 1e6, 3e7), (0, 1))
    rows = [
        {
            "target": "node", "op": op, "dtype": "float32", "flops": 0.0, "bytes": 2 * size, "message_bytes": size,
            "n_devices": n, "campaign": "monday", "process": str(again),
            "time_s": (1e-5 + size / 1e11) * (1.0 + 0.03 * again),
        }
        for op, n, size, again in cases
    ]  # fmt: skip
    return with_ids(validate(pd.DataFrame(rows)), source="design")


def calibration(simulations: int) -> list[str]:
    """Print how well what the prior draws is recovered, and name what leaves its band."""
    found = bp.checks.sbc("communication", design(), simulations=simulations, draws=200, tune=400, seed=17)
    print(f"calibration: {simulations} data sets, {found.divergent} with a divergence, {len(found.table)} parameters")
    print(found.table.sort_values("p").head(8).to_string(index=False), flush=True)
    return found.failed(0.01)


SPLITS = {"sizes": by_size, "ranks": by_ranks, "vidur": by_row, "own": by_own_size}


def fit(rows: pd.DataFrame, seed: int, draws: int) -> bp.Profile:
    """Fit, and say what the gate found."""
    rows = rows.reset_index(drop=True).assign(role="fit")
    profile = bp.fit(rows, model="communication", draws=draws, tune=draws, seed=seed, attempts=1)
    found = ", ".join(f"{c.name} {c.value:.4g}{'' if c.passed else ' FAILED at ' + c.where}" for c in profile.gate)
    print(f"seed {seed}: {len(rows)} rows fitted; gate: {found}", flush=True)
    return profile


def score(profile: bp.Profile, rows: pd.DataFrame) -> pd.DataFrame:
    """Each held-out row with its prediction in its own campaign."""
    parts = []
    for (target, campaign), part in rows.groupby(["target", "campaign"]):
        part = part.reset_index(drop=True)
        stack = part["stack"].iloc[0] if "stack" in part else None
        prediction = profile.predict(
            part, target=str(target), campaign=str(campaign), stack=stack, allow_unconverged=True
        )
        lower, upper = np.log(prediction.interval(PROBABILITY).values)
        median, y = np.log(prediction.median().values), np.log(part["time_s"].to_numpy())
        centre, spread = baseline(profile.table, part)
        parts.append(
            part.assign(
                error=np.abs(np.exp(median - y) - 1.0),
                signed=y - median,
                inside=(y >= lower) & (y <= upper),
                half=0.5 * (upper - lower),
                score=interval_score(y, lower, upper),
                baseline=interval_score(y, centre - 1.645 * spread, centre + 1.645 * spread),
            )
        )
    return pd.concat(parts, ignore_index=True)


def interval_score(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Interval score of log time; lower is better (Gneiting and Raftery, 2007)."""
    alpha = 1.0 - PROBABILITY
    return np.asarray((upper - lower) + 2 / alpha * (np.maximum(lower - y, 0) + np.maximum(y - upper, 0)))


def show(title: str, rows: pd.DataFrame, by: list[str]) -> None:
    """Print one line per group, and one over all."""
    view = Table(title=title)
    names = ["rows", "error", "median", "coverage", "interval", "shift", "score", "baseline"]
    for name in [*by, *names]:
        view.add_column(name, justify="left" if name in by else "right")
    groups = [(key if isinstance(key, tuple) else (key,), part) for key, part in rows.groupby(by)]
    for labels, part in [*groups, (("all", *[""] * (len(by) - 1)), rows)]:
        view.add_row(
            *map(str, labels), str(len(part)), f"{part['error'].mean():.1%}", f"{part['error'].median():.1%}",
            f"{part['inside'].mean():.3f}", f"x{np.exp(part['half'].median()):.2f}", f"{part['signed'].mean():+.3f}",
            f"{part['score'].mean():.3f}", f"{part['baseline'].mean():.3f}",
        )  # fmt: skip
    Console(width=130).print(view)
    sys.stdout.flush()


def judge(part: str, rows: pd.DataFrame, seed: int) -> Iterator[str]:
    """Print the tables of one seed; yield the limits that were missed."""
    show(f"{part}, seed {seed}, from {LEAST_BYTES // 1024} KiB", rows, ["target", "op"])
    if part not in ("sizes", "ranks"):
        return
    error, coverage = rows["error"].mean(), rows["inside"].mean()
    if error > 0.1:
        yield f"{part}, seed {seed}: error {error:.1%}"
    if part == "sizes" and not 0.85 <= coverage <= 0.95:
        yield f"{part}, seed {seed}: coverage {coverage:.3f}"


if __name__ == "__main__":
    main()
