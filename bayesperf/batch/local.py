"""Running jobs on this machine: one after another in this process, or in several processes of their own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from bayesperf.batch.job import FAILED

__all__ = ["Execute", "Task", "run_here", "run_in_processes"]

Task = dict[str, Any]
Execute = Callable[..., dict[str, Any]]
"""Takes a task, returns a record; `bayesperf.batch.job.run_job` but for tests."""

TRIES = 2
"""Processes that a job may lose before it counts as failed."""


def run_here(
    tasks: Sequence[Task], execute: Execute, started: Callable[[Task], None]
) -> Generator[tuple[str, Any], None, None]:
    """Run tasks one after another; yields id and record of each."""
    for task in tasks:
        started(task)
        yield task["id"], execute(task)


def run_in_processes(
    tasks: Sequence[Task], execute: Execute, started: Callable[[Task], None], workers: int
) -> Generator[tuple[str, Any], None, None]:
    """Run tasks in `workers` spawned processes; yields id and record of each as it ends.

    A process that dies (out of memory, a crash of a library) costs its own job one of its `TRIES`, and the other jobs
    nothing. Never forks: libraries with threads, such as JAX, deadlock in forked children.
    """
    waiting = list(reversed(tasks))
    tries = dict.fromkeys((task["id"] for task in tasks), 0)
    crew: list[_Worker] = []
    try:
        crew += [_Worker(execute) for _ in range(min(workers, len(tasks)))]
        while waiting or any(worker.task for worker in crew):
            for worker in crew:
                if worker.task is None and waiting:
                    worker.begin(waiting.pop())
                    started(worker.task or {})
            # A dead process closes its end: both its records and its death arrive here.
            ready = wait([worker.connection for worker in crew if worker.task is not None])
            for at, worker in enumerate(crew):
                if worker.connection not in ready or worker.task is None:
                    continue
                task, worker.task = worker.task, None
                try:
                    yield task["id"], worker.connection.recv()
                except (EOFError, ConnectionResetError):
                    code = worker.end()
                    crew[at] = _Worker(execute)
                    tries[task["id"]] += 1
                    if tries[task["id"]] < TRIES:
                        waiting.append(task)
                    else:
                        yield task["id"], {**_named(task), "status": FAILED, "reason": _death(code)}
    finally:
        for worker in crew:
            worker.end()


def _named(task: Task) -> dict[str, Any]:
    return {key: task[key] for key in ("id", "name", "key")}


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        return (
            f"its process was ended by {signal.Signals(-code).name}, {TRIES} times: out of memory, most often; use "
            "fewer workers, or fewer rows, and see the system's log"
        )
    return (
        f"its process ended with exit code {code}, {TRIES} times; see what it printed. A script that calls bp.batch "
        'needs the line `if __name__ == "__main__":` around the call'
    )


class _Worker:
    """A spawned process that runs one task at a time."""

    def __init__(self, execute: Execute) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.task: Task | None = None
        self._process = context.Process(target=_serve, args=(theirs, execute), daemon=True)
        self._process.start()
        # Ours alone: else nobody would see the other end close.
        theirs.close()

    def begin(self, task: Task) -> None:
        """Send it a task."""
        self.task = task
        # Dead already: `recv` will say so.
        with contextlib.suppress(BrokenPipeError):
            self.connection.send(task)

    def end(self) -> int | None:
        """End it, whatever it does; returns its exit code."""
        # An idle one sees this, and goes.
        self.connection.close()
        self._process.join(timeout=0 if self.task else 2)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self._process.exitcode


def _serve(connection: Connection, execute: Execute) -> None:
    # Ctrl-C reaches every process of a terminal; who sent the tasks ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(execute(task))


def _end_with_parent() -> None:
    """End this process when the one that sent its tasks is gone: nobody would ever publish what it makes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        # At once: a fit would go on for minutes.
        os._exit(1)
