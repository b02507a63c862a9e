"""Rendering: one HTML file with its style in it, every text escaped."""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from bayesperf.report import words
from bayesperf.report.basis import basis_words
from bayesperf.report.bottlenecks import ranges_words
from bayesperf.report.document import Interval
from bayesperf.report.parameters import bar
from bayesperf.store import atomic_write

__all__ = ["render", "write_page"]


@functools.cache
def _environment() -> Environment:
    folder = files("bayesperf.report") / "templates"
    sources = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    environment = Environment(
        loader=DictLoader(sources),
        # Always: names, paths and notes come from files that somebody else wrote.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "basis": basis_words,
        "bar": bar,
        "interval": _interval,
        "number": words.number,
        "percent": words.percent,
        "quantity": words.quantity,
        "ranges": ranges_words,
    }
    environment.globals["stylesheet"] = Markup(sources["style.css"])  # our own file
    return environment


def _interval(value: Interval, unit: str) -> str:
    if unit == "%":
        median, lower, upper = (words.number(100 * v, 2) for v in (value.median, value.lower, value.upper))
        return f"{median} % [{lower}, {upper}]"
    return words.interval(value.median, value.lower, value.upper, unit)


def render(template: str, **content: Any) -> str:
    """Render a template of this package.

    Raises
    ------
    jinja2.UndefinedError
        The content lacks something that the template names.
    """
    return _environment().get_template(template).render(**content)


def write_page(path: str | Path, page: str) -> None:
    """Write a page, atomically."""

    def write(temporary: Path) -> None:
        temporary.write_text(page, encoding="utf-8")

    atomic_write(path, write)
