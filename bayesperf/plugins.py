"""Probes, models, formats and data sets are found through entry points, ours and other people's alike.

A broken plug-in warns by name and the rest still work; an unknown name lists what is installed.
"""

from __future__ import annotations

import functools
import warnings
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from bayesperf.errors import InputError, UnknownNameError

__all__ = ["GROUPS", "available", "load", "load_all"]

GROUPS = {
    "probe": "bayesperf.probes",
    "model": "bayesperf.models",
    "format": "bayesperf.formats",
    "dataset": "bayesperf.datasets",
}


NEEDED = {"probe": ("ops", "configurations", "work"), "model": ("encode", "build", "predict")}
"""What tells a plug-in from anything else that an entry point may name by mistake."""


@functools.cache
def _entry_points(kind: str) -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    # Ours first: what others install does not change what our suites measure.
    for point in sorted(entry_points(group=GROUPS[kind]), key=lambda p: (p.name, not _is_ours(p), p.value)):
        if point.name in found and found[point.name].value != point.value:
            warnings.warn(
                f"{kind} {point.name!r} is registered twice ({found[point.name].value} and {point.value}); "
                f"the first is used: uninstall or rename one",
                stacklevel=3,
            )
            continue
        found[point.name] = point
    return found


def _is_ours(point: EntryPoint) -> bool:
    return point.dist is not None and point.dist.name == "bayesperf"


def available(kind: str) -> dict[str, str]:
    """Names of the installed plug-ins of a `kind` and where each lives, without loading any.

    Parameters
    ----------
    kind
        ``"probe"``, ``"model"``, ``"format"`` or ``"dataset"``.
    """
    return {name: point.value for name, point in _entry_points(kind).items()}


def load(kind: str, name: str) -> Any:
    """Load one plug-in.

    Raises
    ------
    UnknownNameError
        No plug-in has that name; the message lists those that exist, nearest first.
    InputError
        The plug-in exists but cannot be loaded; the message says why.
    """
    points = _entry_points(kind)
    if name not in points:
        raise UnknownNameError(kind, name, points)
    point = points[name]
    try:
        loaded = point.load()
    # Third-party code may raise anything; the message says whose fault it is.
    except Exception as error:
        raise InputError(
            f"{kind} {name!r} ({point.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    lacking = [attribute for attribute in NEEDED.get(kind, ()) if not hasattr(loaded, attribute)]
    if lacking:
        raise InputError(
            f"{kind} {name!r} ({point.value}) is no {kind}: a {type(loaded).__name__} without {', '.join(lacking)}; "
            f"its entry point should name {'an instance of Probe' if kind == 'probe' else 'a class'}"
        )
    return loaded


def load_all(kind: str) -> dict[str, Any]:
    """Load every plug-in of a `kind`; a broken one warns by name and is left out."""
    loaded = {}
    for name in _entry_points(kind):
        try:
            loaded[name] = load(kind, name)
        except InputError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
    return loaded
