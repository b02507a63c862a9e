"""What the documents promise: their commands exist, their lists agree with the packaging, nothing names a host."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

from bayesperf import schema
from bayesperf.cli import main
from tests.docs.pages import DOCUMENTS, ROOT, blocks, calls

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def texts(path: Path, language: str) -> list[str]:
    """Blocks of a language."""
    return [block.text for block in blocks(path) if block.language == language]


def commands() -> list[list[str]]:
    """Every call of our command line in the documents, once each."""
    found = [words[1:] for path in DOCUMENTS for text in texts(path, "sh") for words in calls(text)
             if Path(words[0]).name == "bayesperf"]  # fmt: skip
    return [list(words) for words in dict.fromkeys(map(tuple, found))]


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """Help of every verb that the documents call."""
    texts = {}
    for verb in {words[0] for words in commands()}:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
            main([verb, "--help"])
        assert not ended.value.code, f"the documents call `bayesperf {verb}`, which does not exist"
        texts[verb] = printed.getvalue()
    return texts


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_in_the_documents_exists(helps: dict[str, str], words: list[str]) -> None:
    for word in words[1:]:
        if word.startswith("-"):
            assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", helps[words[0]]), f"{words[0]} has no {word}"


def test_python_in_the_documents_is_python() -> None:
    found = [text for path in DOCUMENTS for text in texts(path, "python")]
    assert found
    for text in found:
        compile(text, "document", "exec")


@pytest.mark.parametrize("name", ["characterize", "test", "light"])
def test_the_readme_marks_the_commands_that_ci_runs(name: str) -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count(f"<!-- ci: {name} -->\n```sh\n") == 1


def test_the_light_install_holds_only_dependencies_and_no_inference() -> None:
    text = (ROOT / "README.md").read_text()
    light = text.partition("<!-- ci: light -->")[2].partition("```sh")[2].partition("```")[0]
    installed = set(light.partition("constraints.txt")[2].splitlines()[0].split())
    assert installed
    declared = {re.split(r"[<>=\[;]", d)[0] for d in PROJECT["project"]["dependencies"]}
    assert installed <= declared
    assert not installed & {"pymc", "nutpie", "arviz", "xarray"}


def test_constraints_are_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!+-]+", line) for line in lines)
    pinned = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in lines}
    extras = PROJECT["project"]["optional-dependencies"]
    needed = [*PROJECT["project"]["dependencies"], *extras["test"], *extras["docs"]]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[<>=\[;]", d)[0]).lower() for d in needed}
    assert names <= pinned, f"not pinned: {names - pinned}"


def test_versions_agree() -> None:
    version = PROJECT["project"]["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
    assert f'__version__ = "{version}"' in (ROOT / "bayesperf" / "__init__.py").read_text()


def test_the_table_in_the_documents_is_the_schema() -> None:
    lines = (ROOT / "docs" / "files.md").read_text().splitlines()
    expected = [f"| `{c.name}` | {c.unit} | {'yes' if c.required else 'no'} | {c.meaning} |" for c in schema.COLUMNS]
    assert [line for line in lines if line.startswith("| `")] == expected


def test_every_page_is_in_the_table_of_contents() -> None:
    index = ROOT / "docs" / "index.md"
    listed = {line for block in blocks(index) if block.language == "{toctree}" for line in block.text.splitlines()}
    pages = {
        path.relative_to(index.parent).with_suffix("").as_posix()
        for path in DOCUMENTS
        if path.is_relative_to(index.parent)
    }
    assert pages - {"index"} == {line for line in listed if line and not line.startswith(":")}


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
