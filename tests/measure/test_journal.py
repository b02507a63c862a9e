"""The journal survives a crash at any byte; foreign and damaged files are refused; a full disk loses nothing."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.measure.journal import Journal, exclusive, lock_path, read_journal


def write(path: Path, entries: int) -> None:
    journal = Journal(path, {"plan": {"a": 1}})
    for k in range(entries):
        journal.append({"type": "done", "point": str(k)})
    journal.close()


def test_entries_come_back(tmp_path: Path) -> None:
    write(tmp_path / "j", 3)
    journal = Journal(tmp_path / "j", {})
    assert journal.header["plan"] == {"a": 1}
    assert [e["point"] for e in journal.entries] == ["0", "1", "2"]
    journal.close()


def test_cut_at_any_byte_loses_at_most_the_last_entry(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, 3)
    whole = path.read_bytes()
    ends = [k + 1 for k, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        expected = sum(end <= cut for end in ends) - 1
        journal = Journal(path, {"plan": {"a": 1}})
        assert len(journal.entries) == max(0, expected)
        journal.append({"type": "done", "point": "new"})
        journal.close()
        found = read_journal(path)
        assert found is not None
        assert found[1][-1] == {"type": "done", "point": "new"}
        assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_no_journal_yet(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none") is None


@pytest.mark.parametrize("content", [b'{"kind": "other"}\n', b"PAR1\x00\n", b"a,b\n1,2\n", b"[1]\n"])
def test_foreign_file_is_refused_and_left_alone(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_bytes(content)
    with pytest.raises(UnsupportedFileError):
        Journal(path, {})
    assert path.read_bytes() == content


def test_damage_before_the_end_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b"garbage\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(UnsupportedFileError, match="line 2"):
        Journal(path, {})


def test_newer_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j").write_text('{"kind": "bayesperf-journal", "version": 99}\n')
    with pytest.raises(UnsupportedFileError, match="upgrade"):
        read_journal(tmp_path / "j")


def test_full_disk_keeps_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j"
    journal = Journal(path, {})
    journal.append({"type": "done", "point": "0"})

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="No space left"):
            journal.append({"type": "done", "point": "1"})
    journal.append({"type": "done", "point": "2"})
    journal.close()
    found = read_journal(path)
    assert found is not None
    assert [e["point"] for e in found[1]] == ["0", "2"]


def test_lock_excludes_and_is_given_back(tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    with exclusive(out), pytest.raises(InputError, match="another run"), exclusive(out):
        pass
    assert not lock_path(out).exists()
    with exclusive(out):
        pass


def test_stale_lock_file_of_a_killed_run_does_not_block(tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    lock_path(out).write_text("")
    with exclusive(out):
        pass


def test_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"), exclusive(tmp_path / "file" / "m.parquet"):
        pass
