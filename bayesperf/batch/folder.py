"""The folder of a batch: jobs are published whole, and known to be complete by their record."""

from __future__ import annotations

import fcntl
import json
import logging
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesperf.batch.inputs import sha256_of
from bayesperf.batch.job import FAILED, RECORD, write_record
from bayesperf.errors import InputError

__all__ = ["MARK", "Folder"]

log = logging.getLogger("bayesperf.batch")

MARK = ".bayesperf-batch"
"""File that says of a folder that a batch writes into it; locked meanwhile."""

OURS = ("jobs", "inputs", "work", "summary.html", "summary.csv", "summary.json")
"""Names that a batch writes, and replaces."""


class Folder:
    """A batch's outputs: ``jobs/<id>/`` for each job, ``inputs/`` for copies of data sets, ``work/`` for attempts.

    A folder with a batch's mark in it is a batch's: what lies there under these names may be replaced and removed. In
    any other folder these names must be free.

    Parameters
    ----------
    root
        Made when first needed.
    """

    def __init__(self, root: Path):
        self.root = root.resolve()
        self.jobs, self.copies, self.work = (self.root / name for name in ("jobs", "inputs", "work"))
        self.token = uuid.uuid4().hex

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder and hold it: of two batches that write into one, the second is refused.

        Raises
        ------
        InputError
            Another batch holds it, it cannot be made, or it holds files of somebody else under a batch's names.
        """
        self._refuse_others_files()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = (self.root / MARK).open("w")
        except OSError as error:
            raise InputError(
                f"{self.root}: cannot be written: {error.strerror or error}; give another folder with --out (out=)"
            ) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{self.root}: another batch is writing here; wait for it, or give --out") from None
            except OSError as error:
                log.warning("%s: cannot be locked (%s): run one batch at a time here", self.root, error.strerror)
            # Attempts that nobody published: of a batch that was ended.
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir()
            (self.work / "marker").write_text(self.token, encoding="utf-8")
            try:
                yield
            finally:
                shutil.rmtree(self.work, ignore_errors=True)

    def _refuse_others_files(self) -> None:
        """Nothing of a folder that no batch has written into may be replaced, let alone removed."""
        if (self.root / MARK).exists():
            return
        taken = [name for name in OURS if (self.root / name).exists()]
        if taken:
            raise InputError(
                f"{self.root}: holds {', '.join(taken)}, which no batch has written; a batch replaces files of that "
                "name: give a folder of its own with --out (out=)"
            )

    def where(self) -> dict[str, str]:
        """What a task needs to know of it."""
        return {"folder": str(self.work), "marker": str(self.work / "marker"), "token": self.token}

    def finished(self, id: str, key: str) -> dict[str, Any] | None:
        """Record of a job whose outputs are complete for these inputs, else None.

        Parameters
        ----------
        id
            Name of the job's folder.
        key
            Hash of what the outputs depend on.
        """
        folder = self.jobs / id
        try:
            record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            if record["key"] != key or record["status"] == FAILED:
                return None
            for name, file in record["files"].items():
                path = folder / name
                if path.stat().st_size != file["bytes"] or sha256_of(path) != file["sha256"]:
                    return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # Not there, or not what we wrote: run it again.
            return None
        return record

    def publish(self, id: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Put the outputs of an attempt in their place, as a whole; returns the record.

        Parameters
        ----------
        id
            Name of the job's folder.
        record
            From `bayesperf.batch.job.run_job`, or made up for a job that left nothing.
        """
        plain = {k: v for k, v in record.items() if k not in ("attempt", "contents")}
        attempt = Path(record["attempt"]) if "attempt" in record else self.work / f"{id}-{uuid.uuid4().hex[:12]}"
        attempt.mkdir(parents=True, exist_ok=True)
        for name, content in record.get("contents", {}).items():
            # Names without folders: a worker does not choose where we write.
            (attempt / Path(name).name).write_bytes(content)
        if not (attempt / RECORD).is_file():
            plain = write_record(attempt, plain)
        self.jobs.mkdir(exist_ok=True)
        place = self.jobs / id
        if place.exists():
            place.rename(self.work / f"replaced-{uuid.uuid4().hex[:12]}")
        attempt.rename(place)
        return plain
