"""The exceptions of bayesperf.

::

    BayesperfError                   exit code 1
    ├── InputError (ValueError)      exit code 2: wrong usage or bad input
    │   ├── TableError               a table breaks the contract: names file, row and column
    │   ├── UnknownNameError         no such suite, probe, model, target: lists what exists, nearest first
    │   ├── MissingExtraError        an optional dependency is absent: names the install command
    │   └── UnsupportedFileError     not a file of the kind asked for, or of a newer version
    ├── MeasurementError             a point could not be measured; ``reason`` is a stable slug
    ├── CeilingError                 a rate above what is physically possible
    └── InferenceError               the posterior cannot be used as asked
        └── UnconvergedError         the diagnostics gate failed
"""

from __future__ import annotations

import difflib
import math
import numbers
import operator
from collections.abc import Iterable
from typing import SupportsIndex

__all__ = [
    "BayesperfError",
    "CeilingError",
    "InferenceError",
    "InputError",
    "MeasurementError",
    "MissingExtraError",
    "TableError",
    "UnconvergedError",
    "UnknownNameError",
    "UnsupportedFileError",
    "check_between",
    "check_counts",
    "nearest_first",
]


class BayesperfError(Exception):
    """Base of every error this package raises on purpose; the message is for the user."""

    exit_code = 1


class InputError(BayesperfError, ValueError):
    """Wrong usage or bad input."""

    exit_code = 2


class TableError(InputError):
    """A table breaks the contract.

    Parameters
    ----------
    problem
        What is wrong and what would be right.
    source
        File (or other origin) of the table.
    row
        Row number as the user sees it: the line of a CSV file, the 0-based row of other tables.
    column
        Column name.
    """

    def __init__(self, problem: str, *, source: str = "table", row: int | None = None, column: str | None = None):
        self.problem, self.source, self.row, self.column = problem, source, row, column
        where = [source]
        if row is not None:
            where.append(f"row {row}")
        if column is not None:
            where.append(f"column {column}")
        super().__init__(f"{', '.join(where)}: {problem}")


class UnknownNameError(InputError):
    """A name that is not known; the message lists the known ones, nearest first."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = ""):
        self.kind, self.name = kind, name
        self.known = nearest_first(str(name), known)
        listing = ", ".join(self.known) if self.known else "none"
        super().__init__(f"no {kind} named {name!r}; there are: {listing}" + (f". {hint}" if hint else ""))


class MissingExtraError(InputError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, package: str, install: str):
        super().__init__(f"{feature} needs {package}, which is not installed: {install}")


class UnsupportedFileError(InputError):
    """A file that is truncated, foreign, or written by a newer version."""


class MeasurementError(BayesperfError):
    """A point could not be measured.

    Parameters
    ----------
    reason
        Stable slug that goes into the failures table, such as ``folded``, ``nonlinear``, ``timeout``.
    detail
        What was seen and what to do.
    """

    def __init__(self, reason: str, detail: str):
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


class CeilingError(BayesperfError):
    """A rate above the physical ceiling of its target."""

    exit_code = 2


class InferenceError(BayesperfError):
    """The posterior cannot be computed or used as asked."""


class UnconvergedError(InferenceError):
    """The diagnostics gate failed: draws are not to be trusted without an explicit opt-in."""


def check_between(low: float, high: float, /, **values: object) -> None:
    """Refuse values, given by name, that are no numbers between `low` and `high`, both excluded.

    Raises
    ------
    InputError
        Names the value and what it must be.
    """
    for name, value in values.items():
        number = math.nan if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)
        if not low < number < high:
            raise InputError(f"{name} must be a number between {low:g} and {high:g}, not {value!r}")


def check_counts(least: int, /, **values: object) -> None:
    """Refuse values, given by name, that are not whole numbers of at least `least`.

    Raises
    ------
    InputError
        Names the value and what it must be.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < least:
            raise InputError(f"{name} must be a whole number of at least {least}, not {value!r}")


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Sort `known` by similarity to `name`, most similar first."""
    return sorted(known, key=lambda k: (-difflib.SequenceMatcher(None, name.lower(), k.lower()).ratio(), k))
