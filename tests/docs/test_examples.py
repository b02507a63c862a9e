"""The examples of the documents run as they stand, page by page, in a folder that holds what they name."""

from __future__ import annotations

import functools
import re
import shutil
import types
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import bayesperf as bp
from bayesperf.cli import main
from bayesperf.store import read_workloads
from tests.docs.pages import DOCUMENTS, ROOT, Block, blocks, calls, outline

ELSEWHERE = {"docs/checks.md": "tests/checks/test_examples.py, on a model that is quicker to fit"}
"""Pages whose examples another test runs."""

LONG = {"characterize": "", "measure": "--dry-run", "batch": "--dry-run", "verify": "--no-refit"}
"""Verbs that take minutes, and the option with which they do not: so they run here. Without it tests/cli, tests/batch,
tests/verification and .ci/run run them."""

UNSAID = {"README.md": ("--target", "NAME")}
"""What a page leaves to the reader's own profile: which of several targets."""

ALLOWED = {"fit": {0, 1}, "update": {0, 1}, "validate": {0, 3}}
"""Exit codes that are findings, not failures."""

FILES = {"docs/suites.md": "mine.toml", "docs/import.md": "results.toml", "docs/batch.md": "fleet.toml"}
"""Under which name the page's commands read its TOML block."""

RUN = [
    path
    for path in DOCUMENTS
    if outline(path) not in ELSEWHERE and any(b.language in ("python", "sh") for b in blocks(path))
]


def is_skipped(block: Block) -> bool:
    """Whether a mark says that the block is not run here."""
    return block.mark.startswith("not run: ") or (block.mark.startswith("ci: ") and block.language == "sh")


def is_run(words: list[str]) -> bool:
    """Whether a command is run here."""
    return words[1] not in LONG or LONG[words[1]] in words


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the prepared folder, which is the current one."""
    copy = tmp_path / "here"
    shutil.copytree(prepared, copy)
    monkeypatch.chdir(copy)
    monkeypatch.syspath_prepend(str(copy))
    return copy


def names_of_the_reader(folder: Path) -> dict[str, Any]:
    """What an example takes for granted: objects that earlier pages have shown how to make."""
    profile, table = bp.load_profile(folder / "host.nc"), bp.read_measurements(folder / "host.parquet")
    workloads = read_workloads(folder / "workloads.csv")
    sizes = np.array([256.0, 512.0])
    return {
        "bp": bp,
        "profile": profile,
        "before": profile,
        "after": profile,
        "table": table,
        "workloads": workloads.assign(target="my-gpu"),
        "heldout": table[table["role"] == "heldout"],
        "stream": table[table["target"] == "my-gpu"].head(12).to_dict("records"),
        **{"m": sizes, "n": sizes, "flops": 2 * sizes**3, "bytes": 12 * sizes**2},
    }


def run(words: list[str], unsaid: tuple[str, ...]) -> int:
    """Run one command of ours in this process; returns its exit code."""
    more = unsaid if words[1] in ("predict", "explain") and not set(unsaid[:1]) & set(words) else ()
    with pytest.raises(SystemExit) as ended:
        main([*words[1:], *more])
    code = int(ended.value.code or 0)
    if code and words[1] in ("fit", "update"):
        # A gate that failed is an outcome; what the page goes on with is a profile that may speak.
        shutil.copy("profile.nc", words[words.index("--out") + 1])
    return code


# Plots of ArviZ, JAX and profilers may warn: that is not ours.
@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("no_sampler")
@pytest.mark.parametrize("document", RUN, ids=outline)
def test_the_examples_run(document: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("Agg")
    names = names_of_the_reader(folder)
    table = names["table"]
    monkeypatch.setattr(bp, "measure", lambda suite, **options: table)
    monkeypatch.setattr(bp, "verify", functools.partial(bp.verify, refit=False))
    for block in blocks(document):
        where = f"{outline(document)}, line {block.line}"
        if block.language == "toml" and outline(document) in FILES:
            (folder / FILES[outline(document)]).write_text(block.text)
        if is_skipped(block):
            continue
        if block.language == "python":
            # Blank lines before it: a traceback then shows the document's own line.
            exec(compile("\n" * block.line + block.text, str(document), "exec"), names)
        elif block.language == "sh":
            for words in calls(block.text):
                assert Path(words[0]).name == "bayesperf", f"{where}: mark it, or run it: {' '.join(words)}"
                if is_run(words):
                    code = run(words, UNSAID.get(outline(document), ()))
                    assert code in ALLOWED.get(words[1], {0}), f"{where}: {' '.join(words)}"


@pytest.mark.usefixtures(
    "no_sampler"
)  # Slow tests stand on what it replaces: this one notices at once when that moves.
def test_every_mark_says_why_and_no_language_escapes() -> None:
    for document in DOCUMENTS:
        for block in blocks(document):
            assert block.language in ("", "python", "sh", "toml", "text") or block.language.startswith("{"), block
            kind, _, reason = block.mark.partition(": ")
            assert not block.mark or (kind in ("not run", "ci") and reason), f"{outline(document)}, line {block.line}"


def test_every_verb_is_in_an_example() -> None:
    from typer.main import get_command

    from bayesperf.cli.app import build

    shown = {
        words[1]
        for document in DOCUMENTS
        for block in blocks(document)
        if block.language == "sh"
        for words in calls(block.text)
        if Path(words[0]).name == "bayesperf" and len(words) > 1
    }
    assert set(get_command(build()).commands) <= shown  # type: ignore[attr-defined]


def test_every_public_name_is_in_the_reference() -> None:
    told = (ROOT / "docs/reference/python.md").read_text()
    documented = set(re.findall(r"^\.\. auto\w+:: (\S+)$", told, re.MULTILINE))
    # Sub-packages that are documented function by function; the first two are called by their own names.
    inside = {"measure": "measure.run.measure", "batch": "batch.run.batch", "datasets": "datasets.load"}
    for name in bp.__all__:
        thing = getattr(bp, name)
        home = "" if isinstance(thing, str | types.ModuleType) else f"{thing.__module__}.{thing.__qualname__}"
        places = {f"bayesperf.{name}", home, f"bayesperf.{inside.get(name, '')}", f"bayesperf.verification.{name}"}
        assert name == "__version__" or places & documented, name
