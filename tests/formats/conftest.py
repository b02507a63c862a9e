"""Importing fixtures of the formats' tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayesperf.formats import ImportResult, import_files

FIXTURES = Path(__file__).parent / "fixtures"

Read = Callable[..., ImportResult]


@pytest.fixture
def fixture_file() -> Callable[[str], Path]:
    """Path of a fixture by its name."""
    return lambda name: FIXTURES / name


@pytest.fixture
def read() -> Read:
    """Import one fixture by its name."""

    def imported(form: str, name: str, **options: Any) -> ImportResult:
        if "mapping" in options:
            options["mapping"] = FIXTURES / options["mapping"]
        return import_files(form, [FIXTURES / name], **options)

    return imported


@pytest.fixture
def read_text(tmp_path: Path) -> Read:
    """Import text as if it were a file."""

    def imported(form: str, content: str | bytes, name: str = "log.txt", **options: Any) -> ImportResult:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return import_files(form, [path], **options)

    return imported


@pytest.fixture
def sample() -> Callable[[str], Path]:
    """Path of a sample of the public data at hand; skips where there is none."""
    root = os.environ.get("BAYESPERF_DATA")
    folder = Path(root) / "formats" if root else None

    def find(name: str) -> Path:
        if folder is None or not (folder / name).is_file():
            pytest.skip("BAYESPERF_DATA has no formats/" + name)
        return folder / name

    return find
