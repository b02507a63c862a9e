"""Whether what is asked for fits into memory, said before it is tried: a killed process says nothing."""

from __future__ import annotations

from bayesperf.errors import InputError
from bayesperf.model import Draws

__all__ = ["PAIR_BYTES", "draws_in", "refuse_beyond_memory"]

PAIR_BYTES = 150.0
"""What a pair of a draw and a workload takes while it is predicted, of times, terms, scales and noise, roughly."""

SMALL_BYTES = 5e8
"""What is there anyway, and not looked at."""


def draws_in(draws: Draws) -> int:
    """How many draws there are."""
    return len(next(iter(draws.values())))


def refuse_beyond_memory(pairs: float, remedy: str, pair_bytes: float = PAIR_BYTES) -> None:
    """Refuse so many pairs of a draw and a workload where this process has no memory for them.

    Raises
    ------
    InputError
        Says how much it would take, how much there is, and what to do.
    """
    needed = pairs * pair_bytes
    if needed < SMALL_BYTES:
        return
    from bayesperf.measure.machine import memory_limit_bytes

    there = memory_limit_bytes()
    if needed > there:
        raise InputError(
            f"{pairs:.3g} pairs of a draw and a workload take about {needed / 1e9:.3g} GB of memory, "
            f"{there / 1e9:.3g} GB are free: {remedy}"
        )
