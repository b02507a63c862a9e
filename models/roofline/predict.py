"""Predictions from draws: the fitted levels are extended by the workloads' new members, then the same physics runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesperf.errors import UnknownNameError
from bayesperf.model import Draws, Predicted, Request
from bayesperf.models.roofline.coded import Encoded, Labels
from bayesperf.models.roofline.encode import code_rows, devices_of, sheets_for, units_of
from bayesperf.models.roofline.extend import Extension, RandomNoise, extend, extend_campaigns
from bayesperf.models.roofline.hierarchy import TERMS, lacking_variance, members_of
from bayesperf.models.roofline.physics import term_shares
from bayesperf.models.roofline.quick import QUICK, Later, row_times
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
    table = _circumstances(encoded, workloads, request, targets)
    labels = Labels(encoded.labels)
    devices = devices_of(table) | encoded.devices
    units = units_of(table["target"].unique(), devices, targets) | encoded.units
    codes = code_rows(table, labels, encoded.kinds, units, encoded.bases)
    sheets = sheets_for(labels, targets, devices, {}, encoded.sheets)
    members = members_of(labels)
    x = Extension.of(np, draws, RandomNoise(rng))
    extend(x, encoded, labels, sheets, members)
    notes = extend_campaigns(x, encoded, labels, request)
    compute, memory, overhead, log_time = row_times(x.p, codes, members, sheets)
    terms = (compute, memory, overhead)
    sharpness = x.scalar("sharpness")
    misfit = np.sqrt(x.p["misfit"][:, codes.noise] ** 2 + lacking_variance(x.p, codes, members))
    return Predicted(
        log_time=log_time,
        misfit=misfit,
        repeat=x.p["repeat"][:, codes.noise] if "repeat" in x.p else np.zeros_like(misfit),
        tail=np.broadcast_to(x.p["tail"].reshape(-1), (x.n_draws,)),
        terms=dict(zip(TERMS, terms, strict=True)),
        shares=Later(TERMS, lambda: term_shares(QUICK, compute, memory, overhead, sharpness)),
        notes=notes,
    )


def _circumstances(
    encoded: Encoded, workloads: pd.DataFrame, request: Request, targets: pd.DataFrame | None
) -> pd.DataFrame:
    """Workloads of known targets, each at the campaign and stack asked for.

    Raises
    ------
    UnknownNameError
        A target neither measured nor with a spec sheet; a campaign that its target was not measured in.
    """
    measured, devices = [t for (t,) in encoded.labels.of("target")], devices_of(workloads)
    campaigns: dict[str, tuple[str, str]] = {}
    for name in pd.unique(workloads["target"]):
        if name not in measured and not spec_of(targets, devices.get(name, name)):
            known = [*measured, *([] if targets is None else targets.index)]
            hint = "A target that was not measured needs its row in the spec sheets (fit with targets=, --targets)"
            raise UnknownNameError("target", str(name), known, hint=hint)
        campaigns[name] = _campaign(encoded, name, request)
    table = workloads.reset_index(drop=True)
    if request.own:
        if request.effect != "fresh":
            return table
        names = table["campaign"] if "campaign" in table else [""] * len(table)
        return table.assign(campaign=[f"{FRESH} {name if isinstance(name, str) else ''}" for name in names])
    chosen = [campaigns[name] for name in workloads["target"]]
    return table.assign(campaign=[c for c, _ in chosen], stack=[s for _, s in chosen])


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
