"""Why a test of public samples is skipped is said as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formats.conftest import why_not


def test_the_reason_tells_no_copies_from_an_absent_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BAYESPERF_DATA", raising=False)
    assert why_not("x.txt") == "BAYESPERF_DATA is not set: no local copies of the public data"
    monkeypatch.setenv("BAYESPERF_DATA", str(tmp_path))
    assert why_not("x.txt") == f"BAYESPERF_DATA ({tmp_path}) has no formats/x.txt"
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats" / "x.txt").touch()
    assert why_not("x.txt") is None
