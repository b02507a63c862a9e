"""Predictions from draws: the fitted levels are extended by the workloads' new members, then the same physics runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesperf.errors import UnknownNameError
from bayesperf.model import Draws, Predicted, Request
from bayesperf.models.communication.coded import Encoded, Labels
from bayesperf.models.communication.encode import code_rows, text
from bayesperf.models.communication.extend import Extension
from bayesperf.models.communication.hierarchy import TERMS, members_of, row_terms
from bayesperf.models.communication.physics import protocol_times, shares
from bayesperf.specs import spec_of

__all__ = ["predict"]

FRESH = "\N{EMPTY SET}"
"""Name of a campaign that was not measured; an absent name is that of measured rows without one."""


def predict(
    encoded: Encoded,
    draws: Draws,
    workloads: pd.DataFrame,
    request: Request,
    targets: pd.DataFrame | None,
    rng: np.random.Generator,
) -> Predicted:
    """See `bayesperf.model.PerformanceModel.predict`."""
    table, notes = _circumstances(encoded, workloads, request, targets)
    labels = Labels(encoded.labels)
    codes = code_rows(table, labels)
    x = Extension.of(draws, rng)
    x.extend(labels, members_of(labels, encoded.anchor))
    notes += list(x.extend_campaigns(encoded, labels, request))
    terms = row_terms(x.p, codes)
    log_time, _, _ = protocol_times(np, *terms)
    log_time = log_time + x.p["campaign"][:, codes.campaign]
    parts = shares(*terms)
    misfit = x.p["misfit"][:, codes.pair]
    return Predicted(
        log_time=log_time,
        misfit=misfit,
        repeat=x.p["repeat"][:, codes.pair] if "repeat" in x.p else np.zeros_like(misfit),
        tail=np.broadcast_to(x.p["tail"].reshape(-1), (x.n_draws,)),
        # The parts of the time that waiting and moving bytes take; the choice of protocol depends on both.
        terms={name: log_time + np.log(np.maximum(part, 1e-30)) for name, part in zip(TERMS, parts, strict=True)},
        shares=dict(zip(TERMS, parts, strict=True)),
        notes=notes,
    )


def _circumstances(
    encoded: Encoded, workloads: pd.DataFrame, request: Request, targets: pd.DataFrame | None
) -> tuple[pd.DataFrame, list[str]]:
    """Workloads of known targets, each at the campaign and stack asked for, and what is assumed of new targets.

    Raises
    ------
    UnknownNameError
        A target neither measured nor with a spec sheet; a campaign that its target was not measured in.
    """
    table = workloads.reset_index(drop=True)
    measured, devices = {t for (t,) in encoded.labels.of("target")}, text(table, "device")
    campaigns, notes = {}, []
    for name, device in dict(zip(table["target"], devices, strict=True)).items():
        if name not in measured:
            if not spec_of(targets, device or name):
                hint = "Spec sheets do not tell fabrics: measure collectives on the target and fit them too"
                raise UnknownNameError("target", str(name), sorted(measured), hint=hint)
            notes.append(f"no collective was measured on {name}: its fabric is the prior's, any there is")
        campaigns[name] = _campaign(encoded, name, request)
    if request.own:
        if request.effect == "fresh":
            table = table.assign(campaign=[f"{FRESH} {name}" for name in text(table, "campaign")])
        return table, notes
    chosen = [campaigns[name] for name in table["target"]]
    return table.assign(campaign=[c for c, _ in chosen], stack=[s for _, s in chosen]), notes


def _campaign(encoded: Encoded, target: str, request: Request) -> tuple[str, str]:
    if request.campaign is None:
        return FRESH, request.stack or ""
    seen = encoded.campaigns_of.get(target, [])
    fitting = [c for c in seen if c[0] == request.campaign and request.stack in (None, c[1])]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UnknownNameError(
            f"single stack of campaign {request.campaign}: name one; stack", "", [s for _, s in fitting]
        )
    raise UnknownNameError(f"campaign of {target}", request.campaign, [" / ".join(filter(None, c)) for c in seen])
