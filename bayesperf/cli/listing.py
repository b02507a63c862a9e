"""``bayesperf list``: what is installed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from bayesperf.cli.options import Json
from bayesperf.cli.output import Output

__all__ = ["HELP", "Kind", "run"]

HELP = """List what is installed: probes, models, formats, data sets or suites.

Reads the metadata of installed packages, other people's plug-ins among them, and loads none of them.

\b
    bayesperf list probes
    bayesperf list suites --json
"""


class Kind(StrEnum):
    """What can be listed."""

    PROBES = "probes"
    MODELS = "models"
    DATASETS = "datasets"
    FORMATS = "formats"
    SUITES = "suites"


def run(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    json: Json = False,
) -> None:
    """List what is installed."""
    from bayesperf import plugins

    out = Output(json=json)
    if kind is Kind.SUITES:
        from bayesperf.measure.suites import available_suites

        what, found = "description", available_suites()
    else:
        what, found = "where", plugins.available(kind.value.removesuffix("s"))
    rows = [{"name": name, what: text} for name, text in found.items()]
    out.document(rows)
    if not rows:
        out.say(f"no {kind.value} are installed")
    else:
        out.table(["name", what], found.items())
