"""What a data set is: somebody's published measurements, brought into the measurement table, traceably.

A data set is a small class registered under the entry-point group ``bayesperf.datasets``; other people's packages
register theirs the same way::

    [project.entry-points."bayesperf.datasets"]
    mine = "mypackage.mine:Mine"

It names its source, yields rows in the contract's columns, and lists the rules that mark its bad rows. Finding,
downloading, hashing, checking and flagging is done for it (`bayesperf.datasets`).
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from bayesperf.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["Dataset", "Files", "Rule", "Source", "SourceFile", "apply_rules", "choose"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set comes from.

    Parameters
    ----------
    repository
        Address of the public repository, such as ``https://github.com/owner/name``; empty for data that is shipped.
    commit
        Full hash of the commit that is read.
    licence
        SPDX identifier of the licence the data is under.
    citation
        What to cite.
    folder
        Name of the source's folder under ``upstream/`` of a local copy (``BAYESPERF_DATA``).
    urls
        Templates of the address of one file, tried in order, with ``{path}`` for its path in the repository.
    """

    repository: str
    commit: str
    licence: str
    citation: str
    folder: str
    urls: tuple[str, ...] = ()

    def record(self) -> dict[str, str]:
        """Return the facts that go into provenance."""
        facts = asdict(self)
        return {name: facts[name] for name in ("repository", "commit", "licence", "citation")}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source, at hand.

    Parameters
    ----------
    path
        Path inside the source's repository, with forward slashes.
    local
        Where it lies on this machine.
    sha256
        Hash of what lies there.
    matches_source
        Whether that is the source's own file at the pinned commit; None where the source's hash is not known.
    """

    path: str
    local: Path
    sha256: str
    matches_source: bool | None


class Files(Protocol):
    """Gives a data set the files of its source, from a local copy, the cache or the network."""

    def paths(self, *patterns: str) -> list[str]:
        """Paths that match one of the shell-style patterns, sorted; fetches nothing. ``*`` also matches ``/``.

        Raises
        ------
        InputError
            There is none; the message says both remedies.
        """

    def get(self, path: str) -> SourceFile:
        """Return one file, downloading it if need be.

        Raises
        ------
        InputError
            It can neither be found nor downloaded; the message says both remedies.
        """


@dataclass(frozen=True, slots=True)
class Rule:
    """Marks rows; what it does is recorded with the table.

    Parameters
    ----------
    flag
        Label put into the rows' ``flags``.
    why
        What is wrong with such rows, in one sentence; printed and recorded.
    test
        Table of n rows to a boolean array, shape (n,): True where the rule applies.
    exclude
        Whether fits leave such rows out; if not, the flag only informs.
    """

    flag: str
    why: str
    test: Callable[[pd.DataFrame], np.ndarray]
    exclude: bool = True


class Dataset(ABC):
    """One data set. Leaf classes define `name`, `source`, `rows` and `card`, and `rules` where rows are bad."""

    name: ClassVar[str]
    source: ClassVar[Source]

    def registry(self) -> Mapping[str, str]:
        """SHA-256 of the source's own files, {path: hash}. Only files named here are downloaded."""
        return {}

    @abstractmethod
    def rows(self, files: Files) -> pd.DataFrame:
        """Rows in the contract's columns, with ``provenance_id`` left out and a column ``file`` (the source's path).

        Further keyword-only parameters are the data set's options; each needs a default.
        """

    @abstractmethod
    def card(self) -> str:
        """Text of the card (Markdown): source, commit, licence, citation, units, statistic, flaws, formulas, counts."""

    def rules(self) -> Iterable[Rule]:
        """Rules that mark bad rows, beside the physical ceilings, which are always applied."""
        return ()

    def options(self) -> dict[str, Any]:
        """Options of `rows` and their defaults."""
        parameters = inspect.signature(self.rows).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def choose(what: str, wanted: Iterable[str] | str | None, known: Iterable[str]) -> list[str]:
    """Return the wanted ones of the known names, in the known order; None means all.

    Raises
    ------
    InputError
        A name that is not known; the message lists those that are.
    """
    known = list(known)
    if wanted is None:
        return known
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    unknown = [n for n in names if n not in known]
    if unknown or not names:
        given = ", ".join(map(repr, unknown)) or "an empty list"
        raise InputError(f"{what}: {given} is not among: {', '.join(known)}")
    return [n for n in known if n in names]


def apply_rules(table: pd.DataFrame, rules: Iterable[Rule]) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Mark the rows each rule finds with its flag and, where it excludes, with ``excluded``.

    Returns
    -------
    table
        With ``flags`` (object, None where a row has none).
    applied
        One record per rule that found rows: ``flag``, ``why``, ``excluded``, ``rows`` (their number).
    """
    # Heavy modules load when needed: this module is imported by everything that lists plug-ins.
    from bayesperf.schema import EXCLUDED, with_flags

    applied = []
    for rule in rules:
        mask = rule.test(table)
        if mask.any():
            table = with_flags(table, mask, rule.flag, *([EXCLUDED] if rule.exclude else []))
            applied.append({"flag": rule.flag, "why": rule.why, "excluded": rule.exclude, "rows": int(mask.sum())})
    return table, applied
