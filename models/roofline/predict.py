"""Predictions from draws: the fitted levels are extended by the workloads' new members, then the same physics runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayesperf.errors import InputError, UnknownNameError
from bayesperf.model import Draws, Floats, Predicted, Request
from bayesperf.models.roofline.coded import Codes, Encoded, Labels
from bayesperf.models.roofline.encode import code_rows, devices_of, sheets_for, units_of
from bayesperf.models.roofline.extend import Extension, RandomNoise, extend, extend_campaigns
from bayesperf.models.roofline.hierarchy import TERMS, Members, lacking_variance, members_of
from bayesperf.models.roofline.physics import term_shares
from bayesperf.models.roofline.quick import PORTION, QUICK, Later, row_times
from bayesperf.specs import spec_of

__all__ = ["predict"]


FRESH = "\N{EMPTY SET}"
"""Name of a campaign that was not measured; an absent name is that of measured rows without one."""

LACKING = ("discrepancy", "discrepancy_common", "shape_cell_scale", "shape_scale")
"""Variables that `lacking_variance` asks for."""


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
    misfit = _misfit(x.p, codes, members)
    return Predicted(
        log_time=log_time,
        misfit=misfit,
        repeat=x.p["repeat"][:, codes.noise] if "repeat" in x.p else np.zeros_like(misfit),
        tail=np.broadcast_to(x.p["tail"].reshape(-1), (x.n_draws,)),
        terms=dict(zip(TERMS, terms, strict=True)),
        shares=Later(TERMS, lambda: term_shares(QUICK, compute, memory, overhead, sharpness)),
        notes=notes,
    )


def _misfit(p: Draws, codes: Codes, members: Members) -> Floats:
    """Scale of what the model misses of each row, (draw, row), with what the discrepancy's features cannot express."""
    scale = np.asarray(p["misfit"][:, codes.noise])
    # Some draws at a time, in place: fresh memory for every step of the arithmetic takes longer than the arithmetic.
    step = max(1, PORTION // max(scale.shape[1], 1))
    for at in (slice(start, start + step) for start in range(0, len(scale), step)):
        part = scale[at]
        part *= part
        part += lacking_variance({name: p[name][at] for name in LACKING if name in p}, codes, members)
        np.sqrt(part, out=part)
    return scale


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
        if name not in measured:
            _check_sheet(str(name), devices.get(name, name), measured, targets)
        campaigns[name] = _campaign(encoded, name, request)
    table = workloads.reset_index(drop=True)
    if request.own:
        if request.effect != "fresh":
            return table
        names = table["campaign"] if "campaign" in table else [""] * len(table)
        return table.assign(campaign=[f"{FRESH} {name if isinstance(name, str) else ''}" for name in names])
    chosen = [campaigns[name] for name in workloads["target"]]
    return table.assign(campaign=[c for c, _ in chosen], stack=[s for _, s in chosen])


def _check_sheet(target: str, device: str, measured: Sequence[str], targets: pd.DataFrame | None) -> None:
    """Refuse a target that was not measured and of which no sheet says how fast it is."""
    if any(name.startswith("peak_flops_") or name == "bandwidth_bytes_per_s" for name in spec_of(targets, device)):
        return
    if targets is not None and device in targets.index:
        raise InputError(
            f"{target} was not measured, and its row in the spec sheets ({device}) says neither peak_flops_<dtype> nor "
            "bandwidth_bytes_per_s: fill one of them in, or measure the target"
        )
    known = [*measured, *([] if targets is None else targets.index)]
    hint = "A target that was not measured needs its row in the spec sheets (fit with targets=, --targets)"
    raise UnknownNameError("target", target, known, hint=hint)


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
