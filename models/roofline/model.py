"""The roofline as a registered model: the catalogue entry that ties its files together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.collectives import between_ranks
from bayesperf.errors import InputError
from bayesperf.model import Draws, PerformanceModel, Predicted, Prepared, Quantity, Request, Updated
from bayesperf.models.roofline.coded import Encoded
from bayesperf.models.roofline.encode import encode, extend_encoded
from bayesperf.models.roofline.predict import predict
from bayesperf.models.roofline.quantities import quantities
from bayesperf.models.roofline.units import has_roofline

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["Roofline"]


class Roofline(PerformanceModel):
    """Hierarchical smooth roofline with cache curve, overheads, robust noise and campaign effects."""

    name = "roofline"
    version = "5"

    def encode(self, table: pd.DataFrame, targets: pd.DataFrame | None) -> Encoded:
        """Code a checked table, without what a roofline does not describe.

        Raises
        ------
        InputError
            No row is left to fit.
        """
        table, left_out = _described(table)
        if not len(table):
            reasons = "; ".join(f"{count} {what}" for what, count in left_out.items())
            raise InputError(f"no rows to fit: left out were {reasons}; give solo measurements of kernels")
        return replace(encode(table, targets), left_out=left_out)

    def extend(self, encoded: Encoded, table: pd.DataFrame, targets: pd.DataFrame | None) -> Encoded:
        """Code further rows behind the others."""
        table, left_out = _described(table)
        together = {what: encoded.left_out.get(what, 0) + left_out.get(what, 0) for what in encoded.left_out | left_out}
        return replace(extend_encoded(encoded, table, targets)[0], left_out=together)

    def observations(self, encoded: Encoded) -> pd.DataFrame:
        """One row per configuration."""
        labels = encoded.labels
        return pd.DataFrame(
            {
                "measurement_ids": encoded.ids,
                "log_time": encoded.log_time,
                "target": [labels.of("target")[code][0] for code in encoded.codes.target],
                "op": [labels.of("op")[code][0] for code in encoded.codes.op],
            }
        )

    def build(self, encoded: Encoded) -> pm.Model:
        """Build the PyMC model."""
        from bayesperf.models.roofline.build import build

        return build(encoded)

    def update(
        self,
        encoded: Encoded,
        posterior: Draws,
        prior: Draws,
        table: pd.DataFrame,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
        progress: Callable[[float], None],
    ) -> Updated:
        """Move new members until they explain the rows; see `update`."""
        from bayesperf.models.roofline.update import update

        table, _ = _described(table)
        if not len(table):
            raise InputError("no new row is one of a kernel measured alone, which is what a roofline describes")
        return update(encoded, posterior, prior, table, targets, rng, progress)

    def predict(
        self,
        encoded: Encoded,
        draws: Draws,
        workloads: pd.DataFrame,
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Predicted:
        """Predict workloads; new members of any level are drawn from the level above."""
        return predict(encoded, draws, workloads, request, targets, rng)

    def prepare(
        self,
        encoded: Encoded,
        draws: Draws,
        workload: Mapping[str, Any],
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Prepared:
        """Prepare predictions of workloads like `workload` at other sizes, for JAX to compile."""
        from bayesperf.models.roofline.predictor import prepare

        return prepare(encoded, draws, workload, request, targets, rng)

    def quantities(self, encoded: Encoded, draws: Draws) -> list[Quantity]:
        """Rates, bandwidths, overheads, noise and sharpness."""
        return quantities(encoded, draws)

    def caveats(self, encoded: Encoded) -> list[str]:
        """What is assumed of this table."""
        said = ["Operations are exchangeable on one kind of unit (matrix or vector), targets within the table."]
        if not encoded.learns_campaigns:
            said.append(
                "Campaign spread assumed, one campaign seen of every target: parameters are those of that campaign, "
                "and predictions for a fresh one are widened by the prior for the spread."
            )
        without = [
            t for (t,), b in zip(encoded.labels.of("target"), encoded.sheets.log_bandwidth, strict=True) if np.isnan(b)
        ]
        if without:
            said.append(f"No spec sheet for {', '.join(without)}: rates start from priors that span any device.")
        said += [f"Left out: {count} {what}." for what, count in encoded.left_out.items()]
        if not len(encoded.scatter.dof):
            said.append("Every configuration was measured once: repeatability cannot be told from misfit.")
        return said


def _described(table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows that a roofline describes, and how many others there were, by reason."""
    left_out = {}
    if "corunners" in table:
        alone = table["corunners"].isna().to_numpy()
        left_out["rows beside co-runners"] = int((~alone).sum())
        table = table[alone]
    if "n_devices" in table:
        between = between_ranks(table) & (table["n_devices"].to_numpy(float, na_value=np.nan) > 1)
        left_out["collectives, which wait for a fabric (model 'communication' fits them)"] = int(between.sum())
        table = table[~between]
    known = table["op"].map(has_roofline).to_numpy(bool)
    others = sorted(table.loc[~known, "op"].unique())
    left_out[f"rows of {', '.join(others)}, which wait for other things than rates"] = int((~known).sum())
    return table[known].reset_index(drop=True), {what: n for what, n in left_out.items() if n}
