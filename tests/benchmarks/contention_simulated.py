"""Contention on simulated targets: each resource in turn, composition from pairs, slicing against sharing, calibration.

``python tests/benchmarks/contention_simulated.py [composition] [verdicts] [calibration]``; all three without a name.

- composition: targets on which compute, memory or a link contends, all of them, and one that takes turns
  (`tests/benchmarks/_contention.py`, a fluid with fair progress, written independently of the model; 3 % noise). Pairs
  of small kernels are fitted (contention's part of the model, which is independent of the roofline's); mixes of 2, 3
  and 4 with victims of another size are predicted.
- verdicts: `--sets` simulated targets that share and as many that take turns, each with its own kernels, losses and
  noise; how many are called wrongly and how many stay undecided, with complementary aggressors, and that none is
  called without them.
- calibration: `--simulations` data sets drawn from the prior of two targets with six mixes each; ranks of the truth
  among posterior draws, simultaneous bands (Holm over all parameters).

Exit code 1 if a limit was missed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from _setup import use_one_device

use_one_device()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from _contention import KERNELS, TRANSFERS, Kernel, Target, pairs, small_model, table  # noqa: E402
from _mixes import multiplied, with_slowdowns  # noqa: E402
from _part import fitted_part  # noqa: E402

import bayesperf as bp  # noqa: E402
from bayesperf.models.contention import sharing, slowdown  # noqa: E402
from bayesperf.models.contention.encode import encode  # noqa: E402
from bayesperf.schema import rows_for  # noqa: E402
from bayesperf.store import concat  # noqa: E402

ERROR, COVERAGE, WRONG, UNDECIDED = 0.1, (0.8, 0.97), 0.05, 0.1
PLENTY = 50.0

TARGETS = {
    "compute": Target("compute", {"compute": 1.0, "memory": PLENTY, "link": PLENTY}),
    "memory": Target("memory", {"compute": PLENTY, "memory": 1.0, "link": PLENTY}),
    "link": Target("link", {"compute": PLENTY, "memory": PLENTY, "link": 1.0}),
    "all": Target("all"),
    "turns": Target("turns", turns=True),
}


def composition(draws: int) -> bool:
    """Pairs are fitted, mixes of two to four predicted."""
    tables = []
    for seed, (name, target) in enumerate(TARGETS.items()):
        kernels = TRANSFERS if name == "link" else KERNELS[:5]
        held = [mix for n in (2, 3, 4) for mix in itertools.product(kernels, repeat=n)]
        chosen = np.random.default_rng(seed).choice(len(held), 60, replace=False)
        tables.append(table(target, list(pairs(kernels)), seed, heldout=[held[at] for at in chosen]))
    both = concat(tables)
    profile = fitted_part(rows_for(both, "fit"), draws=draws, tune=draws, chains=4, seed=1)
    rows = with_slowdowns(both)
    rows = rows[rows["role"] == "heldout"].reset_index(drop=True)
    found = slowdown(profile, rows.drop(columns="time_s"), draws=2000)
    sharers = 1 + rows["corunners"].map(lambda label: sum(int(p.rsplit(":", 1)[1]) for p in label.split("+")))
    rows = rows.assign(
        predicted=found["slowdown"], pairs=multiplied(profile, rows), sharers=sharers, error=0.0,
        inside=rows["measured"].between(found["slowdown_lower"], found["slowdown_upper"]),
    )  # fmt: skip
    print(f"composition: {len(profile.table)} rows fitted, converged: {profile.converged}")
    good = True
    for names, group in (*rows.groupby(["target", "sharers"]), (("all", "2-4"), rows)):
        errors = {name: float(np.mean(np.abs(value / group["measured"] - 1))) for name, value in (
            ("model", group["predicted"]), ("no contention", 1.0), ("pairs multiplied", group["pairs"]))}  # fmt: skip
        said = ", ".join(f"{name} {value:6.1%}" for name, value in errors.items())
        print(
            f"  {names[0]:8} {names[1]!s:4} sharers, {len(group):3} rows: {said}; covers {group['inside'].mean():4.0%}"
        )
    overall = float(np.mean(np.abs(rows["predicted"] / rows["measured"] - 1)))
    good = overall <= ERROR and COVERAGE[0] <= rows["inside"].mean() <= COVERAGE[1]
    print("  limits kept" if good else "  a limit was missed")
    return bool(good)


def verdicts(sets: int) -> bool:
    """Slicing against sharing."""
    rng = np.random.default_rng(5)
    counts: Any = pd.DataFrame(0, index=["slicing", "sharing"], columns=["slicing", "sharing", "undecided"])
    early = 0
    for truth, seed in itertools.product(counts.index, range(sets)):
        target = Target("box", loss=float(rng.uniform(0.0, 0.2)), turns=truth == "slicing")
        noise = float(rng.uniform(0.01, 0.08))
        kernels = [Kernel(k.op, *_jittered(k, rng)) for k in (KERNELS[0], KERNELS[1])]
        others = [(kernels[0], kernels[1]), (kernels[1], kernels[0]), *((k, k) for k in kernels)]
        found = sharing(encode(table(target, others, seed, noise=noise), None))
        counts.loc[truth, found["verdict"].iloc[0]] += 1
        equal = [(k, k) for k in kernels]
        early += sharing(encode(table(target, equal, seed, noise=noise), None))["verdict"].iloc[0] != "undecided"
    wrong = int(counts.to_numpy()[[0, 1], [1, 0]].sum())
    shares = wrong / (2 * sets), counts["undecided"].sum() / (2 * sets)
    print(f"verdicts: rows truth, columns verdict, {sets} sets each\n{counts}")
    print(f"  called wrongly {shares[0]:.1%}, undecided {shares[1]:.1%}; called without complementary ones: {early}")
    return bool(shares[0] <= WRONG and shares[1] <= UNDECIDED and not early)


def _jittered(kernel: Kernel, rng: np.random.Generator) -> tuple[float, float]:
    """Shares with the larger one at 1 and the smaller one anywhere up to 0.3."""
    small = float(rng.uniform(0.01, 0.3))
    return (1.0, small) if kernel.compute > kernel.memory else (small, 1.0)


def calibration(simulations: int) -> bool:
    """Recovery of what the prior draws."""
    found = bp.checks.sbc(small_model(), simulations=simulations, draws=250, tune=400, chains=2, seed=3)
    failed = found.failed(0.01)
    print(f"calibration: {simulations} data sets, {found.divergent} with a divergence, {len(found.table)} parameters")
    print(found.table.sort_values("p").head(8).to_string(index=False))
    print(f"  outside their bands: {failed or 'none'}")
    return not failed


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", choices=["composition", "verdicts", "calibration"], default=[])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--simulations", type=int, default=400)
    options = parser.parse_args()
    parts: dict[str, Callable[[], bool]] = {
        "composition": lambda: composition(options.draws), "verdicts": lambda: verdicts(options.sets),
        "calibration": lambda: calibration(options.simulations),
    }  # fmt: skip
    good = [run() for name, run in parts.items() if not options.parts or name in options.parts]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
