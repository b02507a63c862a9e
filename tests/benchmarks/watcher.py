"""The watcher's false alarms and power, by simulation: Student-t noise, slow drift, changes at random rows.

``python tests/benchmarks/watcher.py`` simulates streams of residuals (log of measured over predicted time) and runs the
core of `Profile.watch` over each. Parts:

- ``null``: streams that drift by 3 % over their length and have no change; the share that ever raises is judged
  against 1 % (alpha), at zero and at the default tolerance, and under circumstances that were not promised;
- ``power``: a 20 % change at a uniformly random row; the share raised within 30 rows is judged against 90 % at zero
  tolerance and 6 % noise, and printed for the default tolerance and for other noise.

The last line says whether the limits were met; exit code 1 if not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from bayesperf.model import Floats
from bayesperf.validation.changepoint import ChangePoints
from bayesperf.validation.watcher import ALPHA, DRIFT_ROWS, TOLERANCE

LENGTH, NOISE, DRIFT, TAIL = 10_000, 0.06, 0.03, 5.0
WITHIN, SHIFT = 30, float(np.log(1.2))
PROMISED = 0.01 / np.sqrt(DRIFT_ROWS)
"""Drift per row that the watcher allows by default."""

PRINTED = 4
"""Scenarios without a limit take one stream in so many."""

BATCH = 100
"""Streams that advance together: their levels fit into a core's cache."""

Level = Callable[[np.random.Generator, int], Floats]
"""Makes the levels of so many streams, (row, stream)."""


@dataclass(frozen=True)
class Scenario:
    """Streams to simulate; a `limit` is judged, None is only printed."""

    name: str
    tolerance: float
    level: Level
    noise: float = NOISE
    tail: float = TAIL
    told: float = 1.0
    limit: float | None = None


def steady(_: np.random.Generator, streams: int) -> Floats:
    """No drift."""
    return np.zeros((LENGTH, streams))


def line(rng: np.random.Generator, streams: int) -> Floats:
    """Drift along a line, either way."""
    return np.linspace(0.0, DRIFT, LENGTH)[:, None] * rng.choice([-1.0, 1.0], size=streams)


def wave(rng: np.random.Generator, streams: int) -> Floats:
    """Drift to and fro, as temperature does over days: two periods."""
    at = np.linspace(0.0, 4 * np.pi, LENGTH)[:, None] + rng.uniform(0, 2 * np.pi, streams)
    return np.asarray(DRIFT * (np.sin(at) - np.sin(at[0])))


def walk(rng: np.random.Generator, streams: int) -> Floats:
    """Drift as a random walk."""
    return np.asarray(np.cumsum(DRIFT / np.sqrt(LENGTH) * rng.standard_normal((LENGTH, streams)), axis=0))


def tolerated(rng: np.random.Generator, streams: int) -> Floats:
    """A change of the tolerance itself at a random row."""
    at = rng.integers(1, LENGTH, streams)
    return np.where(np.arange(LENGTH)[:, None] >= at, np.log1p(TOLERANCE), 0.0)


NULLS = (
    Scenario("no drift", 0.0, steady, limit=ALPHA),
    Scenario("line, 3 %", 0.0, line, limit=ALPHA),
    Scenario("wave, 3 %", 0.0, wave, limit=ALPHA),
    Scenario("random walk, 3 %", 0.0, walk, limit=ALPHA),
    Scenario("line, 3 %", TOLERANCE, line, limit=ALPHA),
    Scenario("change of the tolerance", TOLERANCE, tolerated, limit=ALPHA),
    Scenario("line, 3 %; noise told as half", 0.0, line, told=0.5),
    Scenario("line, 3 %; tails of t3", 0.0, line, tail=3.0),
)

POWERS = (
    *(Scenario(f"20 %, noise {noise:.0%}", 0.0, line, noise, limit=0.9 if noise == NOISE else None) for noise in
      (0.03, NOISE, 0.1)),
    *(Scenario(f"20 %, noise {noise:.0%}", TOLERANCE, line, noise) for noise in (0.03, NOISE, 0.1)),
)  # fmt: skip


def tests_of(scenario: Scenario, streams: int) -> ChangePoints:
    """The core, as `Profile.watch` sets it up."""
    return ChangePoints(streams, tolerance=float(np.log1p(scenario.tolerance)), drift=PROMISED, tail=TAIL)


def ever_raised(scenario: Scenario, rng: np.random.Generator, streams: int) -> Floats:
    """Whether each stream without a change raises at any row, (stream,)."""
    level, test = scenario.level(rng, streams), tests_of(scenario, streams)
    highest = np.full(streams, -np.inf)
    scale = np.full(streams, scenario.noise * scenario.told)
    for row in level:
        test.step(row + scenario.noise * rng.standard_t(scenario.tail, size=streams), scale)
        highest = np.maximum(highest, test.log_e)
    return np.asarray(highest >= -np.log(ALPHA), dtype=float)


def delays(scenario: Scenario, rng: np.random.Generator, streams: int) -> Floats:
    """Rows from each stream's change to the alarm, (stream,); infinite beyond 10 times `WITHIN`, NaN if before."""
    level, test = scenario.level(rng, streams), tests_of(scenario, streams)
    # All streams of a batch change at one row, which is drawn anew for every batch.
    change = int(rng.integers(1, LENGTH - 10 * WITHIN))
    level[change:] += SHIFT * rng.choice([-1.0, 1.0], size=streams)
    raised, scale = np.full(streams, np.inf), np.full(streams, scenario.noise)
    for at, row in enumerate(level[: change + 10 * WITHIN]):
        test.step(row + scenario.noise * rng.standard_t(scenario.tail, size=streams), scale)
        raised = np.where(np.isinf(raised) & (test.log_e >= -np.log(ALPHA)), at + 1 - change, raised)
        if np.isfinite(raised).all():
            break
    return np.where(raised > 0, raised, np.nan)


def run(
    title: str, scenarios: tuple[Scenario, ...], judge: Callable[..., tuple[list[str], bool]], runs: int
) -> Iterator[str]:
    """Simulate scenarios, print a table, yield the limits that were missed."""
    table = Table("stream", "tolerance", "noise", *HEADS[title], title=title)
    for at, scenario in enumerate(scenarios):
        # What is only printed need not be known as well.
        cells, met = judge(
            scenario, np.random.default_rng([at, len(title)]), runs if scenario.limit else runs // PRINTED
        )
        table.add_row(scenario.name, f"{scenario.tolerance:.0%}", f"{scenario.noise:.0%}", *cells)
        print(f"{title}: {scenario.name}: {', '.join(cells)}", file=sys.stderr)
        if not met:
            yield f"{title}, {scenario.name}, tolerance {scenario.tolerance:.0%}"
    Console(width=120).print(table)


HEADS = {
    "null": ("streams", "raised ever", "limit"),
    "power": ("streams", f"raised in {WITHIN} rows", "median rows", "too early", "limit"),
}


def judge_null(scenario: Scenario, rng: np.random.Generator, runs: int) -> tuple[list[str], bool]:
    """Share of streams that raise."""
    raised = np.concatenate([ever_raised(scenario, rng, BATCH) for _ in range(-(-runs // BATCH))])
    share = float(raised.mean())
    limit = "-" if scenario.limit is None else f"{scenario.limit:.0%}"
    return [f"{len(raised)}", f"{share:.2%}", limit], scenario.limit is None or share <= scenario.limit


def judge_power(scenario: Scenario, rng: np.random.Generator, runs: int) -> tuple[list[str], bool]:
    """Share of changes raised in time."""
    batch = 20
    found = np.concatenate([delays(scenario, rng, batch) for _ in range(-(-runs // batch))])
    share = float(np.mean(found <= WITHIN))
    limit = "-" if scenario.limit is None else f"{scenario.limit:.0%}"
    cells = [f"{len(found)}", f"{share:.1%}", f"{np.nanmedian(found):.0f}", f"{np.isnan(found).mean():.1%}", limit]
    return cells, scenario.limit is None or share >= scenario.limit


def main() -> None:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["null", "power"], choices=["null", "power"])
    parser.add_argument("--runs", type=int, default=1000, help="null streams of each kind that is judged")
    parser.add_argument("--changes", type=int, default=500, help="streams with a change, likewise")
    options = parser.parse_args()
    missed: list[str] = []
    if "null" in options.parts:
        missed += run("null", NULLS, judge_null, options.runs)
    if "power" in options.parts:
        missed += run("power", POWERS, judge_power, options.changes)
    print("limits met" if not missed else "limits missed: " + "; ".join(missed))
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
