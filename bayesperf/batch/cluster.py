"""Running jobs on an existing Dask cluster.

Workers need this package in the sender's version, and nothing else: no plug-in, no common folder. A worker that sees
the sender's folder reads the inputs and writes the outputs there; one that does not is sent the inputs' contents, and
sends back its files'. What travels are plain values and bytes.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

from bayesperf.batch.job import FAILED, NEEDS_INPUTS, inputs_of
from bayesperf.batch.local import Execute, Task
from bayesperf.errors import BayesperfError, InputError, MissingExtraError

__all__ = ["run_on_cluster"]

log = logging.getLogger("bayesperf.batch")

CONNECT_S, WORKERS_S = 30.0, 300.0
"""Seconds to wait for the scheduler, and for its first worker, which may have to queue for its node."""


def run_on_cluster(
    tasks: Sequence[Task], execute: Execute, address: str, say: Callable[[str], None]
) -> Generator[tuple[str, Any], None, None]:
    """Run tasks on the cluster of a scheduler; yields id and record of each as it ends.

    The scheduler runs a task again whose worker was lost, on another one, as often as its setting
    ``distributed.scheduler.allowed-failures`` has it (3).

    Parameters
    ----------
    tasks
        With the folder's marker in ``work``.
    execute
        Importable by the workers.
    address
        Of the scheduler, such as ``tcp://10.0.0.5:8786``.
    say
        Told what the reader should know.

    Raises
    ------
    MissingExtraError
        Dask is not installed.
    InputError
        Nobody answers at that address.
    BayesperfError
        The cluster has no workers, or the scheduler was lost.
    """
    try:
        from distributed import as_completed
    except ModuleNotFoundError as error:
        raise MissingExtraError("--scheduler", str(error.name), "pip install 'bayesperf[dask]'") from None
    client = _connect(address)
    futures: dict[Any, Task] = {}
    # A scheduler remembers keys: those of an earlier batch must not answer for this one.
    run = uuid.uuid4().hex[:12]
    try:
        _look_at_workers(client, address, say)
        for task in tasks:
            futures[client.submit(execute, task, key=f"bayesperf-{run}-{task['id']}", pure=False)] = task
        done = as_completed(list(futures), loop=client.loop)
        for future in done:
            task = futures.pop(future)
            record = _outcome(future, task, address)
            if record["status"] == NEEDS_INPUTS:
                key = f"bayesperf-{run}-{task['id']}-sent"
                again = client.submit(execute, task, _contents(task), key=key, pure=False)
                futures[again] = task
                done.add(again)
                continue
            yield task["id"], record
            # A record may hold the files of a job: the workers need not keep them.
            future.release()
    finally:
        if futures:
            client.cancel(list(futures), force=True)
        client.close()


def _connect(address: str) -> Any:
    from distributed import Client

    try:
        return Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address}: {' '.join(str(error).split()) or type(error).__name__}; start "
            "one with `dask scheduler` and give the address that it prints"
        ) from error


def _look_at_workers(client: Any, address: str, say: Callable[[str], None]) -> None:
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError:
        raise BayesperfError(
            f"the scheduler at {address} has had no worker for {WORKERS_S:.0f} s; start some: "
            f"dask worker {address} --nthreads 1 --nworkers 4"
        ) from None
    workers = client.scheduler_info()["workers"].values()
    say(f"{len(workers)} workers")
    if any(worker["nthreads"] > 1 for worker in workers):
        say(
            "some workers have several threads, and jobs of one worker take turns: start `dask worker` with "
            "--nthreads 1 --nworkers N to run more of them at a time"
        )


def _outcome(future: Any, task: Task, address: str) -> dict[str, Any]:
    named = {key: task[key] for key in ("id", "name", "key")}
    if future.status in ("cancelled", "lost"):
        raise BayesperfError(
            f"the scheduler at {address} was lost, or somebody cancelled the jobs; those that had finished are kept: "
            "run the same batch again"
        )
    error = future.exception()
    if error is None:
        record: dict[str, Any] = future.result()
        return record
    if isinstance(error, ModuleNotFoundError):
        return {**named, "status": FAILED, "reason": f"its worker lacks {error.name}: pip install bayesperf there"}
    # KilledWorker among them, which says how often and where to look.
    return {**named, "status": FAILED, "reason": f"{type(error).__name__}: {' '.join(str(error).split())}"}


def _contents(task: Task) -> dict[str, bytes]:
    """Contents of a task's inputs, by their hash."""
    return {file["sha256"]: Path(file["path"]).read_bytes() for file in inputs_of(task)}
