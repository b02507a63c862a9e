"""Contention as a registered model: the catalogue entry that ties its files together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.model import Draws, PerformanceModel, Predicted, Prepared, Quantity, Request
from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.encode import encode
from bayesperf.models.contention.predict import predict
from bayesperf.models.contention.quantities import quantities
from bayesperf.models.contention.sharing import sentences, sharing_of
from bayesperf.models.roofline import Roofline

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["Contention"]


class Contention(PerformanceModel):
    """The hierarchical roofline, and what taking turns and sharing add where other work runs beside."""

    name = "contention"
    version = "1"
    predicts_corunners = True

    def encode(self, table: pd.DataFrame, targets: pd.DataFrame | None) -> Encoded:
        """Code a checked table: what ran alone as the roofline does, what ran beside others as mixes.

        Raises
        ------
        InputError
            Nothing ran beside others, or no victim was also measured alone.
        """
        return encode(table, targets)

    def observations(self, encoded: Encoded) -> pd.DataFrame:
        """One row per configuration: those alone, then those beside others."""
        alone, beside = Roofline().observations(encoded.solo), encoded.beside
        shared = pd.DataFrame(
            {
                "measurement_ids": beside.ids,
                "log_time": beside.log_time,
                "target": [encoded.targets[code] for code in beside.target],
                "op": [encoded.ops[code] for code in beside.op[:, 0]],
            }
        )
        return pd.concat([alone, shared], ignore_index=True)

    def build(self, encoded: Encoded) -> pm.Model:
        """Build the PyMC model."""
        from bayesperf.models.contention.build import build

        return build(encoded)

    def factors(self, encoded: Encoded, built: pm.Model) -> Sequence[pm.Model]:
        """The roofline, and contention: slowdowns are relative to *measured* times alone, so neither knows it."""
        from bayesperf.models.contention.build import build_contention
        from bayesperf.models.roofline.build import build

        return [build(encoded.solo), build_contention(encoded)]

    def predict(
        self,
        encoded: Encoded,
        draws: Draws,
        workloads: pd.DataFrame,
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Predicted:
        """Predict workloads; those without ``corunners`` as the roofline does."""
        return predict(encoded, draws, workloads, request, targets, rng)

    def prepare(
        self,
        encoded: Encoded,
        draws: Draws,
        workload: Mapping[str, Any],
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Prepared | None:
        """Prepare predictions of workloads that run alone; none where others run beside."""
        if isinstance(workload.get("corunners"), str):
            return None
        return Roofline().prepare(encoded.solo, draws, workload, request, targets, rng)

    def quantities(self, encoded: Encoded, draws: Draws) -> list[Quantity]:
        """Those of the roofline, and of every target what it shares and what sharing costs."""
        return quantities(encoded, draws)

    def caveats(self, encoded: Encoded) -> list[str]:
        """What is assumed of this table."""
        said = Roofline().caveats(encoded.solo)
        said.append(
            "Demands of co-runners follow from the best rates seen alone, slowdowns are relative to times alone."
        )
        said += sentences(sharing_of(encoded))
        said += [f"Left out: {count} {what}." for what, count in encoded.left_out.items()]
        return [*said, *(f"{note}." for note in encoded.notes)]
