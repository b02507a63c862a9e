"""How fast a fit samples, against the same posterior as a textbook model.

``python tests/benchmarks/fit.py [--data own|neusight] [--pairs 3]``. Both are PyMC models of one likelihood and one
prior, sampled by nutpie on Numba with the same number of chains, draws and tuning steps. The textbook's hierarchy is
non-centred throughout, begins at the prior's centre, and nutpie's defaults compile and sample it. Ours centres what the
rows determine, begins at the rates that they show, and computes what follows from the draws afterwards.

Compared is the smallest bulk effective sample size per second over all quantities that a report names, with compilation
(whatever is in Numba's cache) and without. Posterior means should agree within Monte-Carlo error. The last line is the
ratio without compilation, which should be at least 3.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

import arviz_stats as azs
import numpy as np
import nutpie
import pandas as pd
import xarray as xr

import bayesperf as bp
from bayesperf.inference.sampling import SamplerSettings, compile_model, sample
from bayesperf.models.roofline.build import build
from bayesperf.models.roofline.coded import Encoded
from bayesperf.models.roofline.model import Roofline
from bayesperf.schema import rows_for, validate, with_ids

WANTED = 3.0
DRAWS, TUNE, CHAINS = 1000, 1000, 4


@dataclass(frozen=True)
class Run:
    """Draws of every named quantity, (chain, draw), and what they cost."""

    quantities: dict[str, np.ndarray]
    seconds: float

    @property
    def smallest(self) -> float:
        """Smallest bulk effective sample size."""
        return min(float(azs.ess(values, method="bulk")) for values in self.quantities.values())


def main() -> None:
    """Sample both, compare, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["own", "neusight"], default="own")
    parser.add_argument("--pairs", type=int, default=3, help="how often each is sampled")
    options = parser.parse_args()
    encoded = Roofline().encode(*table_of(options.data))
    print(f"{len(encoded.log_time)} observations of {options.data}")
    ours, ours_s = timed(lambda: compile_ours(encoded))
    theirs, theirs_s = timed(lambda: compile_textbook(encoded))
    print(f"compilation: ours {ours_s:.1f} s, textbook {theirs_s:.1f} s")
    rates: list[tuple[float, float]] = []
    for pair in range(options.pairs):
        mine, other = run_ours(encoded, ours, pair), run_textbook(encoded, theirs, pair)
        rates.append((mine.smallest / mine.seconds, other.smallest / other.seconds))
        print(
            f"pair {pair}: ours {mine.smallest:.0f} in {mine.seconds:.1f} s, "
            f"textbook {other.smallest:.0f} in {other.seconds:.1f} s, ratio {rates[-1][0] / rates[-1][1]:.2f}"
        )
        print(f"  largest difference of means: {difference(mine, other):.1f} Monte-Carlo errors")
    ratio = float(np.median([a / b for a, b in rates]))
    with_compilation = (mine.smallest / (mine.seconds + ours_s)) / (other.smallest / (other.seconds + theirs_s))
    print(f"with compilation: {with_compilation:.2f}")
    print(f"ratio {ratio:.3f}")
    sys.exit(ratio < WANTED)


def table_of(name: str) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Rows to fit, and spec sheets."""
    if name == "own":
        table = bp.datasets.load("own", suite="quick")
        return with_ids(validate(rows_for(table, "fit")), source="own"), None
    table = bp.datasets.load("neusight", ops=["linear", "softmax", "elementwise"])
    table = table[table["role"] == "fit"].groupby(["target", "op"]).sample(20, random_state=0)
    return with_ids(validate(table.reset_index(drop=True)), source="neusight"), bp.datasets.targets()


def timed(function: Any) -> tuple[Any, float]:
    """Result and seconds."""
    began = time.perf_counter()
    return function(), time.perf_counter() - began


def compile_ours(encoded: Encoded) -> Any:
    """As `bayesperf.fit` does."""
    model = build(encoded)
    return model, compile_model(model)


def compile_textbook(encoded: Encoded) -> Any:
    """Non-centred throughout, defaults."""
    model = build(encoded, centred={name: np.zeros_like(mask) for name, mask in encoded.informed.items()})
    return model, nutpie.compile_pymc_model(model, backend="numba")


def run_ours(encoded: Encoded, made: Any, seed: int) -> Run:
    """One sample."""
    model, compiled = made
    settings = SamplerSettings(draws=DRAWS, tune=TUNE, chains=CHAINS)
    tree, seconds = timed(lambda: sample(model, compiled, settings, seed=seed, progress=False))
    return Run(named(encoded, tree["posterior"].to_dataset()), seconds)


def run_textbook(encoded: Encoded, made: Any, seed: int) -> Run:
    """One sample."""
    _, compiled = made
    tree, seconds = timed(
        lambda: nutpie.sample(compiled, draws=DRAWS, tune=TUNE, chains=CHAINS, seed=seed, progress_bar=False)
    )
    return Run(named(encoded, tree["posterior"].to_dataset()), seconds)


def named(encoded: Encoded, posterior: xr.Dataset) -> dict[str, np.ndarray]:
    """Logs of the quantities that a report names."""
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    flat = {
        str(name): values.transpose("chain", "draw", ...).to_numpy().reshape(shape[0] * shape[1], *values.shape[2:])
        for name, values in posterior.data_vars.items()
    }
    return {f"{q.target} {q.label}": np.log(q.draws).reshape(shape) for q in Roofline().quantities(encoded, flat)}


def difference(a: Run, b: Run) -> float:
    """Largest difference of means over its Monte-Carlo error."""
    worst = 0.0
    for name, values in a.quantities.items():
        other = b.quantities[name]
        error = np.hypot(float(azs.mcse(values, method="mean")), float(azs.mcse(other, method="mean")))
        worst = max(worst, abs(values.mean() - other.mean()) / error)
    return worst


if __name__ == "__main__":
    main()
