"""False alarms of `Profile.validate`: how often does anything fail that did not change?

``python tests/benchmarks/false_alarms.py``. Every replicate draws parameters and campaigns, simulates a table of three
campaigns and held-out points of a later one, fits the table and tests. An alarm is any group below alpha; its share
over replicates is judged against alpha plus two standard errors:

- ``model``: everything as the model believes, Student-t noise of its own tail;
- ``spread 0.02``, ``spread 0.1``: campaigns of a fixed spread, in common and half as much of each term of its own;
- ``heavy tails``: noise of t3 of the same scale, which nothing promised: printed, not judged, ``exact`` only.

Two kinds of fit: ``nuts`` draws truths from the shipped roofline, samples its posterior and calls `Profile.validate`;
``exact`` is a roofline made linear with known spreads, whose posterior has a closed form, and carries the bulk. Nothing
is granted (tolerance 0), which is the harder case; alarms at the default tolerance are printed beside it. The last line
says whether the limits were met and both kinds agree (Fisher's exact test); exit code 1 if not.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

sys.path.insert(0, __file__.rpartition("/")[0])

from _setup import use_one_device

use_one_device()

import numpy as np  # noqa: E402
import scipy.stats  # noqa: E402
from _linear import BELIEVED, Linear  # noqa: E402
from _worlds import World, points  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

from bayesperf.inference.sampling import SamplerSettings  # noqa: E402

ALPHA, NOTHING, GRANTED = 0.05, 1e-9, 0.1
CAMPAIGNS, SPREAD = 3, 0.03
SETTINGS = SamplerSettings()
"""Those of a fit by default, of which a second attempt is left out."""


@dataclass(frozen=True)
class Scenario:
    """A way to simulate: the noise's degrees of freedom and the campaigns' spread, the model's own where None.

    The linear world has no belief about the spread: its own is `SPREAD`.
    """

    name: str
    tail: float | None = None
    spread: float | None = None
    judged: bool = True


SCENARIOS = (
    Scenario("model"),
    Scenario("spread 0.02", spread=0.02),
    Scenario("spread 0.1", spread=0.1),
    Scenario("heavy tails", tail=3.0, judged=False),
)


def exact(scenario: Scenario, fits: int, seed: int) -> np.ndarray:
    """Alarm without and with tolerance of fits in closed form, (replicate, 2)."""
    world = Linear(CAMPAIGNS, scenario.spread or SPREAD, scenario.tail or BELIEVED)
    found = []
    for at in range(fits):
        rng = np.random.default_rng([seed, at, 1])
        held = world.held(rng, (8, 8, 8))
        found.append([held.adjusted(rng, tolerance).min() < ALPHA for tolerance in (NOTHING, GRANTED)])
    return np.array(found, dtype=bool)


def nuts(world: World, scenario: Scenario, fits: int, seed: int) -> np.ndarray:
    """Alarm without and with tolerance of the shipped model, and whether the fit passed its gate, (replicate, 3)."""
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
    parser.add_argument("--exact", type=int, default=1000, help="replicates of each scenario in closed form")
    parser.add_argument("--nuts", type=int, default=40, help="replicates of each scenario by NUTS; 0 for none")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first scenario")
    options = parser.parse_args()
    world = World(points(None, 4, 4, 4), CAMPAIGNS, SETTINGS) if options.nuts else None
    view = Table("replicates", "fits", "alarms, nothing granted", "limit", "alarms, 10 % granted", "unconverged")
    missed = []
    for number, scenario in enumerate(SCENARIOS):
        if scenario.name not in options.scenarios:
            continue
        kinds = {"exact": exact(scenario, options.exact, options.seed + number)}
        if world is not None and scenario.judged:
            kinds["nuts"] = nuts(world, scenario, options.nuts, options.seed + number)
        for kind, found in kinds.items():
            share, granted = found[:, 0].mean(), found[:, 1].mean()
            limit = ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / len(found))
            unconverged = f"{1 - found[:, 2].mean():.0%}" if kind == "nuts" else "-"
            row = (f"{scenario.name}, {kind}", str(len(found)), f"{share:.2%}", f"{limit:.2%}", f"{granted:.2%}")
            view.add_row(*row, unconverged)
            print(*row, unconverged, sep="; ", file=sys.stderr)
            missed += [row[0]] * bool(scenario.judged and share > limit)
        if world is not None and scenario.judged:
            table = [[int(found[:, 0].sum()), int((~found[:, 0]).sum())] for found in kinds.values()]
            missed += [f"{scenario.name}: kinds differ"] * bool(scipy.stats.fisher_exact(table).pvalue < 0.01)
    Console(width=120).print(view)
    print("limits met" if not missed else f"limits missed: {', '.join(missed)}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
