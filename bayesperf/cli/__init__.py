"""The command line: one small file per verb; each parses, calls the library, prints."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process.

    Parameters
    ----------
    args
        Arguments without the program's name; those of the process when absent.
    """
    from bayesperf.cli.app import build

    build()(args=None if args is None else list(args), prog_name="bayesperf")
