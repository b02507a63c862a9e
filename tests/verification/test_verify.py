"""What was tampered with is caught, and the place is named; what was not is let through."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesperf as bp
from bayesperf.cli import main
from bayesperf.errors import InputError
from bayesperf.prediction.profile import Profile, load_profile
from bayesperf.store import concat, read_measurements, write_measurements
from bayesperf.verification import Verification
from tests.verification.conftest import Case


def failures(found: Verification) -> list[str]:
    """Everything that failed, with its places."""
    return [
        f"{finding.what}: {finding.detail}: {' | '.join(finding.places)}"
        for finding in found.findings
        if finding.status == "failed"
    ]


def statuses(found: Verification) -> dict[str, str]:
    """Status by question."""
    return {finding.what: finding.status for finding in found.findings}


def test_what_was_not_touched_is_verified(case: Case) -> None:
    found = bp.verify(case.path, case.table)
    assert failures(found) == []
    assert found.passed
    assert set(statuses(found).values()) == {"passed"}
    assert len(statuses(found)) == 12
    assert found.numbers is not None
    assert len(found.numbers) == 6
    assert found.numbers["same"].all()
    assert (found.numbers["published"] != found.numbers["refit"]).all(), "the second fit drew other draws"
    assert "99%" in found.criterion


def test_a_profile_that_was_loaded_and_saved_again_is_verified(case: Case, tmp_path: Path) -> None:
    load_profile(case.path).save(tmp_path / "again.nc")
    assert bp.verify(tmp_path / "again.nc", case.table, refit=False).passed


def _scale(name: str, at: Any, factor: float) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        values = file[name][...]
        values[at] *= factor
        file[name][...] = values

    return change


def _swap(name: str, one: int, other: int) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        values = file[name][...]
        values[[one, other]] = values[[other, one]]
        file[name][...] = values

    return change


def _attribute(name: str, change: Callable[[str], str]) -> Callable[[h5py.File], None]:
    def edit(file: h5py.File) -> None:
        file.attrs[name] = change(file.attrs[name])

    return edit


@pytest.mark.parametrize(
    ("change", "places"),
    [
        (_scale("measurements/time_s", 3, 1 + 1e-12), ["fitted row 3 (", "variable measurements/time_s: changed"]),
        (_scale("posterior/log_bandwidth", (0, 0, 1), 1.001), ["variable posterior/log_bandwidth: changed"]),
        (_scale("prior/log_bandwidth", (0, 7, 0), 1.1), ["variable prior/log_bandwidth: changed"]),
        (_attribute("gate", lambda text: text.replace("1.01", "1.02")), ["attribute gate: changed"]),
        (_attribute("facts", lambda text: text.replace('"seed": 1', '"seed": 3')), ["attribute facts: changed"]),
        (_attribute("provenance", lambda t: t.replace("somewhere", "elsewhere")), ["attribute provenance", "record "]),
        (_attribute("digests", lambda text: "{}"), ["attribute digests: KeyError"]),
        (_attribute("digests", lambda text: text[:-9]), ["attribute digests: JSONDecodeError"]),
        (lambda file: file.attrs.__delitem__("digests"), ["attribute digests: absent"]),
        (_attribute("evidence_ids", lambda text: "[]"), ["row 0: the list of evidence says nothing"]),
        (_attribute("evidence_ids", lambda text: text[1:]), ["attribute evidence_ids: changed", "says nothing"]),
        (lambda file: file["posterior"].__delitem__("log_bandwidth"), ["variable posterior/log_bandwidth: absent"]),
        (lambda file: file.__delitem__("log_prior"), ["variable log_prior/log_bandwidth: absent"]),
        (_swap("measurements/time_s", 3, 4), ["fitted row 3 (", "fitted row 4 ("]),
    ],
    ids=[
        "row",
        "posterior",
        "prior",
        "gate",
        "facts",
        "provenance",
        "no digest",
        "cut digests",
        "digests taken out",
        "no evidence",
        "cut evidence",
        "variable taken out",
        "group taken out",
        "rows swapped",
    ],
)
def test_a_changed_profile_is_caught_and_the_place_is_named(
    case: Case, change: Callable[[h5py.File], None], places: list[str]
) -> None:
    case.edit(change)
    found = bp.verify(case.path, refit=False)
    assert not found.passed
    for place in places:
        assert any(place in line for line in failures(found)), failures(found)


def test_rows_that_are_coded_in_another_way_than_fitted_are_told(case: Case) -> None:
    """As when the installed model leaves rows out that the one which was fitted did not; nothing else can be asked."""
    with xr.open_datatree(case.path, engine="h5netcdf") as opened:
        tree = opened.load()
    tree["observed_data"] = xr.Dataset({"log_time": ("observation", np.zeros(3))})
    tree.to_netcdf(case.path, engine="h5netcdf")
    found = bp.verify(case.path, case.table)
    assert statuses(found)["the rows make the observations that were fitted"] == "failed"
    assert any("than were fitted (3)" in line for line in failures(found))
    assert found.numbers is None


def test_rows_that_were_taken_out_of_a_profile_are_missed(case: Case, tmp_path: Path) -> None:
    profile = load_profile(case.path)
    rows = profile.table.drop(index=[4]).reset_index(drop=True)
    Profile(dataclasses.replace(profile.inference, rows=rows)).save(tmp_path / "fewer.nc")
    (line,) = failures(bp.verify(tmp_path / "fewer.nc", refit=False))
    assert "data fingerprint" in line


# Tables.


def _rewrite(case: Case, change: Callable[[pd.DataFrame], None], *, ours: bool) -> None:
    """Change a table and write it as pandas does, or as we do."""
    table = read_measurements(case.table)
    change(table)
    if ours:
        write_measurements(table, case.table)
    else:
        table.attrs = {}
        table.to_parquet(case.table)


@pytest.mark.parametrize("ours", [True, False], ids=["written by us", "written by pandas"])
def test_a_changed_fitted_row_is_caught_with_its_column(case: Case, ours: bool) -> None:
    def change(table: pd.DataFrame) -> None:
        table["time_s"] = table["time_s"].where(table.index != 7, table["time_s"] * 0.9)

    _rewrite(case, change, ours=ours)
    found = bp.verify(case.path, case.table, refit=False)
    assert not found.passed
    name = read_measurements(case.table)["measurement_id"].iloc[7]
    assert any(f"row 7 of host.parquet ({name}), column time_s" in line for line in failures(found))


@pytest.mark.parametrize("column", ["samples_s", "time_s", "campaign"])
def test_a_changed_row_that_was_not_fitted_is_caught_by_its_id(case: Case, column: str) -> None:
    def change(table: pd.DataFrame) -> None:
        assert table["role"].iloc[5] == "heldout"
        old = table[column].iloc[5]
        table.at[5, column] = "wednesday" if column == "campaign" else np.multiply(old, 0.5)

    _rewrite(case, change, ours=False)
    (line,) = failures(bp.verify(case.path, case.table, refit=False))
    assert line.startswith("ids of host.parquet")
    assert "row 5 of host.parquet" in line


def test_missing_rows_are_named_and_spare_ones_told(case: Case, tmp_path: Path) -> None:
    table = read_measurements(case.table)
    write_measurements(table.drop(index=[2]).reset_index(drop=True), tmp_path / "fewer.parquet")
    (line,) = failures(bp.verify(case.path, tmp_path / "fewer.parquet", refit=False))
    assert "1 of 20 are not" in line
    assert f"fitted row 2 ({table['measurement_id'].iloc[2]}) is in no table" in line

    more = table.assign(role="fit")
    write_measurements(more, tmp_path / "more.parquet")
    found = {f.what: f for f in bp.verify(case.path, tmp_path / "more.parquet", refit=False).findings}
    assert "4 rows are neither held out nor excluded" in found["rows of the tables that were not fitted"].detail


def test_a_csv_without_ids_is_matched_by_content(case: Case, tmp_path: Path) -> None:
    plain = read_measurements(case.table)
    plain = plain.drop(columns=["measurement_id", "provenance_id", "samples_s", "samples_iterations"])
    plain.to_csv(tmp_path / "table.csv", index=False)
    from tests.verification.conftest import fitted

    rows = read_measurements(tmp_path / "table.csv")
    fitted(rows[rows["role"] == "fit"].reset_index(drop=True), 3).save(tmp_path / "csv.nc")
    assert bp.verify(tmp_path / "csv.nc", tmp_path / "table.csv", refit=False).passed
    plain.loc[3, "bytes"] = 12345.0
    plain.to_csv(tmp_path / "table.csv", index=False)
    (line,) = failures(bp.verify(tmp_path / "csv.nc", tmp_path / "table.csv", refit=False))
    assert "nearest: row 5 of table.csv, with bytes 12345" in line


def test_renamed_and_merged_files_are_not_accused(case: Case, tmp_path: Path) -> None:
    shutil.copy(case.table, tmp_path / "renamed.parquet")
    assert bp.verify(case.path, tmp_path / "renamed.parquet", refit=False).passed
    other = read_measurements(case.table).drop(columns="measurement_id").assign(campaign="friday", role="heldout")
    write_measurements(other, tmp_path / "friday.parquet")
    merged = concat([read_measurements(case.table), read_measurements(tmp_path / "friday.parquet")])
    write_measurements(merged, tmp_path / "merged.parquet")
    found = bp.verify(case.path, tmp_path / "merged.parquet", refit=False)
    assert found.passed
    assert statuses(found)["ids of merged.parquet"] == "not checked"


# The second fit.


def test_numbers_that_do_not_follow_from_the_rows_are_caught_though_every_digest_agrees(
    case: Case, tmp_path: Path
) -> None:
    forged = load_profile(case.path)
    posterior = forged.tree["posterior"].to_dataset()
    posterior["log_bandwidth"].values[..., 1] += 0.02
    forged.tree["posterior"] = xr.DataTree(posterior)
    forged.save(tmp_path / "forged.nc")
    assert bp.verify(tmp_path / "forged.nc", case.table, refit=False).passed
    found = bp.verify(tmp_path / "forged.nc", case.table)
    (line,) = failures(found)
    assert "bandwidth of copy on old-gpu, 50% quantile" in line
    assert found.numbers is not None
    assert set(found.numbers.loc[~found.numbers["same"], "target"]) == {"old-gpu"}


def test_a_second_fit_that_does_not_converge_accuses_only_of_gross_differences(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayesperf.inference.diagnostics import Check
    from bayesperf.verification import refit

    drawn = refit._sample
    failed = [Check("R-hat", 1.2, 1.01, False, "log_bandwidth", "sample longer")]
    monkeypatch.setattr(refit, "_sample", lambda *args: (drawn(*args)[0], failed))
    found = bp.verify(case.path)
    assert found.passed
    assert statuses(found)["the published numbers come out again"] == "not checked"
    forged = load_profile(case.path)
    forged.tree["posterior"]["log_bandwidth"] = forged.tree["posterior"]["log_bandwidth"] + 0.5
    forged.save(tmp_path / "forged.nc")
    assert not bp.verify(tmp_path / "forged.nc").passed


# Files of before, and bad input.


def _cut(case: Case) -> None:
    case.path.write_bytes(case.path.read_bytes()[:-2000])


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        lambda case: case.path.write_bytes(b""),
        lambda case: case.path.write_text("no NetCDF"),
        lambda case: case.edit(_attribute("facts", lambda text: text[:-5])),
        lambda case: case.edit(_attribute("gate", lambda text: '[{"name": "R-hat"}]')),
        lambda case: case.edit(lambda file: file.attrs.__delitem__("provenance")),
        lambda case: case.edit(lambda file: file.__delitem__("measurements")),
        lambda case: case.edit(lambda file: file["measurements"].__delitem__("op")),
        lambda case: case.edit(lambda file: file.__delitem__("posterior")),
    ],
    ids=["cut", "empty", "text", "facts", "gate", "no provenance", "no rows", "no column", "no posterior"],
)
def test_what_is_too_damaged_to_be_read_is_said_to_be(case: Case, damage: Callable[[Case], Any]) -> None:
    damage(case)
    try:
        found = bp.verify(case.path, case.table)
    except InputError as error:
        assert str(case.path) in str(error)  # noqa: PT017
    else:
        assert not found.passed


def test_a_failed_gate_told_as_passed_is_caught_though_every_digest_agrees(case: Case, tmp_path: Path) -> None:
    forged = load_profile(case.path)
    drawn = forged.tree["posterior"].to_dataset()
    drawn["log_bandwidth"].values[0] += 0.05
    forged.tree["posterior"] = xr.DataTree(drawn)
    forged.save(tmp_path / "forged.nc")
    lines = failures(bp.verify(tmp_path / "forged.nc", case.table, refit=False))
    line = next(line for line in lines if line.startswith("the diagnostics come out again"))
    assert "R-hat: stated 1" in line
    assert "(failed, limit 1.01)" in line


def test_a_prior_that_makes_a_parameter_look_learned_is_caught(case: Case, tmp_path: Path) -> None:
    forged = load_profile(case.path)
    prior = forged.tree["prior"].to_dataset()
    forged.tree["prior"] = xr.DataTree(prior.assign(log_bandwidth=24.0 + 3.0 * (prior["log_bandwidth"] - 24.0)))
    forged.save(tmp_path / "forged.nc")
    assert bp.verify(tmp_path / "forged.nc", case.table, refit=False).passed
    (line,) = failures(bp.verify(tmp_path / "forged.nc", case.table))
    assert line.startswith("the prior comes out again")
    assert "5% quantile of the prior" in line


def test_bad_input_is_refused(case: Case, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        bp.verify(tmp_path / "absent.nc")
    with pytest.raises(InputError, match="path of a profile"):
        bp.verify(cast(Any, case.profile))
    with pytest.raises(InputError, match="no such file"):
        bp.verify(case.path, tmp_path / "absent.parquet", refit=False)


# The verb.


def run(capsys: pytest.CaptureFixture[str], *args: Any) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as exit_:
        main([str(a) for a in args])
    printed = capsys.readouterr()
    return int(exit_.value.code or 0), printed.out, printed.err


def test_the_verb_exits_by_what_it_found(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "verify", case.path, case.table)
    assert code == 0
    assert "verified" in out
    case.edit(_scale("measurements/time_s", 3, 2.0))
    code, out, err = run(capsys, "verify", case.path, case.table, "--no-refit")
    assert code == 1
    assert "NOT what it says it is" in out
    assert "fitted row 3 (" in err
    code, out, _ = run(capsys, "verify", case.path, "--no-refit", "--json")
    document = json.loads(out)
    assert code == 1
    assert not document["passed"]
    assert {f["status"] for f in document["findings"]} == {"passed", "failed"}
    assert run(capsys, "verify", case.path, "absent.parquet")[0] == 2
