"""False alarms of `Profile.validate`: how often does anything fail that did not change?

``python tests/benchmarks/false_alarms.py``. Every replicate draws parameters and campaigns from the shipped roofline,
simulates a table of three campaigns and held-out points of a later one, fits the table by NUTS and validates. An alarm
is any group called ``fails``; its share over replicates is judged against alpha plus two standard errors:

- ``model``: everything as the model believes, Student-t noise of its own tail;
- ``heavy tails``: noise of t3, which the model does not know;
- ``spread 0.02``, ``spread 0.1``: campaigns of a fixed spread, in common and half as much of each term of its own.

Nothing is granted (tolerance 0), which is the harder case; alarms at the default tolerance are printed beside it. The
last line says whether the limits were met; exit code 1 if not.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

sys.path.insert(0, __file__.rpartition("/")[0])

from _setup import use_one_device

use_one_device()

import numpy as np  # noqa: E402
from _worlds import World, points  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from bayesperf.inference.sampling import SamplerSettings  # noqa: E402

ALPHA, NOTHING, GRANTED = 0.05, 1e-9, 0.1
CAMPAIGNS = 3
SETTINGS = SamplerSettings(draws=250, tune=500, chains=2)


@dataclass(frozen=True)
class Scenario:
    """A way to simulate: the noise's degrees of freedom and the campaigns' spread, the model's own where None."""

    name: str
    tail: float | None = None
    spread: float | None = None


SCENARIOS = (
    Scenario("model"),
    Scenario("heavy tails", tail=3.0),
    Scenario("spread 0.02", spread=0.02),
    Scenario("spread 0.1", spread=0.1),
)


def alarms(world: World, scenario: Scenario, fits: int, seed: int) -> np.ndarray:
    """Alarm without and with tolerance, and whether the fit passed its gate, (replicate, 3)."""
    found = []
    for at, drawn in enumerate(world.truths(fits, seed)):
        rng = np.random.default_rng([seed, at])
        truth = drawn
        if scenario.spread is not None:
            truth = world.with_campaigns(drawn, scenario.spread, scenario.spread / 2, rng)
        profile = world.fit(world.measure(truth, rng, scenario.tail), seed=1000 * seed + at)
        heldout = world.later(truth, points(rng, 8, 8, 8), rng, scenario.tail)
        alarm = [profile.validate(heldout, tolerance=t, alpha=ALPHA).any_fails for t in (NOTHING, GRANTED)]
        found.append((*alarm, profile.converged))
    return np.array(found, dtype=bool)


def main() -> None:
    """Simulate, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--scenarios", nargs="+", default=names, choices=names)
    parser.add_argument("--fits", type=int, default=400, help="replicates of each scenario")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first scenario")
    options = parser.parse_args()
    world = World(points(None, 4, 4, 4), CAMPAIGNS, SETTINGS)
    view = Table("replicates", "fits", "alarms, nothing granted", "limit", "alarms, 10 % granted", "unconverged")
    missed = []
    for number, scenario in enumerate(SCENARIOS):
        if scenario.name not in options.scenarios:
            continue
        started = time.perf_counter()
        found = alarms(world, scenario, options.fits, options.seed + number)
        share, granted, converged = found.mean(axis=0)
        limit = ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / options.fits)
        row = (
            scenario.name, str(len(found)), f"{share:.2%} ({found[:, 0].sum()})", f"{limit:.2%}", f"{granted:.2%}",
            f"{1 - converged:.0%}",
        )  # fmt: skip
        view.add_row(*row)
        print(*row, f"{(time.perf_counter() - started) / len(found):.2f} s each", sep="; ", file=sys.stderr)
        if share > limit:
            missed.append(scenario.name)
    Console(width=120).print(view)
    print("limits met" if not missed else f"limits missed: {', '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
