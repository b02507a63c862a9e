"""Measurements that other people published, and this project's own, as the contract's measurement table.

``load("neusight")`` gives the table, ``card("neusight")`` says what its numbers are worth, ``targets()`` gives the
spec sheets, ``available()`` the names. Nothing heavy is imported until one of them is called.
"""

from __future__ import annotations

if __name__ != "bayesperf.datasets":
    # With the repository root on sys.path, somebody's `import datasets` must not pick up ours.
    raise ImportError("this folder is installed as bayesperf.datasets; import it under that name")

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["available", "card", "load", "options", "targets"]


def load(name: str, *, flagged: Literal["keep", "drop"] = "keep", **options: Any) -> pd.DataFrame:
    """Load a data set as a measurement table.

    Parameters
    ----------
    name
        Key of the data set; `available` lists them.
    flagged
        What becomes of rows that a rule finds bad. ``"keep"``: they stay, with the reason and ``excluded`` in
        ``flags``, and fits leave them out. ``"drop"``: they are left out here. Either way the rules and what they
        found are in ``attrs["rules"]`` and in the provenance.
    **options
        What the data set offers: `options` and its card say. Narrowing what is loaded also narrows what is downloaded.

    Returns
    -------
    DataFrame
        Columns as in `bayesperf.schema.COLUMNS`, SI units. ``attrs["provenance"]`` has, per source file, the
        repository, commit, licence, path and SHA-256; ``attrs["dataset"]`` the source; ``attrs["rules"]`` the rules.

    Raises
    ------
    UnknownNameError
        No such data set; lists those that are installed.
    InputError
        A wrong option, or a file that is neither at hand nor can be downloaded: says both remedies.
    """
    from bayesperf.datasets import loader

    return loader.load(name, flagged=flagged, options=options)


def card(name: str) -> str:
    """Return the text of a data set's card (Markdown).

    Raises
    ------
    UnknownNameError
        No such data set.
    """
    from bayesperf.datasets import loader

    return loader.dataset(name).card()


def options(name: str) -> dict[str, Any]:
    """Return the options `load` takes for a data set, with their defaults.

    Raises
    ------
    UnknownNameError
        No such data set.
    """
    from bayesperf.datasets import loader

    return loader.dataset(name).options()


def targets() -> pd.DataFrame:
    """Return the spec sheets of known devices, indexed by ``device``; columns as in `bayesperf.specs.read_targets`."""
    from bayesperf.datasets import loader

    return loader.targets()


def available() -> list[str]:
    """Return the names of the installed data sets, sorted; loads none."""
    from bayesperf.plugins import available as installed

    return sorted(installed("dataset"))
