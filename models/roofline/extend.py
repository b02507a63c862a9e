"""Draws of members that were not measured, appended to those of the fitted: each from the level above it.

Prediction appends random draws. `update` asks instead how the appended members follow from standard normal numbers, and
moves those until the members explain new rows; so everything here takes the array namespace `xp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bayesperf.model import Draws, Floats, Request
from bayesperf.models.roofline.coded import Encoded, Labels, Sheets
from bayesperf.models.roofline.hierarchy import (
    TERMS,
    Members,
    drop_shape,
    launch_location,
    launch_scale,
    main_location,
    memory_location,
    overhead_location,
    rate_location,
    shape_location,
    unit_rate_location,
    unit_spread,
)
from bayesperf.models.roofline.priors import PRIORS

__all__ = ["Extension", "Noise", "RandomNoise", "extend", "extend_campaigns"]


class Noise(Protocol):
    """Where new members come from, by name, given the level above; (draw, ...) each."""

    def normal(self, name: str, mean: Any, scale: Any) -> Any:
        """Members that are normal; both arguments have the members' shape."""

    def gamma(self, name: str, alpha: Floats, scale: Any) -> Any:
        """Members that are gamma, of shapes `alpha`."""


@dataclass(frozen=True)
class RandomNoise:
    """Fresh random numbers."""

    rng: np.random.Generator

    def normal(self, name: str, mean: Any, scale: Any) -> Floats:
        """Draw them, whatever the name."""
        return np.asarray(mean + scale * self.rng.standard_normal(mean.shape))

    def gamma(self, name: str, alpha: Floats, scale: Any) -> Floats:
        """Draw them, whatever the name."""
        return np.asarray(scale * self.rng.gamma(alpha, size=alpha.shape))


@dataclass
class Extension:
    """Draws of the fitted members, (draw, ...) each, to which new members are appended level by level."""

    xp: Any
    p: dict[str, Any]
    n_draws: int
    noise: Noise

    @classmethod
    def of(cls, xp: Any, draws: Draws, noise: Noise) -> Extension:
        """Begin with the draws of a fit."""
        return cls(xp, {name: xp.asarray(values, dtype=float) for name, values in draws.items()},
                   len(draws["sharpness"]), noise)  # fmt: skip

    def normal(self, name: str, location: Any, spread: Any) -> None:
        """Append to `name` the members of `location` that it lacks; both broadcast to (draw, member, ...)."""
        shape = (self.n_draws, *np.shape(location)[1:]) if np.ndim(location) > 1 else (self.n_draws, np.size(location))
        mean, scale = self._new(name, location, shape), self._new(name, spread, shape)
        if mean.shape[1]:
            self._append(name, self.noise.normal(name, mean, scale))
        elif name not in self.p:
            self.p[name] = mean

    def gamma(self, name: str, alpha: Floats, scale: Floats) -> None:
        """The same for gamma members of the shapes and scales given, (member,) each."""
        shape = (self.n_draws, len(alpha))
        new = self._new(name, scale, shape)
        if new.shape[1]:
            lacking = np.broadcast_to(alpha, shape)[:, shape[1] - new.shape[1] :]
            self._append(name, self.noise.gamma(name, lacking, new))

    def scalar(self, name: str) -> Any:
        """A scalar's draws as a column, (draw, 1)."""
        return self.p[name].reshape(-1, 1)

    def _new(self, name: str, values: Any, shape: tuple[int, ...]) -> Any:
        known = self.p[name].shape[1] if name in self.p else 0
        return self.xp.broadcast_to(self.xp.asarray(values, dtype=float), shape)[:, known:]

    def _append(self, name: str, values: Any) -> None:
        self.p[name] = self.xp.concatenate([self.p[name], values], axis=1) if name in self.p else values


def extend(x: Extension, encoded: Encoded, labels: Labels, sheets: Sheets, members: Members) -> None:
    """Append every labelled member that was not fitted, from the level above."""
    xp, measured = x.xp, set(encoded.labels.of("op"))
    x.normal("scale", sheets.scale, sheets.scale_spread)
    x.normal("main", *main_location(sheets))
    unseen, extra = PRIORS.unseen_operation
    location = np.full(len(labels.of("op")), unseen)
    x.normal("operation_rate", location, xp.hypot(x.scalar("operation_spread"), extra))
    x.normal("operation_memory", location, xp.hypot(x.scalar("memory_operation_spread"), extra))
    unit_scale = unit_spread(sheets, x.scalar("efficiency_spread"), xp)
    x.normal("unit_rate", unit_rate_location(xp, x.p, members, sheets), unit_scale)
    x.gamma("drop", drop_shape(sheets), sheets.curves.mean)
    x.normal("warp", np.zeros(len(sheets.curves.mean)), PRIORS.level_warp)
    x.normal("launch", launch_location(x.p, members), launch_scale(x.p, members))
    x.normal("rate", rate_location(x.p, members), PRIORS.cell_spread)
    x.normal("memory", memory_location(x.p, members), PRIORS.memory_cell_spread)
    new_op = np.array([(op,) not in measured for _, op, _ in labels.of("overhead")])
    location = overhead_location(x.p, members) + np.where(new_op, PRIORS.unseen_overhead[0], 0.0)
    x.normal("overhead", location, np.hypot(PRIORS.overhead_cell_spread, new_op * PRIORS.unseen_overhead[1]))
    if "discrepancy" in x.p:
        shape = (x.n_draws, len(members.shape_cell_op), x.p["discrepancy"].shape[2])
        location = xp.broadcast_to(shape_location(xp, x.p, members), shape)
        x.normal("discrepancy", location, x.p["shape_cell_scale"][:, members.shape_cell_op, None])
    for name, spread in (("misfit", PRIORS.misfit_cell_spread), ("repeat", PRIORS.repeat_cell_spread)):
        if f"{name}_mean" in x.p:
            location = xp.repeat(x.scalar(f"{name}_mean"), len(labels.of("noise")), axis=1)
            x.normal(f"log_{name}", location, spread)
            x.p[name] = xp.exp(x.p[f"log_{name}"])


def extend_campaigns(x: Extension, encoded: Encoded, labels: Labels, request: Request) -> tuple[str, ...]:
    """Append an effect for each campaign that was not measured; it is shared by all rows of its target.

    The parameters of a table with one campaign per target are those *as in* that campaign: its own effect is zero,
    a fresh one differs by the difference of two effects (variance 2 tau^2), their mean by one (tau^2).
    """
    known, seen = labels.of("campaign"), len(encoded.labels.of("campaign"))
    measured = {target for target, *_ in known[:seen]}
    learned = "campaign" in x.p
    if not learned:
        assume_campaigns(x, seen)
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
    append_campaigns(x, np.array(factor), np.array(change))
    return tuple(sorted(notes))


def assume_campaigns(x: Extension, seen: int) -> None:
    """Effects of a fit that did not learn them: zero for the campaigns measured, and spreads from their priors."""
    one = x.xp.ones(x.n_draws)
    log_spread = x.noise.normal("campaign_spread", PRIORS.campaign[0] * one, PRIORS.campaign[1] * one)
    x.p["campaign_spread"] = x.xp.exp(log_spread)
    x.p["campaign_vector_spread"] = x.xp.abs(x.noise.normal("vector_spread", 0 * one, PRIORS.campaign_vector * one))
    x.p["campaign"] = x.xp.zeros((x.n_draws, seen))
    x.p["campaign_vector"] = x.xp.zeros((x.n_draws, seen, len(TERMS)))


def append_campaigns(x: Extension, factor: Floats, change: Floats) -> None:
    """Append campaigns whose spread is `factor` times that of one, and which `change` the software stack; (new,)."""
    size = (x.n_draws, len(factor))
    scale = x.xp.broadcast_to(x.scalar("campaign_spread") * factor, size)
    if change.any():
        column = x.xp.ones((x.n_draws, 1))
        stack = x.xp.exp(x.noise.normal("stack_spread", PRIORS.stack[0] * column, PRIORS.stack[1] * column))
        scale = x.xp.hypot(scale, stack * change)
    common = x.noise.normal("campaign", x.xp.zeros(size), scale)
    spread = x.p["campaign_vector_spread"].reshape(-1, 1, 1) * np.reshape(factor, (1, -1, 1))
    whole = (*size, len(TERMS))
    vector = x.noise.normal("campaign_vector", x.xp.zeros(whole), x.xp.broadcast_to(spread, whole))
    x.p["campaign"] = x.xp.concatenate([x.p["campaign"], common], axis=1)
    x.p["campaign_vector"] = x.xp.concatenate([x.p["campaign_vector"], vector], axis=1)
