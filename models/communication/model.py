"""Communication as a registered model: the catalogue entry that ties its files together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayesperf.model import Draws, PerformanceModel, Predicted, Quantity, Request
from bayesperf.models.communication.coded import Encoded
from bayesperf.models.communication.encode import encode
from bayesperf.models.communication.predict import predict
from bayesperf.models.communication.quantities import quantities

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["Communication"]


class Communication(PerformanceModel):
    """Collectives and messages between two ranks: latency in steps, bytes over bandwidth, a choice of protocol."""

    name = "communication"
    version = "1"

    def encode(self, table: pd.DataFrame, targets: pd.DataFrame | None) -> Encoded:
        """Code the collectives of a checked table; spec sheets say nothing of fabrics.

        Raises
        ------
        InputError
            No row is a collective that says its ranks and its size.
        """
        return encode(table)

    def observations(self, encoded: Encoded) -> pd.DataFrame:
        """One row per configuration."""
        labels, pair = encoded.labels, encoded.codes.pair
        return pd.DataFrame(
            {
                "measurement_ids": encoded.ids,
                "log_time": encoded.log_time,
                "target": [labels.of("target")[code][0] for code in encoded.codes.target],
                "op": [labels.of("pair")[code][1] for code in pair],
            }
        )

    def build(self, encoded: Encoded) -> pm.Model:
        """Build the PyMC model."""
        from bayesperf.models.communication.build import build

        return build(encoded)

    def predict(
        self,
        encoded: Encoded,
        draws: Draws,
        workloads: pd.DataFrame,
        request: Request,
        targets: pd.DataFrame | None,
        rng: np.random.Generator,
    ) -> Predicted:
        """Predict collectives; new members of any level are drawn from the level above.

        Raises
        ------
        InputError
            A workload that is no collective, or does not say its ranks or its size.
        """
        return predict(encoded, draws, workloads, request, targets, rng)

    def quantities(self, encoded: Encoded, draws: Draws) -> list[Quantity]:
        """Bus bandwidths, latencies, protocol switches, scaling with ranks, noise."""
        return quantities(encoded, draws)

    def caveats(self, encoded: Encoded) -> list[str]:
        """What is assumed of this table."""
        said = ["Collectives are exchangeable once their factors are taken out, targets within the table."]
        if not encoded.learns_campaigns:
            said.append(
                "Campaign spread assumed, one campaign seen of every target: parameters are those of that campaign, "
                "and predictions for a fresh one are widened by the prior for the spread."
            )
        cells = encoded.labels.of("cell")
        single = [t for (t,) in encoded.labels.of("target") if len({c[3] for c in cells if c[0] == t}) == 1]
        if single:
            said.append(
                f"One number of ranks seen of {', '.join(single)}: how time grows with ranks there is the prior's."
            )
        blind = [_words(c) for c, known in zip(cells, encoded.informed["latency"], strict=True) if not known]
        if blind:
            said.append(f"No message small enough to show the latency of {_some(blind)}.")
        blind = [_words(c) for c, known in zip(cells, encoded.informed["byte"], strict=True) if not known]
        if blind:
            said.append(f"No message large enough to show the bandwidth of {_some(blind)}.")
        said += [f"Left out: {count} {what}." for what, count in encoded.left_out.items()]
        if not len(encoded.scatter.dof):
            said.append("Every configuration was measured once: repeatability cannot be told from misfit.")
        return said


def _words(cell: tuple[str, ...]) -> str:
    return f"{' '.join(filter(None, cell[1:3]))} with {cell[3]} ranks on {cell[0]}"


def _some(names: list[str]) -> str:
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
