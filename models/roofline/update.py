"""A few new rows without a refit: the population stays as the fit drew it, new members are moved to explain the rows.

Every posterior draw of the fit becomes a particle, to which the members that the rows bring (a target, an operation, a
campaign) are appended from the level above, as `extend` does, standard normal numbers `z` in, members out. Tempered
sequential Monte Carlo (Del Moral, Doucet and Jasra, 2006) then raises the likelihood of the new rows from nothing to
whole: particles that explain them badly are replaced by better ones, and `z` is moved by Hamiltonian steps under ::

    log p(z) + beta log p(rows | population, z),   beta from 0 to 1

What the fit drew is exchanged for other draws of it, under which the members as they are become as likely or likelier,
but never moved. Where few of its draws are left, the rows tell about what all targets share, and only a refit follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.model import Draws, Floats, Updated
from bayesperf.models.roofline.coded import Encoded, Observations
from bayesperf.models.roofline.encode import extend_encoded
from bayesperf.models.roofline.extend import Extension, RandomNoise, append_campaigns, assume_campaigns, extend
from bayesperf.models.roofline.hierarchy import members_of
from bayesperf.models.roofline.likelihood import log_likelihood
from bayesperf.models.roofline.tempering import temper

__all__ = ["update"]

CAMPAIGN_DIMS: dict[str, tuple[str, ...]] = {
    "campaign": ("campaign_cell",),
    "campaign_vector": ("campaign_cell", "term"),
    "campaign_spread": (),
    "campaign_vector_spread": (),
}
"""Variables that a fit lacks where no target had two campaigns."""


class _Recorded:
    """Random members whose standard numbers are remembered: the particles' starting points."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        self.start: dict[str, Floats] = {}
        self.alpha: dict[str, Floats] = {}

    def normal(self, name: str, mean: Any, scale: Any) -> Any:
        self.start[name] = self.rng.standard_normal(mean.shape)
        return mean + scale * self.start[name]

    def gamma(self, name: str, alpha: Floats, scale: Any) -> Any:
        self.alpha[name] = alpha[0]
        # Gamma numbers of small shape may underflow; their logs must not.
        self.start[name] = np.log(np.maximum(self.rng.gamma(alpha), 1e-300))
        return scale * np.exp(self.start[name])


class _Given:
    """Members made of the standard numbers given; those made are remembered, and the logs of their scales added up."""

    def __init__(self, xp: Any, numbers: dict[str, Any]):
        self.xp, self.numbers = xp, numbers
        self.made: dict[str, Any] = {}
        self.log_scale: Any = 0.0

    def normal(self, name: str, mean: Any, scale: Any) -> Any:
        self.log_scale = self.log_scale + _by_particle(self.xp, scale)
        self.made[name] = mean + scale * self.numbers[name].reshape(mean.shape)
        return self.made[name]

    def gamma(self, name: str, alpha: Floats, scale: Any) -> Any:
        self.made[name] = scale * self.xp.exp(self.numbers[name].reshape(scale.shape))
        return self.made[name]


class _Kept:
    """Members as they are, of which the standard numbers are asked: the reverse of `_Given`."""

    def __init__(self, xp: Any, members: dict[str, Any]):
        self.xp, self.members = xp, members
        self.numbers: dict[str, Any] = {}
        self.log_scale: Any = 0.0

    def normal(self, name: str, mean: Any, scale: Any) -> Any:
        self.log_scale = self.log_scale + _by_particle(self.xp, scale)
        self.numbers[name] = (self.members[name] - mean) / scale
        return self.members[name]

    def gamma(self, name: str, alpha: Floats, scale: Any) -> Any:
        self.numbers[name] = self.xp.log(self.members[name] / scale)
        return self.members[name]


def _by_particle(xp: Any, scale: Any) -> Any:
    return xp.log(scale).reshape(scale.shape[0], -1).sum(axis=1)


class _Target:
    """Prior, likelihood and exchange of populations, as `temper` asks for them."""

    def __init__(self, recorded: _Recorded, encoded: Encoded, joined: Encoded, new: Observations):
        self.sizes = {name: int(np.prod(values.shape[1:])) for name, values in recorded.start.items()}
        self.alpha, self.encoded, self.joined, self.new = recorded.alpha, encoded, joined, new

    def flat(self, numbers: dict[str, Any], xp: Any) -> Any:
        """Numbers as one vector of each particle, (particle, dimension)."""
        return xp.concatenate([numbers[name].reshape(-1, size) for name, size in self.sizes.items()], axis=1)

    def split(self, z: Any) -> dict[str, Any]:
        """The reverse."""
        ends = np.cumsum(list(self.sizes.values()))
        pieces = zip(self.sizes.items(), ends, strict=True)
        return {name: z[:, end - size : end] for (name, size), end in pieces}

    def log_prior(self, z: Any) -> Any:
        import jax.numpy as jnp

        total = jnp.zeros(len(z))
        for name, values in self.split(z).items():
            if name in self.alpha:
                total = total + (self.alpha[name] * values - jnp.exp(values)).sum(axis=1)
            else:
                total = total - 0.5 * (values**2).sum(axis=1)
        return total

    def log_likelihood(self, z: Any, population: Any) -> Any:
        import jax.numpy as jnp

        x = _extended(jnp, population, _Given(jnp, self.split(z)), self.encoded, self.joined)
        return log_likelihood(jnp, x.p, self.new, self.joined)

    def exchange(self, z: Any, population: Any, other: Any) -> tuple[Any, Any, Any, Any]:
        """The same members under another draw of the population: numbers, likelihood, and log prior density of the
        members there and here."""
        import jax.numpy as jnp

        given = _Given(jnp, self.split(z))
        _extended(jnp, population, given, self.encoded, self.joined)
        kept = _Kept(jnp, given.made)
        x = _extended(jnp, other, kept, self.encoded, self.joined)
        there = self.flat(kept.numbers, jnp)
        explained = log_likelihood(jnp, x.p, self.new, self.joined)
        return there, explained, self.log_prior(there) - kept.log_scale, self.log_prior(z) - given.log_scale


def update(
    encoded: Encoded,
    posterior: Draws,
    prior: Draws,
    table: pd.DataFrame,
    targets: pd.DataFrame | None,
    rng: np.random.Generator,
    progress: Callable[[float], None],
) -> Updated:
    """Condition a fit on a checked table of new rows; see the module's head and `PerformanceModel.update`."""
    import jax
    import jax.numpy as jnp

    from bayesperf.models.roofline.build import coords_of

    joined, new = extend_encoded(encoded, table, targets)
    population = _population(encoded, joined, posterior, rng)
    recorded = _Recorded(rng)
    _extended(np, population, recorded, encoded, joined)
    target = _Target(recorded, encoded, joined, new)
    with jax.enable_x64(True), jax.default_device(jax.local_devices(backend="cpu")[0]):
        pool = {name: jnp.asarray(values) for name, values in population.items()}
        tempered = temper(target, target.flat(recorded.start, np), pool, rng, progress)
    kept = {name: values[tempered.ancestors] for name, values in population.items()}
    x = _extended(np, kept, _Given(np, target.split(tempered.z)), encoded, joined)
    before = _extended(np, _population(encoded, joined, prior, rng), RandomNoise(rng), encoded, joined)
    return Updated(
        encoded=joined,
        posterior=x.p,
        prior=before.p,
        coords=coords_of(joined),
        dims=CAMPAIGN_DIMS,
        survivors=tempered.survivors,
        accepted=tempered.accepted,
        carried_over=tempered.carried_over,
    )


def _extended(xp: Any, population: Draws, noise: Any, encoded: Encoded, joined: Encoded) -> Extension:
    """All members of `joined`, campaigns included where they are learned."""
    x = Extension.of(xp, population, noise)
    extend(x, encoded, joined.labels, joined.sheets, members_of(joined.labels))
    if "campaign" in x.p:
        known, seen = joined.labels.of("campaign"), len(encoded.labels.of("campaign"))
        stacks = {(target, stack) for target, _, stack in known[:seen]}
        measured = {target for target, *_ in known[:seen]}
        change = [bool(s) and t in measured and (t, s) not in stacks for t, _, s in known[seen:]]
        append_campaigns(x, np.ones(len(change)), np.array(change, dtype=float))
    return x


def _population(encoded: Encoded, joined: Encoded, draws: Draws, rng: np.random.Generator) -> dict[str, Floats]:
    """Draws of the fit; with effects for its campaigns where the new rows make those matter.

    A fit of one campaign per target has parameters *as in* it. Beside a second campaign they become those of no
    campaign: an effect is drawn for the first, and taken out of the rates.
    """
    p = {name: np.asarray(values, dtype=float) for name, values in draws.items() if not name.endswith("_raw")}
    if not joined.learns_campaigns or "campaign" in p:
        return p
    x = Extension.of(np, p, _Recorded(rng))
    assume_campaigns(x, 0)
    append_campaigns(x, np.ones(len(encoded.labels.of("campaign"))), np.zeros(len(encoded.labels.of("campaign"))))
    at = {target: code for code, (target, *_) in enumerate(encoded.labels.of("campaign"))}
    effect = x.p["campaign"][:, :, None] + x.p["campaign_vector"]
    for term, sign, levels in (
        (0, 1.0, {"unit_rate": "unit", "rate": "rate"}),
        (1, 1.0, {"main": "target", "memory": "memory"}),
        (2, -1.0, {"launch": "launch", "overhead": "overhead"}),
    ):
        for name, level in levels.items():
            if name in x.p:
                cells = [at[target] for target, *_ in encoded.labels.of(level)]
                x.p[name] = x.p[name] + sign * effect[:, cells, term]
    return x.p
