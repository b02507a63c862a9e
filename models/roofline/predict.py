"""Predictions from draws: the fitted levels are extended by the workloads' new members, then the same physics runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.errors import UnknownNameError
from bayesperf.model import Draws, Floats, Predicted, Request
from bayesperf.models.roofline.encode import Encoded, Labels, Sheets, code_rows, devices_of, sheets_for, units_of
from bayesperf.models.roofline.hierarchy import (
    TERMS,
    Members,
    drop_shape,
    lacking_variance,
    launch_location,
    main_location,
    members_of,
    memory_location,
    overhead_location,
    rate_location,
    row_terms,
    unit_rate_location,
    unit_spread,
)
from bayesperf.models.roofline.physics import smooth_roofline, term_shares
from bayesperf.models.roofline.priors import PRIORS
from bayesperf.specs import spec_of

__all__ = ["predict"]


FRESH = "\N{EMPTY SET}"
"""Name of a campaign that was not measured; an absent name is that of measured rows without one."""


@dataclass
class _Extension:
    """Draws of the fitted members, to which draws of new members are appended level by level."""

    p: dict[str, Floats]
    n_draws: int
    rng: np.random.Generator

    def normal(self, name: str, location: Any, spread: Any) -> None:
        """Append to `name` the members of `location` that it lacks; location and spread broadcast to (draw, member)."""
        mean, scale = self._new(name, location), self._new(name, np.broadcast_to(spread, self._shape(location)))
        self._append(name, mean + scale * self.rng.standard_normal(mean.shape))

    def gamma(self, name: str, shape: Floats, scale: Floats) -> None:
        """The same for gamma members of the shapes and scales given, (member,) each."""
        new_shape = self._new(name, shape)
        self._append(name, self._new(name, scale) * self.rng.gamma(new_shape, size=new_shape.shape))

    def scalar(self, name: str) -> Floats:
        """A scalar's draws as a column, (draw, 1)."""
        return self.p[name].reshape(-1, 1)

    def _shape(self, values: Any) -> tuple[int, int]:
        return self.n_draws, np.shape(values)[-1]

    def _new(self, name: str, values: Any) -> Floats:
        known = self.p[name].shape[1] if name in self.p else 0
        return np.broadcast_to(np.asarray(values, dtype=float), self._shape(values))[:, known:]

    def _append(self, name: str, values: Floats) -> None:
        self.p[name] = np.concatenate([self.p[name], values], axis=1) if name in self.p else values


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
    x = _extend(draws, encoded, labels, sheets, members, rng)
    notes = _extend_campaigns(x, encoded, labels, request)
    terms = row_terms(np, x.p, codes, members, sheets)
    sharpness = x.scalar("sharpness")
    log_time = smooth_roofline(np, *terms, sharpness) + x.p["campaign"][:, codes.campaign]
    misfit = np.sqrt(x.p["misfit"][:, codes.noise] ** 2 + lacking_variance(x.p, codes, members))
    return Predicted(
        log_time=log_time,
        misfit=misfit,
        repeat=x.p["repeat"][:, codes.noise] if "repeat" in x.p else np.zeros_like(misfit),
        tail=np.broadcast_to(x.p["tail"].reshape(-1), (x.n_draws,)),
        terms=dict(zip(TERMS, terms, strict=True)),
        shares=dict(zip(TERMS, term_shares(np, *terms, sharpness), strict=True)),
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


def _extend(
    draws: Draws, encoded: Encoded, labels: Labels, sheets: Sheets, members: Members, rng: np.random.Generator
) -> _Extension:
    """Draws of every labelled member: posterior for the fitted, from the level above for the new."""
    measured = set(encoded.labels.of("op"))
    x = _Extension({k: np.asarray(v, dtype=float) for k, v in draws.items()}, len(draws["sharpness"]), rng)
    x.normal("scale", sheets.scale, sheets.scale_spread)
    unseen, extra = PRIORS.unseen_operation
    location = np.full(len(labels.of("op")), unseen)
    x.normal("operation_rate", location, np.hypot(x.scalar("operation_spread"), extra))
    x.normal("operation_memory", location, np.hypot(x.scalar("memory_operation_spread"), extra))
    unit_scale = unit_spread(sheets, x.scalar("efficiency_spread"), np)
    x.normal("unit_rate", unit_rate_location(np, x.p, members, sheets), unit_scale)
    x.normal("main", *main_location(sheets))
    x.gamma("drop", drop_shape(sheets), sheets.curves.mean)
    x.normal("warp", np.zeros(len(sheets.curves.mean)), PRIORS.level_warp)
    x.normal("launch", *launch_location(members))
    x.normal("rate", rate_location(x.p, members), PRIORS.cell_spread)
    x.normal("memory", memory_location(x.p, members), PRIORS.memory_cell_spread)
    new_op = np.array([(op,) not in measured for _, op, _ in labels.of("overhead")])
    location = overhead_location(x.p, members) + np.where(new_op, PRIORS.unseen_overhead[0], 0.0)
    x.normal("overhead", location, np.hypot(PRIORS.overhead_cell_spread, new_op * PRIORS.unseen_overhead[1]))
    if "shape_cell_weight" in x.p:
        weights = x.p["shape_cell_weight"]
        new = (x.n_draws, len(labels.of("shape_cell")) - weights.shape[1], weights.shape[2])
        x.p["shape_cell_weight"] = np.concatenate([weights, x.rng.standard_normal(new)], axis=1)
    for name, spread in (("misfit", PRIORS.misfit_cell_spread), ("repeat", PRIORS.repeat_cell_spread)):
        if f"{name}_mean" in x.p:
            x.normal(f"log_{name}", np.repeat(x.scalar(f"{name}_mean"), len(labels.of("noise")), axis=1), spread)
            x.p[name] = np.exp(x.p[f"log_{name}"])
    return x


def _extend_campaigns(x: _Extension, encoded: Encoded, labels: Labels, request: Request) -> tuple[str, ...]:
    """Append an effect for each campaign that was not measured; it is shared by all rows of its target.

    The parameters of a table with one campaign per target are those *as in* that campaign: its own effect is zero,
    a fresh one differs by the difference of two effects (variance 2 tau^2), their mean by one (tau^2).
    """
    known, seen = labels.of("campaign"), len(encoded.labels.of("campaign"))
    measured = {target for target, *_ in known[:seen]}
    learned = "campaign" in x.p
    if not learned:
        x.p["campaign"] = np.zeros((x.n_draws, seen))
        x.p["campaign_vector"] = np.zeros((x.n_draws, seen, len(TERMS)))
        x.p["campaign_spread"] = np.exp(x.rng.normal(*PRIORS.campaign, size=x.n_draws))
        x.p["campaign_vector_spread"] = np.abs(x.rng.normal(0.0, PRIORS.campaign_vector, size=x.n_draws))
    factor, change, notes = [], [], set()
    for target, _, stack in known[seen:]:
        as_in_one = not learned and target in measured
        variance = {"fresh": 1.0 + as_in_one, "mean": float(as_in_one), "none": 0.0}[request.effect]
        factor.append(np.sqrt(variance))
        stacks = {s for t, _, s in known[:seen] if t == target}
        change.append(float(bool(stack) and stack not in stacks))
        if as_in_one and request.effect == "fresh":
            notes.add("campaign spread assumed, one campaign seen")
        if change[-1]:
            notes.add(f"effect of a change of software stack assumed: {stack} was not measured on {target}")
    size = (x.n_draws, len(factor))
    common = x.scalar("campaign_spread") * x.rng.standard_normal(size) * factor
    common = common + np.exp(x.rng.normal(*PRIORS.stack, size=(x.n_draws, 1))) * x.rng.standard_normal(size) * change
    spread = x.p["campaign_vector_spread"].reshape(-1, 1, 1) * np.reshape(factor, (1, -1, 1))
    vector = spread * x.rng.standard_normal((*size, len(TERMS)))
    x.p["campaign"] = np.concatenate([x.p["campaign"], common], axis=1)
    x.p["campaign_vector"] = np.concatenate([x.p["campaign_vector"], vector], axis=1)
    return tuple(sorted(notes))
