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

    def find(name: str) -> Path:
        reason = why_not(name)
        if reason is not None:
            pytest.skip(reason)
        return Path(os.environ["BAYESPERF_DATA"]) / "formats" / name

    return find


def why_not(name: str) -> str | None:
    """Why a sample of the public data is not at hand, or None where it is."""
    root = os.environ.get("BAYESPERF_DATA")
    if not root:
        return "BAYESPERF_DATA is not set: no local copies of the public data"
    return None if (Path(root) / "formats" / name).is_file() else f"BAYESPERF_DATA ({root}) has no formats/{name}"
