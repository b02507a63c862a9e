"""Collectives as tools spell them; their sizes and factors are those of `bayesperf.collectives`."""

from __future__ import annotations

import re

from bayesperf.collectives import COLLECTIVES, bus_factor, size_per_count, traffic

__all__ = ["COLLECTIVES", "bus_factor", "collective_name", "named_in", "size_per_count", "traffic"]

# Longest first: "reduce_scatter" holds "reduce" and "scatter".
_SPELLINGS = (
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("bcast", "broadcast"),
    ("hypercube", "hypercube"),
    ("sendrecv", "send_recv"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("reduce", "reduce"),
)


def named_in(text: str) -> str | None:
    """Collective named in a test's, file's or benchmark's name, or None."""
    letters = re.sub(r"[^a-z]", "", text.lower())
    return next((op for spelling, op in _SPELLINGS if spelling in letters), None)


def collective_name(name: str) -> str:
    """The contract's name of a collective the user names, ``allreduce`` and ``all-reduce`` alike; others unchanged."""
    return named_in(name) or name
