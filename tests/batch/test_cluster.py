"""A batch on a real Dask scheduler and real workers, processes of their own on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bayesperf as bp
from bayesperf.batch.folder import Folder
from bayesperf.errors import BayesperfError, InputError, MissingExtraError
from tests.batch.conftest import HERE

Write = Callable[..., Path]


@dataclass
class Cluster:
    """A scheduler and its workers."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


def _dask(*args: str, folder: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": HERE, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with (folder / f"{args[0]}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *args], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log,
        )  # fmt: skip


def _start(folder: Path, workers: int) -> Cluster:
    known = folder / "scheduler.json"
    where = ("--scheduler-file", str(known))
    scheduler = _dask("scheduler", *where, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", folder=folder)
    crew = [
        _dask("worker", *where, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", folder=folder)
        for _ in range(workers)
    ]
    until = time.monotonic() + 300
    while not known.exists() or not known.read_text().endswith("}"):
        assert scheduler.poll() is None, (folder / "scheduler.log").read_text()
        assert time.monotonic() < until, "the scheduler does not start"
        time.sleep(0.05)
    return Cluster(json.loads(known.read_text())["address"], scheduler, crew)


def _end(cluster: Cluster) -> None:
    for process in (*cluster.workers, cluster.scheduler):
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers, of which a test kills one."""
    found = _start(tmp_path_factory.mktemp("dask"), 2)
    yield found
    _end(found)


def test_nothing_is_lost_with_a_worker(cluster: Cluster, write: Write, quick: Any) -> None:
    names = ("kill once", "one slow", "two slow", "three", "raise", "four unconverged")
    found = bp.batch(write(*names), scheduler=cluster.address, progress=False)
    status = {job["name"]: job["status"] for job in found.jobs}
    assert status == {**dict.fromkeys(names, "done"), "raise": "failed", "four unconverged": "unconverged"}
    processes = {job["process"] for job in found.jobs if "process" in job}
    dead = {worker.pid for worker in cluster.workers if worker.poll() is not None}
    assert len(dead) == 1
    assert processes <= {worker.pid for worker in cluster.workers} - dead
    assert all(Folder(found.folder).finished(j["id"], j["key"]) for j in found.jobs if j["status"] != "failed")
    again = bp.batch(write(*names), scheduler=cluster.address, progress=False)
    assert [job.get("kept", False) for job in again.jobs] == [name != "raise" for name in names]


def test_workers_need_not_share_a_folder(
    cluster: Cluster, write: Write, quick: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Folder.where
    # As a worker of another machine sees it: no such folder.
    monkeypatch.setattr(Folder, "where", lambda self: {**real(self), "marker": "/nowhere/marker", "folder": "/nowhere"})
    config = write("one", "raise")
    found = bp.batch(config, scheduler=cluster.address, progress=False)
    assert [job["status"] for job in found.jobs] == ["done", "failed"]
    one = found.folder / "jobs" / "one"
    assert (one / "profile.nc").read_bytes() == (config.parent / "t.csv").read_bytes()
    assert "Traceback" in (found.folder / "jobs" / "raise" / "log.txt").read_text()
    assert Folder(found.folder).finished("one", found.jobs[0]["key"]) is not None


@pytest.mark.slow
def test_a_job_that_kills_its_workers_fails_alone(tmp_path: Path, write: Write, quick: Any) -> None:
    # Twice: the scheduler of these tests allows one failure.
    three = _start(tmp_path, 3)
    try:
        found = bp.batch(write("kill", "one slow", "two"), scheduler=three.address, progress=False)
    finally:
        _end(three)
    assert [job["status"] for job in found.jobs] == ["failed", "done", "done"]
    assert "KilledWorker" in found.jobs[0]["reason"]


def test_nobody_at_the_address(write: Write, quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayesperf.batch.cluster.CONNECT_S", 0.2)
    for address in ("tcp://127.0.0.1:9", "no address at all"):
        with pytest.raises(InputError, match=r"no Dask scheduler answers at .*dask scheduler"):
            bp.batch(write("one"), scheduler=address, progress=False)


def test_a_missing_extra_says_how_to_install_it(write: Write, quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayesperf\[dask\]'"):
        bp.batch(write("one"), scheduler="tcp://127.0.0.1:9", progress=False)


@pytest.mark.slow
def test_a_cluster_without_workers(tmp_path: Path, write: Write, quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayesperf.batch.cluster.WORKERS_S", 0.2)
    alone = _start(tmp_path, 0)
    try:
        with pytest.raises(BayesperfError, match=r"has had no worker for .* dask worker"):
            bp.batch(write("one"), scheduler=alone.address, progress=False)
    finally:
        _end(alone)


@pytest.mark.slow
def test_a_lost_scheduler_keeps_what_was_finished(tmp_path: Path, write: Write, quick: Any) -> None:
    lone = _start(tmp_path, 1)

    class Ending:
        """Ends the scheduler after the first job."""

        def begin(self, total: int, kept: int) -> None: ...
        def started(self, task: Any) -> None: ...
        def say(self, text: str) -> None: ...
        def end(self) -> None: ...
        def finished(self, record: Any) -> None:
            lone.scheduler.kill()

    config = write("one", "two slow", "three slow")
    try:
        with pytest.raises(BayesperfError, match="run the same batch again"):
            bp.batch(config, scheduler=lone.address, progress=Ending())
    finally:
        _end(lone)
    assert bp.batch(config, progress=False).jobs[0].get("kept")
