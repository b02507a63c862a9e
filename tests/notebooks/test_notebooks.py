"""Notebooks are committed without outputs, and stand on the public API; `execute.py` beside this runs them."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

PUBLIC = {"bayesperf", "bayesperf.measure.variance", "bayesperf.models.contention", "bayesperf.validation.moved"}
"""What a notebook may import of ours: the package, and what the documents name by its module."""


def cells(path: Path, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == kind]


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_there_are_five() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_and_no_machine_in_it(path: Path) -> None:
    notebook = read(path)
    for cell in notebook["cells"]:
        assert set(cell) <= {"cell_type", "execution_count", "id", "metadata", "outputs", "source"}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_imports_the_public_api_alone(path: Path) -> None:
    for source in cells(path, "code"):
        for node in ast.walk(ast.parse(source)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith("bayesperf") or name in PUBLIC, name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_narrated_and_has_a_small_version(path: Path) -> None:
    text, code = cells(path, "markdown"), cells(path, "code")
    assert text[0].startswith(f"# {int(path.stem[:2])}. ")
    assert len(text) >= len(code) / 2
    assert 'SMALL = os.environ.get("BAYESPERF_NOTEBOOK") == "small"' in "\n".join(code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_links_lead_somewhere(path: Path) -> None:
    for source in cells(path, "markdown"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", source):
            assert (FOLDER / target).exists(), target
