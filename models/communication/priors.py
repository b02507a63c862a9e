"""Priors of the communication model, each with its reason. Scales are on the natural-log axis unless said.

None is one vendor's: fabrics between a socket on loopback and a switch in a rack lie within them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRIORS", "Priors"]


@dataclass(frozen=True)
class Priors:
    """Prior locations and scales.

    Pairs are (location, scale) of a normal distribution on the log of the quantity.
    """

    link: tuple[float, float] = (-23.0, 2.2)
    """Time of a byte on the wire, in the convention of the bus bandwidth: 1e10 B/s, a 90 % range of 2.7e8 to 3.7e11:
    from sockets on loopback to links between accelerators."""

    own: tuple[float, float] = (-1.0, 1.0)
    """Time of a byte that a rank keeps, over that of one on the wire: 0.37 (0.07 to 1.9). It is a copy in the
    rank's own memory; where ranks exchange through memory, both are alike."""

    growth_tail: float = 3.0
    """Degrees of freedom of `growth_spread`."""

    growth_spread: float = 0.15
    """How the time of a byte changes with the number of ranks, as an exponent. Zero where every rank has a link of its
    own, which most fabrics are built for: hence the narrow middle. One where all share a link, negative where further
    ranks bring further links: hence the Student-t's tails."""

    start: tuple[float, float] = (-12.2, 1.5)
    """Time of a collective before its first step: 5 us (0.4 to 60 us), a launch and a rendezvous of the ranks."""

    step: tuple[float, float] = (-13.1, 1.5)
    """Time of one step to the next rank: 2 us (0.2 to 24 us), from links between devices to sockets."""

    exponent: tuple[float, float] = (0.8, 0.3)
    """How steps grow with ranks: 1 is a ring, (n - 1), 0 a tree, log2(n). Libraries take rings inside a node and trees
    between many; not the log of anything."""

    exponent_spread: float = 0.2
    """Spread of that between collectives: an all-to-all sends side by side what a ring sends in turn."""

    step_operation_spread: float = 0.3
    """Spread between collectives in the time of a step."""

    link_operation_spread: float = 0.15
    """Spread between collectives in the time of a byte, factors of the bus bandwidth taken out: they were made so that
    it is none."""

    latency_pair_spread: float = 0.15
    """Spread of one collective on one target around that, in latency."""

    byte_pair_spread: float = 0.1
    """The same in the time of a byte."""

    latency_cell_spread: float = 0.08
    """Spread of one number of ranks around the law of growth, in latency."""

    byte_cell_spread: float = 0.06
    """The same in the time of a byte: channels and trees are laid out anew for every number of ranks."""

    handshake: tuple[float, float] = (0.7, 0.6)
    """Latency that the protocol for large messages adds, over that of the one for small messages: 2 (0.75 to 5.4).
    NCCL's own table of steps has ratios of 3 to 7, MPI's rendezvous adds a round trip or two."""

    flags: tuple[float, float] = (0.0, 0.7)
    """Bytes that the protocol for small messages adds to each: 1 (0.3 to 3.2). NCCL's LL sends a flag beside every
    word, which doubles them; MPI's eager protocol copies once more."""

    protocol_spread: float = 0.4
    """Spread of both between collectives and targets."""

    misfit: tuple[float, float] = (-2.8, 0.7)
    """What the model gets wrong about one configuration: 6 % (2-19 %)."""

    misfit_pair_spread: float = 0.5
    """Spread of the misfit between collectives and targets."""

    repeat: tuple[float, float] = (-3.5, 1.0)
    """Difference between fresh processes: 3 % (0.6-16 %); more than for kernels, as ranks wait for the last."""

    repeat_pair_spread: float = 0.7
    """Spread of that difference between collectives and targets."""

    campaign: tuple[float, float] = (-3.5, 0.7)
    """log tau, the common part of a campaign effect: 3 % (1-10 %); public fleets showed 1-7 % within one target."""

    campaign_vector: float = 0.05
    """Half-normal scale of a campaign's own effect on latency and on the time of a byte."""

    stack: tuple[float, float] = (-2.5, 0.5)
    """log spread of a change of software stack: 8 % (4-19 %)."""

    unseen_operation: float = 0.3
    """Spread of collectives without a row in the table, beyond that between the measured: other algorithms."""

    tail: float = 5.0
    """Degrees of freedom of the noise; fixed below `tail_rows` observations, where it trades off with its scale."""

    tail_rows: int = 100
    """From how many observations the tail is learned."""


PRIORS = Priors()
