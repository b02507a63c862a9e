"""Priors of the contention model, each with its reason. Scales are on the natural-log axis unless said."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRIORS", "Priors"]


@dataclass(frozen=True)
class Priors:
    """Pairs are (location, scale) of a normal distribution; spreads are between targets."""

    turn_weight: tuple[float, float] = (0.0, 0.1)
    """Log load of another process beside one's own: schedulers are fair to some 10 %."""

    turn_weight_spread: float = 0.1

    turn_capacity: tuple[float, float] = (0.5, 2.0)
    """Log of the processors beyond the first, where no placement is known: one (time slicing, e^-3) to dozens."""

    turn_capacity_spread: float = 1.0

    compute_room: tuple[float, float] = (0.7, 1.5)
    """Log of the compute capacity beyond one saturating kernel: from none (one device) to tens (cores of their own)."""

    memory_room: tuple[float, float] = (0.0, 1.5)
    """The same of memory: one stream of a device saturates it, one core's takes a tenth to all of a socket's."""

    link_room: tuple[float, float] = (0.0, 1.5)
    """The same of a link: one transfer saturates it, or several do."""

    room_spread: float = 0.7

    loss: tuple[float, float] = (-3.0, 1.0)
    """Log efficiency lost per further sharer: 5 % (1 to 26 %)."""

    loss_spread: float = 0.5

    private_bytes: tuple[float, float] = (14.0, 1.5)
    """Log working set from which traffic reaches what is shared: 1.2 MB (0.1 to 14 MB), a private cache."""

    private_bytes_spread: float = 0.5

    cache_taken: tuple[float, float] = (-2.0, 1.5)
    """Log odds of the share of a cache that others' working sets take from one's own: 12 % (1 to 61 %)."""

    cache_taken_spread: float = 0.7

    corner: tuple[float, float] = (1.4, 0.4)
    """Log of the exponent at which a resource saturates: 4; 1 would be queueing from the first sharer on."""

    turn_corner: tuple[float, float] = (2.1, 0.4)
    """The same of processors, which are shared only once there are more threads than processors: 8."""

    effect: tuple[float, float] = (-1.6, 0.5)
    """Log spread between operations of their demand on memory beside what their bytes say, and of how much of a stretch
    reaches their time: 20 % (8 to 45 %)."""

    pair: tuple[float, float] = (-4.0, 0.7)
    """Log of what the model gets wrong about one victim beside one mix, where nothing contends: 2 %."""

    pair_slope: tuple[float, float] = (-2.5, 0.6)
    """Log of what it gets wrong of a log slowdown, relative to it: 8 %."""

    noise: tuple[float, float] = (-4.0, 0.7)
    """Log difference between repeats of one mix, where nothing contends: 2 %."""

    noise_slope: tuple[float, float] = (-3.0, 0.6)
    """The same relative to the log slowdown: 5 %."""

    scale_spread: float = 0.5
    """Spread between targets of both scales."""


PRIORS = Priors()
