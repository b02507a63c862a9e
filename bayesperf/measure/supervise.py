"""Runs workers and survives them: a stuck one is killed, a crashed one replaced, the rest of its points go on."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import IO, Any

from bayesperf.errors import MeasurementError
from bayesperf.measure.cluster import jobs_of
from bayesperf.measure.points import Point

__all__ = ["Outcome", "Worker", "describe", "run_points"]

START_TIMEOUT_S = 180.0
LOG_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a point, or (`kind` ``environment``) what a worker reported of itself.

    Attributes
    ----------
    kind
        ``done``, ``failed`` or ``environment``.
    point
        The point, or None.
    content
        The record, the failure (``reason``, ``detail``, ``log``), or the environment.
    """

    kind: str
    point: Point | None
    content: dict[str, Any] = field(default_factory=dict)


class Worker:
    """One worker process; a context manager that leaves no process behind.

    Parameters
    ----------
    job
        What it reads first; see `bayesperf.measure.worker`.
    environment
        Variables added to this process's.
    own_group
        Whether it leads a process group, all of which ends with it; else it belongs to this process's.
    """

    def __init__(self, job: Mapping[str, Any], environment: Mapping[str, str], *, own_group: bool = True):
        self._own_group = own_group
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            # -P: nothing of the folder that this happens to run in is code, a checkout of ours least of all.
            [sys.executable, "-P", "-m", "bayesperf.measure.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **environment},
            process_group=0 if own_group else None,
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.send(job)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def send(self, message: Mapping[str, Any]) -> None:
        """Write a line to it; if it is dead, the answer that does not come says so."""
        assert self._process.stdin is not None
        # Closed: it was killed from here.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *unused: object) -> None:
        self.kill()
        self._log.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """Next message, or None when the worker has ended.

        Raises
        ------
        TimeoutError
            Nothing came in time.
        """
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError from None
        if line is None:
            return None
        try:
            message: dict[str, Any] = json.loads(line)
        except ValueError:
            return None  # cut short by its death
        return message

    def kill(self) -> None:
        """End it and everything it started."""
        with contextlib.suppress(ProcessLookupError):
            if self._own_group:
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait()

    def death(self) -> str:
        """How it ended, for the reader of a failure."""
        code = self._process.wait()
        if code < 0:
            return f"the worker was ended by signal {-code} ({signal.Signals(-code).name})"
        return f"the worker ended with exit code {code}"

    def log(self) -> str:
        """End of what it wrote to standard error."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_BYTES))
        return self._log.read().decode(errors="replace")


def describe(environment: Mapping[str, str] | None = None, *, shortcut: bool = True) -> dict[str, Any]:
    """What JAX sees on this host, told by a worker, so that this process never opens a device.

    Where nothing but JAX's own CPU backend can be found, that is known without asking, unless `shortcut` is False.

    Raises
    ------
    MeasurementError
        ``no-backend``: JAX cannot start; the message holds the end of its log.
    """
    if shortcut and _only_cpu():
        versions = {name: metadata.version(name) for name in ("jax", "jaxlib")}
        return {"platform": "cpu", "device_kind": "cpu", "local_devices": 1, **versions}
    with Worker({"mode": "describe"}, environment or {}) as worker:
        try:
            message = worker.next(START_TIMEOUT_S)
        except TimeoutError:
            message = None
        if message is None or message.get("event") != "ready":
            worker.kill()
            raise MeasurementError("no-backend", f"JAX could not start on this machine:\n{worker.log().strip()}")
        return dict(message["jax"])


def _only_cpu() -> bool:
    """Whether JAX can only start its CPU backend: told so, or no plug-in for another one is installed."""
    wanted = os.environ.get("JAX_PLATFORMS", "")
    if wanted:
        return wanted == "cpu"
    plugins = metadata.entry_points(group="jax_plugins")
    return not plugins and not any(importlib.util.find_spec(name) for name in ("jax_plugins", "libtpu"))


def run_points(
    points: list[Point], job: Mapping[str, Any], environment: Mapping[str, str], timeout_s: float
) -> Iterator[Outcome]:
    """Measure points in fresh workers, in order; yields what became of each.

    Parameters
    ----------
    points
        Points of one scope and process.
    job
        Rest of the job.
    environment
        Variables of the workers.
    timeout_s
        Seconds after which a point counts as stuck.
    """
    remaining = list(points)
    fruitless = 0
    while remaining:
        before = len(remaining)
        for outcome in _one_worker(remaining, job, environment, timeout_s):
            if outcome.point is not None:
                remaining.remove(outcome.point)
            yield outcome
        fruitless = fruitless + 1 if len(remaining) == before else 0
        if fruitless >= 2:
            for point in remaining:
                yield Outcome("failed", point, {"reason": "no-worker", "detail": "two workers in a row did not start"})
            return


def _start(job: Mapping[str, Any], environment: Mapping[str, str], group: contextlib.ExitStack) -> Worker:
    """The worker of a job, or the first of the several that do it together; all of them end with the group."""
    processes = job.get("n_processes", 1)
    if processes == 1:
        return group.enter_context(Worker(job, environment))
    first, *others = jobs_of(processes, job["n_devices"])
    companions = [group.enter_context(Worker({**job, "cluster": other}, environment)) for other in others]
    pids = [companion.pid for companion in companions]
    leader = group.enter_context(Worker({**job, "cluster": first, "companions": pids}, environment))
    for companion in companions:
        threading.Thread(target=_end_together, args=(companion, leader), daemon=True).start()
    return leader


def _end_together(companion: Worker, leader: Worker) -> None:
    """End the leader when a companion has died: it would wait for it until the watchdog came."""
    if companion.wait() != 0:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)


def _one_worker(
    points: list[Point], job: Mapping[str, Any], environment: Mapping[str, str], timeout_s: float
) -> Iterator[Outcome]:
    by_id = {p.id: p for p in points}
    dumped = [p.model_dump(mode="json") for p in points]
    with contextlib.ExitStack() as group:
        worker = _start({"mode": "measure", **job, "points": dumped}, environment, group)
        running: Point | None = None
        while True:
            try:
                message = worker.next(timeout_s if running is not None else START_TIMEOUT_S)
            except TimeoutError:
                worker.kill()
                if running is not None:
                    detail = f"no result within {timeout_s:.0f} s: the worker was ended"
                    yield Outcome("failed", running, {"reason": "timeout", "detail": detail, "log": worker.log()})
                return
            if message is None:
                if running is not None:
                    detail = worker.death()
                    yield Outcome("failed", running, {"reason": "crashed", "detail": detail, "log": worker.log()})
                return
            event = message.pop("event")
            if event == "end":
                return
            if event == "ready":
                yield Outcome("environment", None, message)
            elif event == "start":
                running = by_id[message["point"]]
            else:
                point, running = by_id[message.pop("point")], None
                yield Outcome(event, point, message.get("record", message))
