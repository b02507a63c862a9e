"""The physics of a mix, written once: the sampler calls it with PyTensor, predictions with NumPy.

A mix has members: member 0 is the victim, the others are kinds of aggressors, each with a count. For member j::

    S_j = turns_j * work_j ** sensitivity_j
    work_j = ( sum_r u_jr^q s_jr^q  +  rest_j ) ^ (1/q),    rest_j = 1 - sum_r u_jr^q

u_jr are the shares of compute, of shared memory traffic and of a link that the member uses when it runs alone; what it
waits for besides (its own limits, launches, private caches) is the rest, which nobody can stretch. A resource of
capacity C, in units of what one saturating member takes, that is offered ``total`` where the member alone offers
``own``, stretches by::

    s^p = 1 + (total / C)^p - (own / C)^p,       C = room / (1 + loss (sharers - 1))

which is 1 without others, and total / C where demand exceeds capacity. Processors are a resource of their own: members
whose processors overlap take turns, and what they take turns at they do not share. What another member offers is
throttled by its own turns and by the stretch of its *other* resources: that is the fixed point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesperf.model import Floats

__all__ = ["ITERATIONS", "RESOURCES", "Mix", "Stretch", "contend"]

RESOURCES = ("compute", "memory", "link")
"""What members share while they run at the same time."""

OVERLAP = 3.0
"""Exponent q of the smooth maximum of compute and memory: near the roofline's prior centre, 3.5."""

USED = 1e-3
"""Share below which nobody notices."""

ITERATIONS = 4
"""Sweeps over the resources, each with the newest stretch of the others: further ones change slowdowns of random mixes
of up to seven sharers by less than 1 % (by 4 % at most)."""


@dataclass(frozen=True)
class Mix:
    """Coded mixes; (row, member) each unless said, members that a row lacks have a count of 0.

    Parameters
    ----------
    count
        How many of each; 1 of the victim.
    compute, memory, link
        Shares of the best rate of each that a member uses alone, 0 to 1.
    log_bytes
        Log of the working set, bytes.
    load
        Processors that each keeps busy alone.
    capacity
        Processors that each may use; NaN where nobody knows.
    overlap
        Share of the second member's processors that the first may use too, (row, member, member).
    pressure
        Log by which the memory term would grow if the others' working sets were added to one's own.
    """

    count: Floats
    compute: Floats
    memory: Floats
    link: Floats
    log_bytes: Floats
    load: Floats
    capacity: Floats
    overlap: Floats
    pressure: Floats

    @property
    def others(self) -> Floats:
        """How many of the second member run beside one of the first, (row, member, member)."""
        members = self.count.shape[1]
        return np.maximum(self.count[:, None, :] - np.eye(members), 0.0) * (self.count[:, :, None] > 0)


@dataclass(frozen=True)
class Stretch:
    """Logs of what a victim's time is multiplied by, (..., row) each: taking turns, sharing, and both together."""

    turns: Any
    work: Any

    @property
    def total(self) -> Any:
        """Log slowdown."""
        return self.turns + self.work


def contend(xp: Any, p: Mapping[str, Any], mix: Mix, iterations: int = ITERATIONS) -> Stretch:
    """Slowdown of every row's victim.

    Parameters
    ----------
    xp
        Array namespace.
    p
        Parameters of each row, (..., row): ``turn_weight`` (log load of another process beside one's own),
        ``turn_capacity`` (processors, where nobody knows them), ``compute_room``, ``memory_room`` and ``link_room``
        (capacities, at least 1), ``compute_loss``, ``memory_loss`` and ``link_loss`` (efficiency lost per further
        sharer), ``private_bytes`` (log working set from which traffic is shared), ``cache_taken`` (0 to 1); scalars
        ``corner`` and ``turn_corner`` (exponents); and of each member, (..., row, member), ``demand_effect`` and
        ``victim_effect`` (logs).
    mix
        The rows.
    iterations
        Of the fixed point.
    """
    q = OVERLAP
    beside, turns = _turns(xp, p, mix)
    shared = 1.0 / (1.0 + xp.exp(2.0 * (p["private_bytes"][..., None] - mix.log_bytes)))
    memory = xp.minimum(mix.memory * xp.exp(p["demand_effect"]), 1.0) * shared
    # What nobody uses is left out: the rest compiles in less time.
    own = {name: u for name, u in {"compute": mix.compute, "memory": memory, "link": mix.link}.items()
           if name == "memory" or np.any(u > USED)}  # fmt: skip
    full = xp.maximum(sum(u**q for u in own.values()), 1.0)
    used = {name: u**q / full for name, u in own.items()}
    rest = 1.0 - sum(used.values())
    stretch: dict[str, Any] = dict.fromkeys(own, 1.0 + 0.0 * turns)
    for name in list(own) * iterations:
        # What a member offers a resource is throttled by all the others that it uses, as they are by now.
        others = sum(used[other] * stretch[other] ** q for other in own if other != name)
        offered = own[name] * (others + used[name] + rest) ** (-1.0 / q)
        stretch[name] = _stretch(p, name, own[name], (beside * offered[..., None, :]).sum(axis=-1))
    slow = {name: used[name] * stretch[name] ** q for name in own}
    # What a cache loses to others is no bandwidth: only the victim's own time knows of it. Who takes turns fills it
    # again once a turn, which is soon done.
    meanwhile = beside.sum(axis=-1) / np.maximum(mix.others.sum(axis=-1), 1.0)
    slow["memory"] = slow["memory"] * xp.exp(q * p["cache_taken"][..., None] * mix.pressure * meanwhile)
    work = xp.log(sum(slow.values()) + rest) / q
    return Stretch(xp.log(turns)[..., 0], (xp.exp(p["victim_effect"]) * work)[..., 0])


def _turns(xp: Any, p: Mapping[str, Any], mix: Mix) -> tuple[Any, Any]:
    """How many of each member really run beside each, (..., row, member, member), and the stretch of taking turns."""
    others, known = mix.others, np.isfinite(mix.capacity)
    capacity = xp.where(known, np.where(known, mix.capacity, 1.0), p["turn_capacity"][..., None])
    weight = xp.exp(p["turn_weight"])[..., None]
    crowd = (others * mix.overlap * mix.load[:, None, :]).sum(axis=-1)
    corner = p["turn_corner"][..., None]
    own, total = mix.load / capacity, (mix.load + weight * crowd) / capacity
    turns = (1.0 + total**corner - own**corner) ** (1.0 / corner)
    # Those on one's own processors run meanwhile on what one leaves of them; others, in their own turns.
    left = xp.minimum(xp.maximum(capacity - mix.load, 0.0) / np.maximum(crowd, 1e-9), 1.0)
    apart = (1.0 - mix.overlap) / turns[..., None, :]
    return others * (apart + mix.overlap * left[..., None]), turns


def _stretch(p: Mapping[str, Any], name: str, own: Any, others: Any) -> Any:
    """Stretch of a resource that a member offers `own` and those beside it `others`, (..., row, member)."""
    room, loss = p[f"{name}_room"][..., None], p[f"{name}_loss"][..., None]
    corner = p["corner"][..., None]
    alone, together = own / room, (own + others) * (1.0 + loss * others) / room
    return (1.0 + together**corner - alone**corner) ** (1.0 / corner)
