"""The documents as blocks of code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCUMENTS", "ROOT", "Block", "blocks", "calls", "outline"]

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCED = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block, and the comment on the line before it.

    Parameters
    ----------
    language
        ``python``, ``sh``, ``toml``, a directive of the site such as ``{toctree}``, or empty.
    text
        What it holds.
    mark
        ``not run: REASON``, ``ci: NAME`` (`.ci/run` or a test of its own runs it), or empty.
    line
        Where it begins in its document.
    """

    language: str
    text: str
    mark: str
    line: int


def blocks(document: Path) -> Iterator[Block]:
    """Yield the blocks of a document, in order."""
    text = document.read_text()
    for match in FENCED.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        yield Block(match["language"].strip(), match["text"], match["mark"] or "", line)


def outline(document: Path) -> str:
    """Path of a document in the repository: how tests name it."""
    return document.relative_to(ROOT).as_posix()


def calls(text: str) -> list[list[str]]:
    """Commands of a shell block, one list of words each, without comments."""
    lines = re.split(r"\n|&&", text.replace("\\\n", " "))
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]
