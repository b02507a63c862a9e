"""The directive ``command-line``: a section for each verb of the command line, with the help that it prints itself."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any
from unittest.mock import patch

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from typer.main import get_command

from bayesperf.cli.app import build


def help_of(words: list[str]) -> str:
    """What ``bayesperf WORDS --help`` prints into a terminal of 100 columns."""
    printed = io.StringIO()
    with (
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
        patch.dict(os.environ, {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}),
    ):
        build()(args=[*words, "--help"], prog_name="bayesperf")
    return printed.getvalue().strip("\n")


class CommandLine(Directive):
    """Sections of all verbs, in the order of the help."""

    def run(self) -> list[nodes.Node]:
        """Make the sections."""
        verbs = list(get_command(build()).commands)  # type: ignore[attr-defined]  # The application is a group.
        found = [self._section("bayesperf", [])] + [self._section(f"bayesperf {verb}", [verb]) for verb in verbs]
        return list(found)

    def _section(self, title: str, words: list[str]) -> nodes.section:
        text = help_of(words)
        section = nodes.section("", nodes.title("", "", nodes.literal("", title)), ids=[nodes.make_id(title)])
        section["names"].append(nodes.fully_normalize_name(title))
        section += nodes.literal_block(text, text, language="text")
        self.state.document.note_implicit_target(section, section)
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
