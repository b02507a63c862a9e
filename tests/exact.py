"""A model with an exact posterior, for tests of what is made of profiles: no sampler, thousands of fits a minute.

One parameter per target, the log of its bandwidth; everything else (spreads of campaigns, misfit, repeats) is known::

    log t = log bytes - log bandwidth[target] + campaign + misfit + repeat,      all normal
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf.inference.diagnostics import Check
from bayesperf.inference.infer import Inference
from bayesperf.model import Draws, Floats, PerformanceModel, Predicted, Quantity, Request
from bayesperf.prediction.profile import Profile

__all__ = ["PRIOR", "World", "exact_profile"]

PRIOR = (24.0, 0.5)
"""Location and scale of a target's log bandwidth."""


@dataclass(frozen=True)
class World:
    """Known scales: between campaigns, of a configuration's misfit, of repeats."""

    campaign: float = 0.03
    misfit: float = 0.02
    repeat: float = 0.01

    def measure(
        self, rng: np.random.Generator, bandwidth: dict[str, float], *, campaigns: Sequence[str], rows: int = 12
    ) -> pd.DataFrame:
        """Measure every target, given by its log bandwidth, in every campaign."""
        parts = []
        for target, log_bandwidth in bandwidth.items():
            for campaign in campaigns:
                size = np.geomspace(1e6, 1e9, rows) * rng.uniform(0.9, 1.1, rows)
                noise = np.hypot(self.misfit, self.repeat) * rng.standard_normal(rows)
                time = np.exp(np.log(size) - log_bandwidth + self.campaign * rng.standard_normal() + noise)
                columns = {"bytes": size, "flops": 0.0, "time_s": time}
                parts.append(pd.DataFrame(columns).assign(target=target, op="copy", campaign=campaign))
        table = pd.concat(parts, ignore_index=True)
        return table.assign(measurement_id=[f"{campaigns[0]}-{at}" for at in range(len(table))])


@dataclass(frozen=True)
class Flat(PerformanceModel):
    """The model; with one campaign of a target its parameter is that as in the campaign."""

    world: World
    name = "flat"
    version = "1"

    def encode(self, table: pd.DataFrame, targets: pd.DataFrame | None) -> pd.DataFrame:
        """Keep the table."""
        return table

    def observations(self, encoded: pd.DataFrame) -> pd.DataFrame:
        """Every row is one."""
        ids = pd.Series([[name] for name in encoded["measurement_id"]], index=encoded.index)
        return encoded[["target", "op"]].assign(measurement_ids=ids, log_time=np.log(encoded["time_s"]))

    def build(self, encoded: Any) -> Any:
        """There is nothing to sample."""
        raise NotImplementedError

    def posterior(self, table: pd.DataFrame, target: str) -> tuple[float, float]:
        """Exact posterior mean and standard deviation of a target's log bandwidth."""
        rows = table[table["target"] == target]
        seen = np.log(rows["bytes"]) - np.log(rows["time_s"])
        means = seen.groupby(rows["campaign"]).mean().to_numpy()
        variance = (self.world.misfit**2 + self.world.repeat**2) / (len(rows) / len(means))
        # As in one campaign, its effect is part of the parameter; of several, the parameter is their mean.
        variance = variance + self.world.campaign**2 if len(means) > 1 else variance
        precision = len(means) / variance + 1 / PRIOR[1] ** 2
        return float((means.sum() / variance + PRIOR[0] / PRIOR[1] ** 2) / precision), float(precision**-0.5)

    def predict(
        self,
        encoded: pd.DataFrame,
        draws: Draws,
        workloads: pd.DataFrame,
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Predicted:
        """One campaign effect per target, shared by its rows."""
        campaigns = encoded.groupby("target")["campaign"].nunique()
        n = len(draws["log_bandwidth"])
        names = sorted(campaigns.index)
        log_time, code = np.empty((n, len(workloads))), workloads["target"].map(names.index).to_numpy()
        for at, target in enumerate(names):
            one = float(campaigns[target] == 1)
            factor = {"fresh": 1 + one, "mean": one, "none": 0.0}[request.effect] if request.campaign is None else 0.0
            effect = self.world.campaign * np.sqrt(factor) * rng.standard_normal(n)
            rows = code == at
            size = np.log(workloads["bytes"].to_numpy(float)[rows])
            log_time[:, rows] = size - draws["log_bandwidth"][:, [at]] + effect[:, None]
        scale = np.full(log_time.shape, 1.0)
        return Predicted(
            log_time=log_time,
            misfit=self.world.misfit * scale,
            repeat=self.world.repeat * scale,
            tail=np.full(n, 1e9),
            terms={"memory": log_time},
            shares={"memory": scale},
        )

    def quantities(self, encoded: pd.DataFrame, draws: Draws) -> list[Quantity]:
        """Bandwidth of every target."""
        names = sorted(encoded["target"].unique())
        rows = {name: np.flatnonzero(encoded["target"].to_numpy() == name) for name in names}
        bandwidth = np.exp(draws["log_bandwidth"])
        return [
            Quantity("bandwidth", name, "copy", "B/s", bandwidth[:, at], rows[name]) for at, name in enumerate(names)
        ]

    def caveats(self, encoded: Any) -> list[str]:
        """None."""
        return []


def exact_profile(world: World, table: pd.DataFrame, seed: int, *, draws: int = 2000, passed: bool = True) -> Profile:
    """Fit a table exactly."""
    model, rng = Flat(world), np.random.default_rng(seed)
    names = sorted(table["target"].unique())
    moments = np.array([model.posterior(table, name) for name in names])
    posterior = moments[:, 0] + moments[:, 1] * rng.standard_normal((draws, len(names)))
    prior = PRIOR[0] + PRIOR[1] * rng.standard_normal((draws, len(names)))
    tree = xr.DataTree.from_dict({"posterior": _group(posterior), "prior": _group(prior)})
    check = Check("R-hat", 1.0 if passed else 1.5, 1.01, passed, "", "" if passed else "sample longer")
    return Profile(Inference(tree, model, model.encode(table, None), table, None, [check], {}))


def _group(values: Floats) -> xr.Dataset:
    return xr.Dataset({"log_bandwidth": (("chain", "draw", "target"), values[None])})
