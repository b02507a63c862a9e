"""Contention's part of a profile, sampled alone: it shares no parameter with the roofline, so that nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.inference.diagnostics import passed
from bayesperf.inference.factors import sample_until_passed
from bayesperf.inference.sampling import SamplerSettings
from bayesperf.models.contention import Contention
from bayesperf.models.contention.build import build_contention
from bayesperf.models.contention.quantities import of_contention

__all__ = ["Part", "fitted_part"]


@dataclass
class Part:
    """What slowdowns of victims that were measured alone are predicted from."""

    model: Contention
    inference: Any
    table: pd.DataFrame
    tree: Any
    converged: bool
    spec_sheets: None = None

    def draws(self, group: str = "posterior", limit: int | None = None) -> dict[str, Any]:
        """Draws, chains one behind the other; `limit` of them, evenly spaced."""
        flat = self.tree[group].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
        size = flat.sizes["sample"]
        chosen = np.linspace(0, size - 1, min(limit or size, size)).astype(int)
        return {str(name): values.to_numpy()[chosen] for name, values in flat.data_vars.items()}

    def parameters(self) -> pd.DataFrame:
        """Medians and 90 % intervals, as a profile's."""
        rows = []
        for found in of_contention(self.inference.encoded, self.draws()):
            median, lower, upper = np.quantile(found.draws, [0.5, 0.05, 0.95])
            named = {"parameter": found.name, "target": found.target, "label": found.label}
            rows.append({**named, "median": median, "lower": lower, "upper": upper, "contraction": np.nan})
        return pd.DataFrame(rows)


def fitted_part(rows: pd.DataFrame, *, draws: int, tune: int, chains: int, seed: int) -> Part:
    """Sample, print the gate, and return the part."""
    encoded = Contention().encode(rows, None)
    settings = SamplerSettings(draws=draws, tune=tune, chains=chains)
    tree, checks, _, _ = sample_until_passed(
        [build_contention(encoded)], settings, seed=seed, progress=False, attempts=2
    )
    for check in checks:
        print(f"{check.name} {check.value:.4g}{'' if check.passed else f', limit {check.limit:g}: {check.where}'}")
    return Part(Contention(), SimpleNamespace(encoded=encoded), rows, tree, passed(checks))
