"""Truths drawn from the shipped roofline, tables that they would have measured, and fits of those by NUTS.

A design (which points, in which campaigns) is compiled once; every simulated table is swapped in as data.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import bayesperf as bp
from bayesperf.inference.diagnostics import gate
from bayesperf.inference.infer import Inference
from bayesperf.inference.sampling import SamplerSettings, compile_model, deriver, free_names, sample, sample_prior
from bayesperf.model import Floats, Predicted, Request
from bayesperf.models.roofline import Roofline
from bayesperf.schema import validate, with_ids
from bayesperf.specs import check_targets

__all__ = ["COMPUTE", "MEMORY", "OVERHEAD", "Truth", "World", "points"]

PEAK, BANDWIDTH, CACHE = 1e12, 5e10, 4e6
COMPUTE, MEMORY, OVERHEAD = (512, 4096), (3.2e7, 1e9), (8, 40)
"""Sizes that are bound by each: sides of products, bytes of streams, sides of small products."""

BOUND = 0.6
"""Mean sensitivity to a term from which points are bound by it."""

Truth = Mapping[str, Floats]
"""One draw of every parameter, (1, ...) each."""


def points(rng: np.random.Generator | None, compute: int, memory: int, overhead: int) -> pd.DataFrame:
    """So many points of each regime: evenly spaced sizes, or random ones, without times."""

    def sizes(ends: tuple[float, float], n: int) -> Floats:
        low, high = np.log(ends)
        return np.exp(np.linspace(low, high, n) if rng is None else rng.uniform(low, high, n))

    sides = np.round(np.concatenate([sizes(COMPUTE, compute), sizes(OVERHEAD, overhead)]))
    products = pd.DataFrame({"op": "matmul", "flops": 2 * sides**3, "bytes": 12 * sides**2, "parallelism": sides**2})
    moved = np.round(sizes(MEMORY, memory))
    streams = pd.DataFrame({"op": "stream_triad", "flops": moved / 8, "bytes": moved, "parallelism": moved / 16})
    table = pd.concat([products, streams], ignore_index=True)
    return table.assign(target="box", dtype="float32", statistic="slope", working_set_bytes=table["bytes"])


class World:
    """A design of the shipped model: points measured in some campaigns.

    Parameters
    ----------
    design
        Points of one campaign.
    campaigns
        How many.
    settings
        Of each fit.
    """

    def __init__(self, design: pd.DataFrame, campaigns: int, settings: SamplerSettings):
        names = [f"day {at}" for at in range(campaigns)]
        self._sheets = check_targets(
            pd.DataFrame(
                {
                    "device": ["box"],
                    "peak_flops_float32": PEAK,
                    "bandwidth_bytes_per_s": BANDWIDTH,
                    "cache_bytes": CACHE,
                }
            )
        )
        self._model, self._settings, self.campaigns = Roofline(), settings, campaigns
        rows = pd.concat([design.assign(campaign=name) for name in names], ignore_index=True)
        self._rows = timed(
            rows, np.log(2e-7 + np.maximum(rows["flops"].to_numpy() / PEAK, rows["bytes"].to_numpy() / BANDWIDTH))
        )
        self._encoded = self._model.encode(self._rows, self._sheets)
        self._built = self._model.build(self._encoded)
        self._compiled, self._derive = compile_model(self._built), deriver(self._built)

    def truths(self, n: int, seed: int) -> list[dict[str, Floats]]:
        """Parameters from the prior."""
        prior = sample_prior(self._built, draws=n, seed=seed)["prior"].to_dataset().transpose("chain", "draw", ...)
        values = {str(name): np.asarray(v.to_numpy()[0], dtype=float) for name, v in prior.data_vars.items()}
        return [{name: v[[at]] for name, v in values.items()} for at in range(n)]

    def bounding(self, n: int, seed: int) -> list[dict[str, Floats]]:
        """Parameters from the prior, of worlds in which points of every regime are bound by what they are named for."""
        counts = (8, 8, 8)
        rows = points(None, *counts)
        # As `points` stacks them: products first.
        names = np.repeat(["compute", "overhead", "memory"], counts)
        found: list[dict[str, Floats]] = []
        for attempt in itertools.count():
            for truth in self.truths(2 * n, seed + 1000 * attempt):
                rng = np.random.default_rng(0)
                request = Request(effect="none", own=True)
                shares = self._model.predict(self._encoded, truth, rows, request, self._sheets, rng).shares
                if all(shares[name][0, names == name].mean() > BOUND for name in dict.fromkeys(names)):
                    found.append(truth)
                if len(found) == n:
                    return found
        raise AssertionError("unreachable")

    def with_noise(self, truth: Truth, scale: float) -> dict[str, Floats]:
        """The same, with noise of a known scale between configurations, and none between repeats."""
        # Predictions make the scale of its log, which may have members that were not fitted.
        same = {"misfit": np.full_like(truth["misfit"], scale)}
        return {**truth, **same, "log_misfit": np.log(same["misfit"])}

    def with_campaigns(self, truth: Truth, common: float, own: float, rng: np.random.Generator) -> dict[str, Floats]:
        """The same, with campaigns of a known spread: in common, and of each term of its own."""
        return {
            **truth,
            "campaign_spread": np.array([common]),
            "campaign_vector_spread": np.array([own]),
            "campaign": common * rng.standard_normal((1, self.campaigns)),
            "campaign_vector": own * rng.standard_normal((1, self.campaigns, 3)),
        }

    def _times(
        self, truth: Truth, rows: pd.DataFrame, request: Request, rng: np.random.Generator, tail: float | None
    ) -> Floats:
        found: Predicted = self._model.predict(self._encoded, truth, rows, request, self._sheets, rng)
        freedom = float(found.tail[0]) if tail is None else tail
        # Another tail, the same scale.
        noise = rng.standard_t(freedom, size=len(rows)) * np.hypot(found.misfit[0], found.repeat[0])
        return np.asarray(found.log_time[0] + noise)

    def measure(self, truth: Truth, rng: np.random.Generator, tail: float | None = None) -> Floats:
        """Log times of the design's points under a truth, (row,)."""
        return self._times(truth, self._rows, Request(effect="none", own=True), rng, tail)

    def later(
        self, truth: Truth, design: pd.DataFrame, rng: np.random.Generator, tail: float | None = None
    ) -> pd.DataFrame:
        """Measurements of other points under a truth, in a campaign of their own."""
        rows = design.assign(campaign="later")
        return timed(rows, self._times(truth, rows, Request(effect="fresh", own=True), rng, tail))

    def fit(self, log_time: Floats, seed: int) -> bp.Profile:
        """Fit a simulated table by NUTS."""
        compiled = self._compiled.with_data(observed_log_time=log_time)
        tree = sample(self._built, compiled, self._settings, seed=seed, progress=False, cores=1, derive=self._derive)
        checks = gate(tree, free_names(self._built))
        encoded = dataclasses.replace(self._encoded, log_time=log_time)
        rows = self._rows.assign(time_s=np.exp(log_time))
        groups = xr.DataTree.from_dict({name: tree[name].to_dataset() for name in ("posterior", "sample_stats")})
        return bp.Profile(Inference(groups, self._model, encoded, rows, self._sheets, checks, {}))


def timed(rows: pd.DataFrame, log_time: Floats) -> pd.DataFrame:
    """A checked measurement table of points with these times."""
    return with_ids(validate(rows.assign(time_s=np.exp(log_time))), source="simulated")


def moved(truth: Truth, what: str, log_factor: float) -> dict[str, Any]:
    """A truth in which the time of one term is longer by a factor."""
    names: Mapping[str, tuple[Sequence[str], float]] = {
        "compute": (("rate",), -1.0),
        "memory": (("memory",), -1.0),
        "overhead": (("overhead",), 1.0),
    }
    variables, sign = names[what]
    return {**truth, **{name: truth[name] + sign * log_factor for name in variables}}
