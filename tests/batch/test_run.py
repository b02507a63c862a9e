"""A batch on this machine: resumed, isolated, published whole, summed up."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.batch.folder import MARK, Folder
from bayesperf.errors import InputError

Write = Callable[..., Path]
ALL = ("good", "raise", "unconverged", "shifted warn")


def test_one_failure_does_not_end_the_others(write: Write, quick: Any) -> None:
    found = bp.batch(write(*ALL), progress=False)
    assert [job["status"] for job in found.jobs] == ["done", "failed", "unconverged", "done"]
    assert found.exit_code() == 1
    failed = found.jobs[1]
    assert failed["reason"].startswith("ZeroDivisionError: a model of <b>somebody</b> (in steps, quickjobs.py line")
    log = (found.folder / failed["folder"] / "log.txt").read_text()
    assert "Traceback" in log
    assert "ZeroDivisionError" in log
    warned = found.jobs[3]
    assert warned["warnings"] == 1
    assert "something to know" in (found.folder / warned["folder"] / "log.txt").read_text()


def test_exit_codes(write: Write, quick: Any) -> None:
    good = bp.batch(write("good"), progress=False)
    assert (good.exit_code(), good.exit_code(strict=True), good.any_fails) == (0, 0, False)
    shifted = bp.batch(write("good", "shifted"), progress=False)
    assert (shifted.exit_code(), shifted.exit_code(strict=True), shifted.any_fails) == (0, 3, True)
    assert bp.batch(write("shifted", "raise"), progress=False).exit_code(strict=True) == 1


def statuses(found: Any) -> list[tuple[str, bool]]:
    return [(job["status"], job.get("kept", False)) for job in found.jobs]


def test_what_is_complete_is_not_run_again(write: Write, quick: Any) -> None:
    first = bp.batch(write("good", "unconverged", "raise"), progress=False)
    again = bp.batch(write("good", "unconverged", "raise"), progress=False)
    # Failed jobs are tried again; an unconverged fit would come out the same.
    assert statuses(again) == [("done", True), ("unconverged", True), ("failed", False)]
    assert again.exit_code() == 1
    assert [j["files"] for j in first.jobs[:2]] == [j["files"] for j in again.jobs[:2]]
    reseeded = bp.batch(write("good"), progress=False, seed=5)
    assert statuses(reseeded) == [("done", False)]
    assert statuses(bp.batch(write("good", extra="[defaults]\ndraws = 7\n"), progress=False)) == [("done", False)]


def _cut(folder: Path) -> None:
    (folder / "profile.nc").write_bytes((folder / "profile.nc").read_bytes()[:-1])


def _change(folder: Path) -> None:
    (folder / "profile.nc").write_bytes((folder / "profile.nc").read_bytes()[::-1])


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "whole": lambda folder: None,
    "cut": _cut,
    "changed": _change,
    "gone": lambda folder: (folder / "profile.nc").unlink(),
    "unrecorded": lambda folder: (folder / "job.json").unlink(),
    "torn": lambda folder: (folder / "job.json").write_text('{"key": '),
    "foreign": lambda folder: (folder / "job.json").write_text("[1]"),
    "renamed": lambda folder: folder.rename(folder.with_name("other")),
}


def test_what_is_damaged_is_run_again(write: Write, quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write(*DAMAGE)
    first = bp.batch(config, progress=False)
    for job in first.jobs:
        DAMAGE[job["name"]](first.folder / job["folder"])
    again = bp.batch(config, progress=False)
    assert statuses(again) == [("done", name == "whole") for name in DAMAGE]
    assert all(Folder(again.folder).finished(job["id"], job["key"]) for job in again.jobs)
    for module in ("plan", "job"):
        monkeypatch.setattr(f"bayesperf.batch.{module}.__version__", "9.9")
    assert statuses(bp.batch(config, progress=False)) == [("done", False)] * len(DAMAGE)


def test_ctrl_c_keeps_what_was_finished(write: Write, quick: Any) -> None:
    config = write("good", "interrupt", "other")
    with pytest.raises(KeyboardInterrupt):
        bp.batch(config, progress=False)
    root = config.with_suffix("")
    document = json.loads((root / "summary.json").read_text())
    assert [job["status"] for job in document["jobs"]] == ["done", "not run", "not run"]
    assert "2 were not run" in (root / "summary.html").read_text()
    assert not (root / "work").exists()
    assert statuses(bp.batch(config, progress=False)) == [("done", True), ("done", False), ("done", False)]


def test_an_attempt_that_was_never_published_is_cleared_away(write: Write, quick: Any) -> None:
    config = write("good")
    left = config.with_suffix("") / "work" / "good-0123456789ab"
    left.mkdir(parents=True)
    (left / "job.json").write_text("{}")
    (config.with_suffix("") / MARK).touch()
    found = bp.batch(config, progress=False)
    assert {path.name for path in found.folder.iterdir()} == {
        MARK, "jobs", "summary.html", "summary.csv", "summary.json",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["work", "jobs", "inputs", "summary.csv"])
def test_files_of_somebody_else_are_left_alone(write: Write, quick: Any, tmp_path: Path, name: str) -> None:
    config = write("good")
    mine = tmp_path / name / "thesis.txt" if "." not in name else tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("years of work")
    with pytest.raises(InputError, match=rf"holds {name}, which no batch has written.*--out"):
        bp.batch(config, out=tmp_path, progress=False)
    assert mine.read_text() == "years of work"
    assert not (tmp_path / MARK).exists()


def test_a_new_outcome_replaces_the_old_one_as_a_whole(write: Write, quick: Any) -> None:
    config = write("good")
    folder = bp.batch(config, progress=False).folder / "jobs" / "good"
    (folder / "validation.html").write_text("of a run with other settings")
    again = bp.batch(config, progress=False, seed=9)
    assert (
        {path.name for path in folder.iterdir()}
        == {"job.json", "log.txt", "profile.nc"}
        == {
            "job.json",
            *again.jobs[0]["files"],
        }
    )


def test_two_batches_never_write_into_one_folder(write: Write, quick: Any) -> None:
    config = write("good")
    with Folder(config.with_suffix("")).opened(), pytest.raises(InputError, match="another batch is writing here"):
        bp.batch(config, progress=False)


def test_inputs_that_change_meanwhile_are_noticed(write: Write, quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write("first", "second")
    real = quick.quick

    def meddling(task: Any, contents: Any = None) -> Any:
        record = real(task, contents)
        (config.parent / "t.csv").write_text("target,op,flops,bytes,time_s\na,m,1,1,1\n")
        return record

    monkeypatch.setattr("bayesperf.batch.run.run_job", meddling)
    found = bp.batch(config, progress=False)
    assert [job["status"] for job in found.jobs] == ["done", "failed"]
    assert "has changed since the batch was planned" in found.jobs[1]["reason"]


def test_the_page_escapes_what_files_say_and_links_to_every_output(write: Write, quick: Any) -> None:
    config = write("shifted", "raise", extra='title = "<img src=x onerror=alert(1)>"\n')
    found = bp.batch(config, progress=False)
    page = (found.folder / "summary.html").read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>somebody" not in page
    assert "&lt;b&gt;somebody&lt;/b&gt;" in page
    assert "+28.4 % [+22.1, +35.0]" in page
    for job in found.jobs:
        for name in job["files"]:
            assert f'href="jobs/{job["id"]}/{name}"' in page
            assert (found.folder / "jobs" / job["id"] / name).is_file()
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")


def test_the_table_has_a_row_for_each_job(write: Write, quick: Any) -> None:
    found = bp.batch(write(*ALL), progress=False)
    written = pd.read_csv(found.folder / "summary.csv")
    assert list(written["job"]) == list(found.table["job"]) == list(ALL)
    assert list(written["fails"].fillna(-1)) == [0, -1, 0, 1]
    assert list(written["failed_checks"].fillna("")) == ["", "", "R-hat", ""]
    assert list(found.table["converged"].fillna(False)) == [True, False, False, True]


def test_several_processes_survive_the_death_of_one(write: Write, quick: Any) -> None:
    found = bp.batch(write("kill once", "one slow", "two slow"), workers=2, progress=False)
    assert [job["status"] for job in found.jobs] == ["done", "done", "done"]
    assert os.getpid() not in {job["process"] for job in found.jobs}
    assert not (found.folder / "work").exists()


@pytest.mark.slow
def test_a_job_that_ends_its_process_every_time_fails_alone(write: Write, quick: Any) -> None:
    found = bp.batch(write("kill", "one slow", "two slow"), workers=2, progress=False)
    assert [job["status"] for job in found.jobs] == ["failed", "done", "done"]
    assert "its process was ended by SIGKILL, 2 times" in found.jobs[0]["reason"]


def test_a_mapping_is_a_configuration_too(
    write: Write, quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write()
    monkeypatch.chdir(tmp_path)
    config = {"job": [{"data": Path("t.csv"), "name": "good"}]}
    assert bp.batch(config, out=tmp_path / "here", progress=False).exit_code() == 0
    with pytest.raises(InputError, match="say where to write"):
        bp.batch(config, progress=False)
    with pytest.raises(InputError, match="leave out --workers"):
        bp.batch(config, out="here", scheduler="tcp://127.0.0.1:1", workers=2)


def test_a_folder_moved_elsewhere_is_still_complete(write: Write, quick: Any, tmp_path: Path) -> None:
    config = write("good")
    found = bp.batch(config, progress=False)
    shutil.move(found.folder, tmp_path / "moved")
    assert statuses(bp.batch(config, out=tmp_path / "moved", progress=False)) == [("done", True)]
