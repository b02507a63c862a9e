"""What verbs print: results on standard output, progress and notes on standard error."""

from __future__ import annotations

import io
import json
import logging
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

__all__ = ["Output", "plain", "visible"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All but tabs and line breaks."""

WIDE = 4096
"""Columns assumed when standard output is not a terminal: a pipe must never cut a cell."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a verb's words go.

    Parameters
    ----------
    json
        Print one JSON document and nothing else on standard output.
    quiet
        Print nothing but errors (and the document, where `json` asks for it).
    """

    json: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        # Long work reports through logging where standard error is no terminal.
        logger = logging.getLogger("bayesperf")
        logger.handlers = [logging.StreamHandler()]
        logger.setLevel(logging.ERROR if self.quiet else logging.INFO)
        logger.propagate = False
        # It names the variables it samples; ours says what is being fitted.
        logging.getLogger("pymc").setLevel(logging.WARNING)

    @property
    def progress(self) -> bool:
        """Whether long work should report its progress (on standard error)."""
        return not self.quiet

    def note(self, text: str) -> None:
        """Print a remark on standard error."""
        if not self.quiet:
            typer.echo(visible(text), err=True)

    def say(self, text: str = "") -> None:
        """Print a line of the result for people."""
        if not self.quiet and not self.json:
            typer.echo(visible(text))

    def document(self, document: Any) -> None:
        """Print the result for programs."""
        if self.json:
            typer.echo(json.dumps(plain(document), indent=2, allow_nan=False, ensure_ascii=False))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
        """Print a table for people; cells are text, never markup."""
        if self.quiet or self.json:
            return
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for name in columns:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*(Text(visible(human(cell))) for cell in row))
        if sys.stdout.isatty():
            Console(markup=False, highlight=False).print(table)
            return
        # A pipe gets whole lines without padding.
        buffer = io.StringIO()
        Console(file=buffer, width=WIDE, markup=False, highlight=False).print(table)
        typer.echo("\n".join(line.rstrip() for line in buffer.getvalue().splitlines()))


def visible(text: str) -> str:
    """Text with its control characters spelled out: names come from files, and must not steer a terminal."""
    return _CONTROL.sub(lambda found: repr(found.group())[1:-1], text)


def human(value: Any) -> str:
    """Format one cell: numbers to four digits, absent values as a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold; not-a-number and infinities become null."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return [plain(row) for row in value.to_dict(orient="records")]
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "tolist") and not isinstance(value, str | bytes):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return None if str(value) in ("<NA>", "NaT") else str(value)
