"""A model whose every draw is known, for tests of what is made of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import bayesperf as bp
from bayesperf.inference.infer import Inference
from bayesperf.model import Draws, Floats, PerformanceModel, Predicted, Quantity, Request
from bayesperf.schema import validate, with_ids

__all__ = ["DRAWS", "SECONDS", "Known", "known_profile"]

DRAWS = 4000
SECONDS = {"matmul": 1e-3, "fma_chain": 2e-3, "softmax": 5e-4, "dispatch": 1e-4, "allocation": 3e-4}


class Known(PerformanceModel):
    """Every operation takes its seconds of the list, 10 us if it is not there.

    `shared` errors are common to all operations, `misfit` is not.
    """

    name, version = "known", "1"

    def __init__(self, shared: float = 0.0, misfit: float = 0.0):
        self.shared, self.misfit = shared, misfit

    def encode(self, table: pd.DataFrame, targets: pd.DataFrame | None) -> Any:
        return None

    def observations(self, encoded: Any) -> pd.DataFrame:
        raise NotImplementedError

    def build(self, encoded: Any) -> Any:
        raise NotImplementedError

    def quantities(self, encoded: Any, draws: Draws) -> list[Quantity]:
        return []

    def caveats(self, encoded: Any) -> list[str]:
        return []

    def predict(
        self,
        encoded: Any,
        draws: Draws,
        workloads: pd.DataFrame,
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Predicted:
        base = np.log([SECONDS.get(op, 1e-5) for op in workloads["op"]])
        error = self.shared * draws["error"][:, None]
        time = np.broadcast_to(base + error, (len(error), len(workloads)))
        launches = workloads["op"].isin(["dispatch", "allocation"]).to_numpy()
        compute = workloads["op"].isin(["matmul"]).to_numpy()

        def term(mask: Any) -> Floats:
            return np.where(mask, time, -80.0)

        terms = {"compute": term(compute), "memory": term(~compute & ~launches), "overhead": term(launches)}
        shares = {name: (values > -80.0).astype(float) for name, values in terms.items()}
        zero = np.zeros(time.shape)
        return Predicted(time, zero + self.misfit, zero, np.full(len(error), 1e6), terms, shares, ("as it is known",))


def known_profile(shared: float = 0.0, misfit: float = 0.0) -> bp.Profile:
    error = np.random.default_rng(7).standard_normal((2, DRAWS // 2))
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"error": (("chain", "draw"), error)})})
    rows = pd.DataFrame(
        {
            "target": "box", "op": list(SECONDS), "dtype": "float32", "flops": [1e9, 1e9, 1e9, 0, 0],
            "bytes": [1e6, 1e6, 1e6, 0, 1e6], "time_s": list(SECONDS.values()), "n_devices": 1.0,
        }
    )  # fmt: skip
    table = with_ids(validate(rows), source="known")
    return bp.Profile(Inference(tree, Known(shared, misfit), None, table, None, [], {}))
