"""One job, from plain values to files: what a worker runs, wherever it runs.

A job writes into a folder of its own, one for each attempt, and its record last; whoever sent it publishes that folder.
So an attempt that was given up, or that a lost worker still works at, can neither spoil nor mix with another's outputs.
"""

from __future__ import annotations

import json
import logging
import re
import tempfile
import threading
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayesperf import __version__
from bayesperf.batch.inputs import sha256_of
from bayesperf.errors import BayesperfError, InputError

__all__ = ["FAILED", "LOG", "NEEDS_INPUTS", "RECORD", "inputs_of", "run_job", "shares", "write_record"]

FAILED = "failed"
NEEDS_INPUTS = "needs inputs"
"""This worker cannot see the sender's folder: send it the inputs' contents."""

LOG, RECORD = "log.txt", "job.json"

_ONE_AT_A_TIME = threading.Lock()
"""Libraries of inference, warnings and log handlers are one for a process: a worker's threads take turns."""


Steps = Callable[[Mapping[str, Any], Mapping[str, Path], Path, dict[str, float]], dict[str, Any]]
"""Takes a task, where its inputs lie, the folder to write and the times to fill; returns facts for the record."""


def run_job(
    task: Mapping[str, Any], contents: Mapping[str, bytes] | None = None, steps: Steps | None = None
) -> dict[str, Any]:
    """Run a job and say what became of it; what goes wrong is in the record, never raised.

    Parameters
    ----------
    task
        From the plan, with ``key``, and ``work``: ``folder`` for attempts, ``marker`` and ``token``, by which a worker
        sees that the folder is the sender's own.
    contents
        Contents of the inputs by their SHA-256, for workers that do not share the sender's files.
    steps
        What to do; `bayesperf.batch.steps.steps` when None.

    Returns
    -------
    dict
        Plain values: ``status``, ``reason``, ``attempt`` (the folder written) or ``contents`` (its files, where the
        folder is not shared), timings, verdicts, diagnostics.
    """
    with _ONE_AT_A_TIME:
        if shares(task["work"]):
            folder = Path(task["work"]["folder"]) / f"{task['id']}-{uuid.uuid4().hex[:12]}"
            return {**_attempt(task, contents or {}, folder, steps), "attempt": str(folder)}
        if contents is None:
            return {"status": NEEDS_INPUTS}
        with tempfile.TemporaryDirectory(prefix="bayesperf-batch-") as scratch:
            folder = Path(scratch) / "outputs"
            record = _attempt(task, contents, folder, steps)
            return {**record, "contents": {path.name: path.read_bytes() for path in sorted(folder.iterdir())}}


def shares(work: Mapping[str, str]) -> bool:
    """Whether this process sees the sender's folder: the marker there holds this run's token."""
    try:
        return Path(work["marker"]).read_text(encoding="utf-8") == work["token"]
    except OSError:
        return False


def write_record(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Write the record of a job beside its outputs, whose sizes and hashes it holds; returns it as it was written."""
    from bayesperf.schema import canonical
    from bayesperf.store import atomic_write

    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.iterdir())
        if path.name != RECORD
    }
    # Not-a-number has no JSON: absent.
    plain: dict[str, Any] = json.loads(canonical({**record, "files": files}))
    text = json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False)
    atomic_write(folder / RECORD, lambda temporary: _write_text(temporary, text))
    return plain


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _attempt(
    task: Mapping[str, Any], contents: Mapping[str, bytes], folder: Path, steps: Steps | None
) -> dict[str, Any]:
    started = time.monotonic()
    record: dict[str, Any] = {"id": task["id"], "name": task["name"], "key": task["key"], "seconds": {}}
    try:
        folder.mkdir(parents=True)
        with _logged(folder / LOG) as count:
            record |= _guarded(task, contents, folder, record["seconds"], steps)
        record["warnings"] = count()
        record["seconds"]["total"] = time.monotonic() - started
        return write_record(folder, record)
    except OSError as error:
        # A full disk, most often: then the record cannot be written either, and travels alone.
        return {**record, "status": FAILED, "reason": f"outputs cannot be written: {error}"}


def _guarded(
    task: Mapping[str, Any],
    contents: Mapping[str, bytes],
    folder: Path,
    seconds: dict[str, float],
    steps: Steps | None,
) -> dict[str, Any]:
    """Outcome of a job; a failure is an outcome, its traceback is in the log."""
    log = logging.getLogger("bayesperf.batch")
    try:
        if task["version"] != __version__:
            raise InputError(
                f"this worker has bayesperf {__version__}, the batch was begun by {task['version']}: install the same"
            )
        with _inputs(task, contents) as at:
            if steps is None:
                # Here: a job that cannot start needs no library of inference.
                from bayesperf.batch.steps import steps as all_steps

                steps = all_steps
            return steps(task, at, folder, seconds)
    # One job must not end the others, whatever third-party models and libraries raise.
    except Exception as error:
        log.error("failed", exc_info=error)
        return {"status": FAILED, "reason": _reason(error, task)}


def _reason(error: Exception, task: Mapping[str, Any]) -> str:
    """One line for the summary, which is shared: files by their names, without this machine's folders."""
    words = " ".join(str(error).split())
    for file in inputs_of(task):
        # The sender's path, or that of a copy.
        words = re.sub(r"\S*/" + re.escape(file["name"]), file["name"].replace("\\", r"\\"), words)
    if isinstance(error, BayesperfError):
        return words
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed where this job ran: pip install bayesperf, or the model's own package"
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"in {last.name}, {Path(last.filename).name} line {last.lineno}; see the log"
    return f"{type(error).__name__}: {words} ({where})"


def inputs_of(task: Mapping[str, Any]) -> list[dict[str, str]]:
    """Every input of a task."""
    return [*task["tables"], *task["heldout"], *(task[k] for k in ("specs", "profile") if task[k] is not None)]


@contextmanager
def _inputs(task: Mapping[str, Any], contents: Mapping[str, bytes]) -> Iterator[dict[str, Path]]:
    """Where each input lies on this machine, by its hash: the sender's file, or a copy of the contents sent.

    Raises
    ------
    InputError
        A file has changed since the batch was planned, or is not there.
    """
    with tempfile.TemporaryDirectory(prefix="bayesperf-batch-") as scratch:
        found: dict[str, Path] = {}
        for at, file in enumerate(inputs_of(task)):
            path = Path(file["path"])
            if file["sha256"] in contents:
                # Its own name: ids of measurements depend on it.
                path = Path(scratch) / str(at) / file["name"]
                path.parent.mkdir()
                path.write_bytes(contents[file["sha256"]])
            elif not path.is_file():
                raise InputError(f"{file['name']}: no such file on this worker")
            elif sha256_of(path) != file["sha256"]:
                raise InputError(f"{file['name']}: has changed since the batch was planned; run the batch again")
            found[file["path"]] = path
        yield found


@contextmanager
def _logged(path: Path) -> Iterator[Any]:
    """Send the package's log lines and all warnings to a file; yields a function that counts the warnings."""
    logger = logging.getLogger("bayesperf")
    before = list(logger.handlers), logger.level, logger.propagate
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    warned: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        warned.append(str(message))
        logger.warning("%s: %s", category.__name__, message)

    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = show
            yield lambda: len(warned)
    finally:
        logger.handlers, logger.propagate = before[0], before[2]
        logger.setLevel(before[1])
        handler.close()
