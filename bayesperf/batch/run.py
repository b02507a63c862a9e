"""`bayesperf.batch`: from a configuration to finished jobs and their summary."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesperf.batch.config import Located, read_config
from bayesperf.batch.folder import Folder
from bayesperf.batch.job import FAILED, run_job
from bayesperf.batch.local import Task, run_here, run_in_processes
from bayesperf.batch.plan import Job, jobs_of
from bayesperf.batch.progress import BatchProgress, choose_progress
from bayesperf.errors import InputError, MissingExtraError, check_counts

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Batch", "Planned", "batch", "plan"]


@dataclass(frozen=True)
class Batch:
    """What a batch left.

    Parameters
    ----------
    folder
        Holds ``summary.html``, ``summary.csv``, ``summary.json`` and ``jobs/<id>/``.
    files
        The three summaries.
    document
        Content of ``summary.json``: counts, and a record for each job.
    """

    folder: Path
    files: list[Path]
    document: dict[str, Any]

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """Record of each job, in the order of the configuration."""
        return list(self.document["jobs"])

    @property
    def table(self) -> pd.DataFrame:
        """One row per job, as in ``summary.csv``."""
        from bayesperf.batch.summary import table_of

        return table_of(self.document)

    @property
    def any_fails(self) -> bool:
        """Whether any regime of any job fails to transfer."""
        return bool(self.document["verdicts"]["fails"])

    def exit_code(self, *, strict: bool = False) -> int:
        """0 all jobs done, 1 one failed or did not converge, 3 (only if `strict`) a regime fails to transfer."""
        if any(job["status"] != "done" for job in self.jobs):
            return 1
        return 3 if strict and self.any_fails else 0


@dataclass(frozen=True, slots=True)
class Planned:
    """A job as a dry run shows it.

    Parameters
    ----------
    job
        The job.
    complete
        Whether its outputs are there already.
    """

    job: Job
    complete: bool


def plan(
    config: str | Path | Mapping[str, Any], *, out: str | Path | None = None, seed: int | None = None
) -> list[Planned]:
    """List the jobs of a batch and whether each is complete already; runs none. Parameters as `batch`."""
    import tempfile

    located = read_config(config)
    folder = Folder(_root(located, out))
    # Copies of data sets would be left behind by a run that nobody asked for.
    with tempfile.TemporaryDirectory(prefix="bayesperf-batch-") as copies:
        jobs = jobs_of(located, Path(copies), seed=seed)
    return [Planned(job, folder.finished(job.id, job.key) is not None) for job in jobs]


def batch(
    config: str | Path | Mapping[str, Any],
    *,
    scheduler: str | None = None,
    workers: int = 1,
    out: str | Path | None = None,
    seed: int | None = None,
    progress: bool | BatchProgress | None = None,
) -> Batch:
    """Run many fits, validations and reports.

    A job whose outputs are complete for the same settings, contents of inputs and package version is not run again. A
    job that fails leaves its reason and its log, and the others run. After Ctrl-C finished jobs are kept, and the same
    call goes on with the rest.

    Parameters
    ----------
    config
        A TOML file, or a mapping of the same shape; see docs/batch.md.
    scheduler
        Address of a Dask scheduler to run on; this machine when None.
    workers
        Processes on this machine; with 1, jobs run one after another in this one.
    out
        Folder to write into; by default the configuration's ``out``, else one beside its file, of its name.
    seed
        In place of the configuration's.
    progress
        None: a bar on a terminal, log lines elsewhere; False: silent.

    Returns
    -------
    Batch
        Also when jobs failed: see its `exit_code`.

    Raises
    ------
    InputError
        A bad configuration, an unknown name, a file that does not exist, a folder that another batch is writing into.
    MissingExtraError
        `scheduler` is given and Dask is not installed.
    BayesperfError
        The scheduler was lost; finished jobs are kept.
    """
    check_counts(1, workers=workers)
    check_counts(0, **({} if seed is None else {"seed": seed}))
    if scheduler is not None and workers != 1:
        raise InputError("a scheduler has workers of its own: leave out --workers (workers=)")
    for library in ("pymc", "jinja2"):
        if find_spec(library) is None:
            # A measuring host has neither, and would only find out job by job.
            raise MissingExtraError("batch", library, "pip install bayesperf")
    located = read_config(config)
    folder = Folder(_root(located, out))
    watched = choose_progress(progress) if progress is None or isinstance(progress, bool) else progress
    with folder.opened():
        jobs = jobs_of(located, folder.copies, seed=seed)
        title = located.config.title or located.stem or folder.root.name
        return _run(jobs, title, folder, watched, _runner(scheduler, workers, watched))


Records = Generator[tuple[str, dict[str, Any]], None, None]


def _runner(scheduler: str | None, workers: int, watched: BatchProgress) -> Callable[[list[Task]], Records]:
    if scheduler is not None:
        from bayesperf.batch.cluster import run_on_cluster

        return lambda tasks: run_on_cluster(tasks, run_job, scheduler, watched.say)
    if workers > 1:
        return lambda tasks: run_in_processes(tasks, run_job, watched.started, workers)
    return lambda tasks: run_here(tasks, run_job, watched.started)


def _root(located: Located, out: str | Path | None) -> Path:
    if out is not None:
        return Path(out)
    if located.config.out is not None:
        return located.folder / located.config.out
    if located.stem is None:
        raise InputError("say where to write: out = DIR")
    return located.folder / located.stem


def _run(
    jobs: Sequence[Job], title: str, folder: Folder, watched: BatchProgress, run: Callable[[list[Task]], Records]
) -> Batch:
    from bayesperf.batch.summary import document_of, write_summary

    records: dict[str, dict[str, Any]] = {}
    for job in jobs:
        kept = folder.finished(job.id, job.key) if job.problem is None else None
        if kept is not None:
            records[job.id] = {**kept, "kept": True}
    broken = [job for job in jobs if job.problem is not None]
    tasks = [
        {**job.task, "key": job.key, "work": folder.where()}
        for job in jobs
        if job.problem is None and job.id not in records
    ]
    watched.begin(len(jobs), len(records))

    def finish(id: str, record: Mapping[str, Any]) -> None:
        records[id] = folder.publish(id, record)
        watched.finished(records[id])
        # Those who wait for a long batch look at the page meanwhile.
        write_summary(folder.root, document_of(title, jobs, records))

    try:
        for job in broken:
            reason = {"id": job.id, "name": job.name, "key": job.key, "status": FAILED, "reason": job.problem}
            finish(job.id, reason)
        if tasks:
            # Closed at once, whatever happens: it ends processes, and cancels what a cluster has not begun.
            with closing(run(tasks)) as ended:
                for id, record in ended:
                    finish(id, record)
    finally:
        watched.end()
        document = document_of(title, jobs, records)
        files = write_summary(folder.root, document)
    return Batch(folder.root, files, document)
