from __future__ import annotations

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from bayesperf.characterize import Characterization, characterize, default_folder
from bayesperf.errors import UnknownNameError


@pytest.mark.parametrize(
    ("converged", "any_fails", "strict", "code"),
    [
        (True, False, False, 0),
        (True, True, False, 0),
        (True, False, True, 0),
        (True, True, True, 3),
        (True, None, True, 0),
        (False, True, True, 1),
        (False, False, False, 1),
    ],
)
def test_exit_codes(converged: bool, any_fails: bool | None, strict: bool, code: int) -> None:
    validation: Any = None if any_fails is None else SimpleNamespace(any_fails=any_fails)
    profile: Any = SimpleNamespace(converged=converged)
    found = Characterization(Path("out"), pd.DataFrame(), profile, validation)
    assert found.exit_code(strict=strict) == code


def test_the_files_are_three(tmp_path: Path) -> None:
    profile: Any = SimpleNamespace(converged=True)
    found = Characterization(tmp_path, pd.DataFrame(), profile, None)
    assert [file.name for file in found.files] == ["measurements.parquet", "profile.nc", "report.html"]


@pytest.mark.parametrize(("suite", "model"), [("tiny", "rooflin"), ("tinny", "roofline")])
def test_a_wrong_name_is_refused_before_anything_is_measured(tmp_path: Path, suite: str, model: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        characterize(suite, model=model, out=tmp_path / "out", progress=False)
    assert caught.value.known[0] in ("roofline", "tiny")
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_default_folder_names_target_and_day() -> None:
    name = default_folder().name
    assert name.startswith("bayesperf-")
    assert date.fromisoformat(name[-10:])
    assert len(name) > len("bayesperf--2026-01-01")
