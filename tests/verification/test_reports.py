"""A report's document that was edited is caught, and the value is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bayesperf as bp
from bayesperf.cli import main
from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.report.capability import capability_document
from bayesperf.store import read_measurements
from bayesperf.verification.reports import check_report, different
from tests.verification.conftest import Case


@pytest.fixture
def report(case: Case, tmp_path: Path) -> Path:
    """The document of the profile, read beside its table."""
    profile, table = bp.load_profile(case.path), read_measurements(case.table)
    document = capability_document(profile, validation=profile.validate(table, seed=3), measurements=table, seed=3)
    path = tmp_path / "host.json"
    path.write_text(document.model_dump_json())
    return path


def test_edits_of_a_report_are_named(case: Case, report: Path) -> None:
    profile, whole = bp.load_profile(case.path), json.loads(report.read_text())
    assert check_report(profile, report, [case.table]).status == "passed"
    report.write_text(json.dumps({**whole, "converged": not whole["converged"]}))
    found = check_report(profile, report, [case.table])
    assert found.status == "failed"
    assert found.places[0].startswith("converged: ")

    def set_median(document: Any) -> None:
        document["parameters"][0]["posterior"]["median"] *= 1.001

    edits: dict[str, Callable[[Any], Any]] = {
        "parameters[0].posterior.median": set_median,
        "heldout[1].inside": lambda d: d["heldout"][1].update(inside=not d["heldout"][1]["inside"]),
        "regimes: 0 entries": lambda d: d["regimes"].clear(),
        "caveats": lambda d: d["caveats"].append("none"),
        "measurements[2].hlo_hash": lambda d: d["measurements"][2].update(hlo_hash="0"),
        "note: added to": lambda d: d.update(note=""),
        "gate: missing in": lambda d: d.pop("gate"),
    }
    for place, edit in edits.items():
        document = json.loads(json.dumps(whole))
        edit(document)
        (line,) = different(document, whole, "")
        assert place in line


def test_what_cannot_be_checked_is_said(case: Case, report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = bp.load_profile(case.path)
    found = check_report(profile, report, [])
    assert found.status == "not checked"
    assert "name their table" in found.detail
    document = json.loads(report.read_text())
    report.write_text(json.dumps({**document, "seed": None}))
    assert "seed" in check_report(profile, report, [case.table]).detail
    report.write_text("{")
    with pytest.raises(UnsupportedFileError, match="bayesperf report"):
        check_report(profile, report, [])
    with pytest.raises(InputError, match="no such file"):
        check_report(profile, report.with_name("absent.json"), [])
    report.write_text(json.dumps({**document, "title": "better"}))
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(case.path), str(case.table), "--report", str(report), "--no-refit"])
    assert ended.value.code == 1
    assert "'better'" in capsys.readouterr().err
