"""Draws of members that were not measured, appended to those of the fitted: each from the level above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesperf.model import Draws, Floats, Request
from bayesperf.models.communication.coded import Encoded, Labels
from bayesperf.models.communication.hierarchy import TERMS, Members, byte_location, latency_location
from bayesperf.models.communication.priors import PRIORS

__all__ = ["Extension"]


@dataclass
class Extension:
    """Draws of the fitted members, (draw, ...) each, to which new members are appended level by level."""

    p: dict[str, Floats]
    n_draws: int
    rng: np.random.Generator

    @classmethod
    def of(cls, draws: Draws, rng: np.random.Generator) -> Extension:
        """Begin with the draws of a fit."""
        return cls({name: np.asarray(v, dtype=float) for name, v in draws.items()}, len(draws["exponent_mean"]), rng)

    def scalar(self, name: str) -> Floats:
        """A scalar's draws as a column, (draw, 1)."""
        return self.p[name].reshape(-1, 1)

    def _append(self, name: str, n: int, location: Any, spread: Any, standard: Floats | None = None) -> None:
        """Make `name` have `n` members: new ones are `location` + `spread` times standard normal numbers."""
        known = self.p[name].shape[1]
        if known < n:
            shape = (self.n_draws, n)
            mean, scale = (np.broadcast_to(values, shape)[:, known:] for values in (location, spread))
            noise = self.rng.standard_normal(mean.shape) if standard is None else standard[:, : mean.shape[1]]
            self.p[name] = np.concatenate([self.p[name], mean + scale * noise], axis=1)

    def extend(self, labels: Labels, members: Members) -> None:
        """Append every labelled member that was not fitted."""
        targets, ops, pairs = (len(labels.of(level)) for level in ("target", "op", "pair"))
        for name, prior in (
            ("link", PRIORS.link), ("own", PRIORS.own), ("start", PRIORS.start), ("step", PRIORS.step),
        ):  # fmt: skip
            self._append(name, targets, *prior)
        heavy = self.rng.standard_t(PRIORS.growth_tail, size=(self.n_draws, targets))
        self._append("growth", targets, 0.0, PRIORS.growth_spread, heavy)
        self._append("exponent", ops, self.scalar("exponent_mean"), PRIORS.exponent_spread)
        for name in ("step_operation", "link_operation"):
            self._append(name, ops, 0.0, np.hypot(self.scalar(f"{name}_spread"), PRIORS.unseen_operation))
        for name in ("latency_pair", "byte_pair"):
            self._append(name, pairs, 0.0, self.scalar(f"{name}_spread"))
        for name in ("handshake", "flags"):
            self._append(name, pairs, self.scalar(f"{name}_mean"), self.scalar(f"{name}_spread"))
        for name, spread in (("misfit", PRIORS.misfit_pair_spread), ("repeat", PRIORS.repeat_pair_spread)):
            if f"{name}_mean" in self.p:
                self._append(f"log_{name}", pairs, self.scalar(f"{name}_mean"), spread)
                self.p[name] = np.exp(self.p[f"log_{name}"])
        cells = len(labels.of("cell"))
        self._append("latency", cells, latency_location(np, self.p, members), self.scalar("latency_cell_spread"))
        self._append("byte", cells, byte_location(np, self.p, members), self.scalar("byte_cell_spread"))

    def extend_campaigns(self, encoded: Encoded, labels: Labels, request: Request) -> tuple[str, ...]:
        """Append an effect for each campaign that was not measured; it is shared by all rows of its target.

        The parameters of a table with one campaign per target are those *as in* that campaign: its own effect is zero,
        a fresh one differs by the difference of two effects (variance 2 tau^2), their mean by one (tau^2).
        """
        known, seen = labels.of("campaign"), len(encoded.labels.of("campaign"))
        measured = {target for target, *_ in known[:seen]}
        learned = "campaign" in self.p
        if not learned:
            self._assume_campaigns(seen)
        factor, change, notes = [], [], set()
        for target, _, stack in known[seen:]:
            as_in_one = not learned and target in measured
            variance = {"fresh": 1.0 + as_in_one, "mean": float(as_in_one), "none": 0.0}[request.effect]
            factor.append(np.sqrt(variance))
            change.append(float(bool(stack) and stack not in {s for t, _, s in known[:seen] if t == target}))
            if as_in_one and request.effect == "fresh":
                notes.add("campaign spread assumed, one campaign seen")
            if change[-1]:
                notes.add(f"effect of a change of software stack assumed: {stack} was not measured on {target}")
        self._append_campaigns(np.array(factor), np.array(change))
        return tuple(sorted(notes))

    def _assume_campaigns(self, seen: int) -> None:
        """Effects of a fit that did not learn them: zero for the campaigns measured, and spreads from their priors."""
        location, scale = PRIORS.campaign
        self.p["campaign_spread"] = np.exp(location + scale * self.rng.standard_normal(self.n_draws))
        vector = PRIORS.campaign_vector * self.rng.standard_normal(self.n_draws)
        self.p["campaign_vector_spread"] = np.abs(vector)
        self.p["campaign"] = np.zeros((self.n_draws, seen))
        self.p["campaign_vector"] = np.zeros((self.n_draws, seen, len(TERMS)))

    def _append_campaigns(self, factor: Floats, change: Floats) -> None:
        """Append campaigns whose spread is `factor` times that of one, and which `change` the stack; (new,)."""
        size = (self.n_draws, len(factor))
        location, scale = PRIORS.stack
        stack = np.exp(location + scale * self.rng.standard_normal((self.n_draws, 1)))
        common = np.hypot(self.scalar("campaign_spread") * factor, stack * change) * self.rng.standard_normal(size)
        spread = self.p["campaign_vector_spread"].reshape(-1, 1, 1) * np.reshape(factor, (1, -1, 1))
        vector = spread * self.rng.standard_normal((*size, len(TERMS)))
        self.p["campaign"] = np.concatenate([self.p["campaign"], common], axis=1)
        self.p["campaign_vector"] = np.concatenate([self.p["campaign_vector"], vector], axis=1)
