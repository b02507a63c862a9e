"""Collectives: bus-bandwidth factors and compulsory local traffic, as nccl-tests define them (PERFORMANCE.md).

``message_bytes`` S is the larger of one rank's send and receive buffers. Algorithm bandwidth is S / t; bus bandwidth is
that times a factor of the collective and the number of ranks n, which makes it comparable with what a link carries.
FLOP are 0: a collective is data movement, its reductions are never what limits it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

__all__ = [
    "COLLECTIVES",
    "SENT_BETWEEN_TWO",
    "between_ranks",
    "bus_factor",
    "is_collective",
    "size_per_count",
    "traffic",
]

# op -> (bus factor as a function of n, buffer elements over count, local traffic over S)
COLLECTIVES: dict[str, tuple[str, str, str]] = {
    "all_reduce": ("2(n-1)/n", "1", "2"),
    "all_gather": ("(n-1)/n", "n", "1+1/n"),
    "reduce_scatter": ("(n-1)/n", "n", "1+1/n"),
    "all_to_all": ("(n-1)/n", "n", "2"),
    "broadcast": ("1", "1", "1"),
    "reduce": ("1", "1", "1"),
    "gather": ("(n-1)/n", "n", "1+1/n"),
    "scatter": ("(n-1)/n", "n", "1+1/n"),
    "send_recv": ("1", "1", "2"),
    "hypercube": ("1", "n", "1+1/n"),
}
"""What nccl-tests measures, by the contract's operation name."""

SENT_BETWEEN_TWO: dict[str, str] = {"send_recv": "send_recv", "ppermute": "send_recv"}
"""Messages from one rank to another, round a ring of any size too: name in `COLLECTIVES` by operation name."""


LOCAL_TOO = ("reduce", "gather", "scatter")
"""Names that a collective shares with a kernel of one device."""


def is_collective(op: str) -> bool:
    """Whether an operation family is a collective or a message between two ranks."""
    return op in COLLECTIVES or op in SENT_BETWEEN_TWO


def between_ranks(table: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Rows that are collectives or messages between ranks, (row,).

    A name that a kernel of one device has too is one only where the row tells the bytes of its message.
    """
    named = table["op"].map(is_collective).to_numpy(bool)
    sent = np.zeros(len(table), dtype=bool)
    if "message_bytes" in table:
        sent = table["message_bytes"].to_numpy(float, na_value=np.nan) > 0
    return np.asarray(named & (sent | ~table["op"].isin(LOCAL_TOO).to_numpy(bool)), dtype=np.bool_)


def _value(expression: str, n: int) -> float:
    return {"1": 1.0, "n": float(n), "2": 2.0, "1+1/n": 1 + 1 / n, "(n-1)/n": (n - 1) / n, "2(n-1)/n": 2 * (n - 1) / n}[
        expression
    ]


def bus_factor(op: str, n: int) -> float:
    """Bus bandwidth over algorithm bandwidth."""
    return _value(COLLECTIVES[op][0], n)


def size_per_count(op: str, n: int) -> float:
    """Buffer elements over the count that nccl-tests prints."""
    return _value(COLLECTIVES[op][1], n)


def traffic(op: str, message_bytes: float, n: int | None) -> float:
    """Compulsory memory traffic of one rank, in bytes: its send buffer read once, its receive buffer written once.

    An unknown number of ranks counts as many, so that 1/n vanishes.
    """
    expression = COLLECTIVES[op][2]
    return message_bytes * (1.0 if expression == "1+1/n" and n is None else _value(expression, n or 1))
