"""Which section of a profile a named parameter belongs to, by its name and unit, whatever model gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bayesperf.report.document import Section

__all__ = ["TITLES", "section_of"]

TITLES: Mapping[Section, str] = {
    "compute": "Compute",
    "memory": "Memory hierarchy",
    "movement": "Data movement",
    "interconnect": "Interconnect",
    "contention": "Contention",
    "overhead": "Overheads",
    "variability": "Variability",
    "other": "Other parameters",
}
"""Sections in the order of the page."""

_WORDS: tuple[tuple[Section, frozenset[str]], ...] = (
    # The first that holds a word of the name: contention of a link is contention.
    (
        "contention",
        frozenset({"contention", "interference", "corunner", "corunners", "slowdown", "sharing", "shared", "victim",
                   "aggressor", "demand", "slicing", "stretch", "kappa", "pressure"}),
    ),
    (
        "interconnect",
        frozenset({"interconnect", "communication", "collective", "link", "links", "network", "bus", "algbw", "busbw",
                   "message", "hop", "ring", "tree", "rank", "allreduce", "latency_per_hop", "alpha", "beta"}),
    ),
    ("variability", frozenset({"misfit", "repeat", "spread", "noise", "variance", "campaign", "sigma", "tau"})),
    ("movement", frozenset({"transfer", "host", "h2d", "d2h", "movement", "gather", "scatter", "access", "stride"})),
    ("overhead", frozenset({"overhead", "launch", "dispatch", "allocation", "compile", "compilation", "startup"})),
    ("memory", frozenset({"bandwidth", "memory", "cache", "plateau", "latency", "dram", "level", "capacity"})),
    ("compute", frozenset({"compute", "rate", "peak", "flops", "throughput"})),
)  # fmt: skip

_UNITS: Mapping[str, Section] = {"FLOP/s": "compute", "B/s": "memory", "s": "overhead", "B": "memory"}


def section_of(name: str, unit: str, model: str = "") -> Section:
    """Section of a parameter.

    Parameters
    ----------
    name
        Its slug, such as ``compute_rate``.
    unit
        Its unit: decides where the name says nothing.
    model
        Name of the model: a model of contention or communication puts there what nothing else claims.
    """
    words = set(re.split(r"[^a-z0-9]+", name.lower()))
    for section, known in _WORDS:
        if words & known:
            return section
    for section, known in _WORDS[:2]:
        if set(re.split(r"[^a-z0-9]+", model.lower())) & known:
            return section
    return _UNITS.get(unit, "other")
