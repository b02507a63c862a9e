"""The time of a collective, written once: the sampler calls it with PyTensor, the predictor with NumPy.

Functions take the array namespace `xp` first and work on any number of leading batch axes; all times are logs of
seconds. A message of S bytes between n ranks takes the time of the faster of two protocols (a smooth minimum)::

    small(S) = latency(n) + (1 + flags) S byte_time(n)
    large(S) = (1 + handshake) latency(n) + S byte_time(n)

    latency(n)   = start + passes step steps(n),          steps(n) = (n^p - 1) / (2^p - 1)
    byte_time(n) = link (n / n0)^growth factor(n) + link own / n

Latency plus bytes over bandwidth is Hockney's (1994) model, and LogGP's (Alexandrov et al. 1995) for long messages. A
ring of n ranks takes n - 1 steps (p = 1), a tree log2(n) (p -> 0), in one pass or, for an all-reduce, two (Thakur et
al. 2005). ``factor`` is what nccl-tests multiplies the algorithm bandwidth with (`bayesperf.collectives`): bytes on the
wire over S. Where it is (n - 1) / n, each rank keeps the share 1 / n, which it copies in its own memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.collectives import SENT_BETWEEN_TWO, bus_factor, traffic
from bayesperf.model import Floats

__all__ = [
    "ABSENT",
    "REDUCING",
    "log_factor",
    "log_kept",
    "log_passes",
    "log_steps",
    "message_of",
    "protocol_times",
    "shares",
    "walks",
]

ABSENT = -80.0
"""Log of what is not there, such as bytes that one rank alone sends: below everything."""

SHARPNESS = 4.0
"""Exponent of the smooth minimum: where both protocols take the same time, their mixture takes 16 % less. Public tables
are described as well by 2 as by 10."""

REDUCING = frozenset({"all_reduce", "reduce_scatter", "reduce"})
"""Collectives that compute, so that the element type may matter."""

_PASSES = {"all_reduce": 2.0}
"""How often data go round: an all-reduce is a reduce-scatter and an all-gather."""


def walks(op: str) -> bool:
    """Whether it takes more steps with more ranks; a message to a neighbour is one step, however many neighbours."""
    return op not in SENT_BETWEEN_TWO


def message_of(op: str, moved: Floats, ranks: Floats) -> Floats:
    """Bytes of the larger buffer of a rank, from the traffic of its memory, byte."""
    known = SENT_BETWEEN_TWO.get(op, op)
    return np.array([m / traffic(known, 1.0, int(n)) for m, n in zip(moved, ranks, strict=True)], dtype=np.float64)


def log_factor(op: str, ranks: float) -> float:
    """Log of bytes on the wire over S."""
    return _log(bus_factor(SENT_BETWEEN_TWO.get(op, op), max(round(ranks), 1)))


def log_kept(op: str, ranks: float) -> float:
    """Log of the share of S that a rank keeps: 1 / n, or `ABSENT` where all of it is sent."""
    known = SENT_BETWEEN_TWO.get(op, op)
    return -float(np.log(ranks)) if bus_factor(known, 2) != bus_factor(known, 4) else ABSENT


def log_passes(op: str) -> float:
    """Log of how often the data go round."""
    return float(np.log(_PASSES.get(op, 1.0)))


def _log(value: float) -> float:
    return float(np.log(value)) if value > 0 else ABSENT


def log_steps(xp: Any, exponent: Any, log_ranks: Any) -> Any:
    """Log of the steps between n ranks, 0 for two: Box and Cox's (1964) transformation of n.

    Parameters
    ----------
    xp
        Array namespace.
    exponent
        1 is a ring, 0 (or close to it) a tree.
    log_ranks
        Log of n, above 0.
    """
    return xp.log(xp.expm1(exponent * log_ranks) / xp.expm1(exponent * np.log(2.0)))


def protocol_times(xp: Any, latency: Any, transfer: Any, handshake: Any, flags: Any) -> tuple[Any, Any, Any]:
    """Log time of a message, and of either protocol alone, (..., row) each.

    Parameters
    ----------
    xp
        Array namespace.
    latency, transfer
        Log latency, and log time of all bytes at the bandwidth for large messages.
    handshake, flags
        Log of what the protocols add; see the module's head.
    """
    small = xp.logaddexp(latency, transfer + xp.logaddexp(0.0, flags))
    large = xp.logaddexp(latency + xp.logaddexp(0.0, handshake), transfer)
    return -xp.logaddexp(-SHARPNESS * small, -SHARPNESS * large) / SHARPNESS, small, large


def shares(latency: Floats, transfer: Floats, handshake: Floats, flags: Floats) -> tuple[Floats, Floats]:
    """Sensitivities of log time to the logs of latency and of the time of a byte; they sum to one."""
    together, small, large = protocol_times(np, latency, transfer, handshake, flags)
    by_small = np.exp(SHARPNESS * (together - small))
    moving = by_small * np.exp(transfer + np.logaddexp(0.0, flags) - small)
    moving = moving + (1.0 - by_small) * np.exp(transfer - large)
    return 1.0 - moving, moving
