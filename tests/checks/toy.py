"""A model so small that its posterior is known, as a profile without a sampler: the checks' own logic is tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import scipy.stats
import xarray as xr

from bayesperf.configurations import Configurations, configurations
from bayesperf.inference.diagnostics import Check
from bayesperf.inference.infer import Inference
from bayesperf.model import Draws, PerformanceModel, Predicted, Quantity, Request
from bayesperf.prediction.profile import Profile
from bayesperf.schema import validate, with_ids

TAIL, CHAINS, DRAWS = 5.0, 4, 250
CAMPAIGN = 0.05
PRIOR = (-8.0, 2.0)


def array(tree: xr.DataTree, group: str, name: str) -> xr.DataArray:
    """A variable of a tree; its values are the tree's own."""
    return tree[group].to_dataset()[name]


@dataclass(frozen=True)
class Encoded:
    """Configurations and the cell (target, op) of each."""

    summary: Configurations
    cells: list[tuple[str, str]]
    code: np.ndarray
    campaigns: set[tuple[str, str]]


class Levels(PerformanceModel):
    """Every target and operation has one time, whatever the work; noise of known scale."""

    name, version = "levels", "1"

    def __init__(self, scale: float = 0.1):
        self.scale = scale

    def encode(self, table: pd.DataFrame, targets: pd.DataFrame | None) -> Encoded:
        """Code a table."""
        summary = configurations(table)
        pairs = list(zip(summary.first["target"], summary.first["op"], strict=True))
        cells = list(dict.fromkeys(pairs))
        code = np.array([cells.index(pair) for pair in pairs])
        return Encoded(summary, cells, code, set(zip(table["target"], table["campaign"], strict=True)))

    def observations(self, encoded: Encoded) -> pd.DataFrame:
        """One row per configuration."""
        first = encoded.summary.first
        return pd.DataFrame(
            {
                "measurement_ids": encoded.summary.ids,
                "log_time": encoded.summary.log_time,
                "target": first["target"],
                "op": first["op"],
            }
        )

    def build(self, encoded: Encoded) -> pm.Model:
        """Build the PyMC model."""
        coords = {"cell": ["|".join(c) for c in encoded.cells], "observation": [i[0] for i in encoded.summary.ids]}
        with pm.Model(coords=coords, check_bounds=False) as model:
            level = pm.Normal("level", *PRIOR, dims="cell")
            values = encoded.summary.log_time
            data = pm.Data("observed_log_time", values, dims="observation", shape=values.shape)
            pm.StudentT(
                "log_time", nu=TAIL, mu=level[encoded.code], sigma=self.scale, observed=data, dims="observation"
            )
        return model

    def predict(
        self,
        encoded: Encoded,
        draws: Draws,
        workloads: pd.DataFrame,
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Predicted:
        """Levels of known cells, from the prior of others; a fresh campaign moves all rows of a target alike."""
        level = draws["level"]
        pairs = list(zip(workloads["target"], workloads["op"], strict=True))
        new = {pair: rng.normal(*PRIOR, size=len(level)) for pair in dict.fromkeys(pairs) if pair not in encoded.cells}
        log_time = np.stack(
            [new[pair] if pair in new else level[:, encoded.cells.index(pair)] for pair in pairs], axis=1
        )
        if request.effect == "fresh":
            target = pd.factorize(workloads["target"])[0]
            log_time = log_time + CAMPAIGN * rng.standard_normal((len(level), target.max() + 1))[:, target]
        scale = np.full(log_time.shape, self.scale)
        tail = np.full(len(level), TAIL)
        return Predicted(log_time, scale, np.zeros_like(scale), tail, {"overhead": log_time}, {})

    def quantities(self, encoded: Encoded, draws: Draws) -> list[Quantity]:
        """Time of each cell, and the rate of its largest configuration."""
        found = []
        for at, (target, op) in enumerate(encoded.cells):
            rows = np.flatnonzero(encoded.code == at)
            flops = float(encoded.summary.first["flops"].iloc[rows].max())
            found.append(Quantity("time", target, op, "s", np.exp(draws["level"][:, at]), rows))
            rate = flops / np.exp(draws["level"][:, at])
            found.append(Quantity("compute_rate", target, op, "FLOP/s", rate, rows))
        return found

    def caveats(self, encoded: Encoded) -> list[str]:
        """None."""
        return []


def toy_table(
    seed: int,
    *,
    targets: tuple[str, ...] = ("a", "b"),
    ops: tuple[str, ...] = ("matmul", "softmax"),
    campaigns: tuple[str, ...] = ("monday",),
    configurations: int = 12,
    repeats: int = 1,
    noise: float = 0.1,
    repeat_noise: float = 0.01,
    campaign: float = 0.0,
) -> pd.DataFrame:
    """Configurations of equal expected time on every target and operation, with Student-t noise."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for target in targets:
        for day in campaigns:
            moved = campaign * rng.standard_normal()
            for op in ops:
                for at in range(configurations):
                    centre = -8.0 + moved + noise * rng.standard_t(TAIL)
                    for process in range(repeats):
                        repeat = repeat_noise * rng.standard_t(TAIL) if repeats > 1 else 0.0
                        rows.append(
                            {
                                "target": target,
                                "op": op,
                                "dtype": "float32",
                                "flops": 1e6 * (at + 1),
                                "bytes": 1e5,
                                "time_s": float(np.exp(centre + repeat)),
                                "campaign": day,
                                "process": str(process),
                            }
                        )
    return with_ids(validate(pd.DataFrame(rows)), source="toy")


def toy_profile(
    table: pd.DataFrame, targets: pd.DataFrame | None = None, model: Levels | None = None, **options: Any
) -> Profile:
    """Fit without a sampler: the posterior of a location with Student-t noise is close to normal."""
    model = model or Levels()
    rng = np.random.default_rng(options.get("seed", 0))
    encoded = model.encode(table, targets)
    y = encoded.summary.log_time
    n = np.bincount(encoded.code)
    centre = pd.Series(y).groupby(encoded.code).median().to_numpy()
    # Fisher information of a location under Student-t noise.
    width = model.scale * np.sqrt((TAIL + 3) / (TAIL + 1) / n)
    level = rng.normal(centre, width, size=(CHAINS, DRAWS, len(n)))
    prior = rng.normal(*PRIOR, size=(1, 500, len(n)))
    replicated = prior[..., encoded.code] + model.scale * rng.standard_t(TAIL, size=(1, 500, len(y)))
    density = scipy.stats.t.logpdf(y, TAIL, level[..., encoded.code], model.scale)
    cells = ["|".join(cell) for cell in encoded.cells]
    labels = [ids[0] for ids in encoded.summary.ids]

    def group(**variables: tuple[str, np.ndarray]) -> xr.Dataset:
        coords = {"cell": cells, "observation": labels}
        used = {dim for dim, _ in variables.values()}
        return xr.Dataset(
            {name: (("chain", "draw", dim), values) for name, (dim, values) in variables.items()},
            coords={
                **{dim: coords[dim] for dim in used},
                "chain": np.arange(next(iter(variables.values()))[1].shape[0]),
                "draw": np.arange(next(iter(variables.values()))[1].shape[1]),
            },
        )

    tree = xr.DataTree.from_dict(
        {
            "posterior": group(level=("cell", level)),
            "prior": group(level=("cell", prior)),
            "prior_predictive": group(log_time=("observation", replicated)),
            "log_likelihood": group(log_time=("observation", density)),
            "log_prior": group(level=("cell", scipy.stats.norm.logpdf(level, *PRIOR))),
            "observed_data": xr.Dataset({"log_time": ("observation", y)}, coords={"observation": labels}),
        }
    )
    return Profile(Inference(tree, model, encoded, table, targets, [Check("R-hat", 1.0, 1.01, True)], {}))
