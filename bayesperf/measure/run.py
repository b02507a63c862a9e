"""``measure``: runs a suite on this machine and returns the contract's table."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesperf.errors import CeilingError, InputError, MeasurementError
from bayesperf.measure.journal import Journal, exclusive, journal_path, read_journal
from bayesperf.measure.machine import Machine, deal_processors, memory_limit_bytes, scope_environment
from bayesperf.measure.plan import Plan, make_plan
from bayesperf.measure.points import Batch, Point
from bayesperf.measure.progress import Progress, choose_progress
from bayesperf.measure.suites import Suite, load_suite
from bayesperf.measure.supervise import Outcome, describe, run_points

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["failures_path", "measure", "memory_for", "plan_for", "repeat"]


def measure(
    suite: str | Path | Suite = "quick",
    *,
    out: str | Path | None = None,
    seed: int | None = None,
    progress: bool | Progress | None = None,
    campaign: str | None = None,
    targets: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Measure a suite on the machine this runs on.

    Parameters
    ----------
    suite
        Name of an installed suite, path of a TOML file, or a `Suite`.
    out
        Parquet file to write. While points come in they go to a journal beside it; a run that was ended goes on where
        it stopped when the same call is made again. None: the table is only returned.
    seed
        Of the order of everything and of the data; drawn and recorded if None.
    progress
        None: a bar on a terminal, log lines elsewhere. False: nothing. Or an object of your own.
    campaign
        Name of this collection run; the UTC time of its start if None.
    targets
        Spec sheets by device; a rate above a physical ceiling makes the point a failure.

    Returns
    -------
    DataFrame
        The measurement table, provenance in ``attrs["provenance"]``, the failures table in ``attrs["failures"]``, the
        plan, as JSON, in ``attrs["facts"]["plan"]``.

    Raises
    ------
    UnknownNameError, InputError
        No such suite or probe; a file in the way; another run at work on `out`.
    MeasurementError
        JAX cannot start, or not a single point could be measured.
    """
    suite = suite if isinstance(suite, Suite) else load_suite(suite)
    return _measure(_Request(suite, None, seed, campaign, targets, _path(out), _watcher(progress)))


def repeat(
    file: str | Path,
    *,
    out: str | Path | None = None,
    progress: bool | Progress | None = None,
    campaign: str | None = None,
    targets: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Run another file's plan again, on this machine: same points, same order, same data, a campaign of its own.

    Parameters and result are those of `measure`.

    Raises
    ------
    InputError
        The file holds no plan, or one for another platform or number of devices.
    """
    saved = _saved_plan(Path(file))
    if out is not None and Path(out).resolve() == Path(file).resolve():
        raise InputError(f"{out}: a repeated run needs a file of its own; name another with out")
    return _measure(_Request(None, saved, None, campaign, targets, _path(out), _watcher(progress)))


def plan_for(suite: str | Path | Suite = "quick", *, seed: int | None = None) -> Plan:
    """The plan that `measure` would run here, without running it; its `Plan.describe` lists the points."""
    suite = suite if isinstance(suite, Suite) else load_suite(suite)
    return make_plan(suite, Machine.from_description(describe()), _seed(seed))


def memory_for(plan: Plan) -> float | None:
    """Memory in byte that a point of a plan may need on this machine, or None where that is not known."""
    if plan.platform == "cpu":
        here: float | None = memory_limit_bytes()
    else:
        here = Machine.from_description(describe()).memory_bytes
    return None if here is None else plan.suite.budget.memory_share * here


def failures_path(out: str | Path) -> Path:
    """Failures table of a measurement file."""
    out = Path(out)
    return out.with_name(f"{out.stem}.failures.parquet")


def _watcher(progress: bool | Progress | None) -> Progress:
    return choose_progress(progress) if progress is None or isinstance(progress, bool) else progress


def _path(out: str | Path | None) -> Path | None:
    path = None if out is None else Path(out)
    if path is not None and path.suffix != ".parquet":
        raise InputError(f"{path}: measurements are written as Parquet; name the file *.parquet")
    return path


def _seed(seed: int | None) -> int:
    return secrets.randbelow(2**31) if seed is None else seed


def _saved_plan(path: Path) -> Plan:
    from bayesperf.store import read_measurements

    facts = read_measurements(path).attrs.get("facts", {})
    if "plan" not in facts:
        raise InputError(f"{path}: holds no plan; only files written by measure can be repeated")
    return Plan.from_json(facts["plan"], source=str(path))


@dataclass(frozen=True)
class _Request:
    """What was asked for: a suite, or another file's plan."""

    suite: Suite | None
    plan: Plan | None
    seed: int | None
    campaign: str | None
    targets: pd.DataFrame | None
    path: Path | None
    watcher: Progress

    def make_plan(self, machine: Machine) -> Plan:
        """The plan to run on this machine."""
        if self.suite is not None:
            return make_plan(self.suite, machine, _seed(self.seed))
        assert self.plan is not None
        there = (self.plan.platform, self.plan.n_devices)
        if there != (machine.platform, machine.devices):
            raise InputError(
                f"the plan is for {there[1]} {there[0]} device(s), this machine has {machine.devices} "
                f"{machine.platform}; run its suite ({self.plan.suite.name}) instead"
            )
        return self.plan

    def wants(self, plan: Plan) -> bool:
        """Whether a plan that was found is the one asked for."""
        if self.plan is not None:
            return plan.id == self.plan.id
        return self.suite is not None and self.suite.on(plan.platform) == plan.suite


def _measure(request: _Request) -> pd.DataFrame:
    path = request.path
    with nullcontext() if path is None else exclusive(path):
        if path is not None and path.exists():
            return _complete(path, request)
        machine = Machine.from_description(describe())
        run = _begin(request, machine) if path is None else _begin_or_resume(path, request, machine)
        table = run.go(request.targets)
        if not len(table):
            raise _nothing_measured(table.attrs["failures"], path, run)
        if path is not None:
            _write(table, path)
            run.remove()
        return table


def _nothing_measured(failures: pd.DataFrame, path: Path | None, run: _Run) -> MeasurementError:
    """The error of a run whose points all failed, which the same command then begins anew."""
    first = failures.iloc[0] if len(failures) else {"reason": "no-points", "detail": "the plan is empty"}
    said = f"all {len(failures)} points failed; the first: {first['reason']}: {first['detail']}"
    if path is not None and len(failures):
        from bayesperf.store import write_failures

        write_failures(failures, failures_path(path))
        run.remove()
        said += f". All are in {failures_path(path)}; the same command tries again"
    return MeasurementError("nothing-measured", said)


def _complete(path: Path, request: _Request) -> pd.DataFrame:
    """A file that is there already: returned if it holds what is asked for, refused otherwise."""
    import pandas as pd

    from bayesperf.store import read_measurements

    table = read_measurements(path)
    plan = table.attrs.get("facts", {}).get("plan")
    if plan is None:
        raise InputError(f"{path}: exists and was not written by measure; name another file")
    saved = Plan.from_json(plan, source=str(path))
    if not request.wants(saved):
        raise InputError(
            f"{path}: exists and holds another plan (suite {saved.suite.name}, or another version of it); "
            f"name another file"
        )
    campaigns = sorted(table["campaign"].dropna().unique())
    for name, wanted, there in (("seed", request.seed, [saved.seed]), ("campaign", request.campaign, campaigns)):
        if wanted is not None and wanted not in there:
            raise InputError(
                f"{path}: exists, measured with {name} {', '.join(map(str, there))}, not {wanted}; name another file"
            )
    failures = failures_path(path)
    table.attrs["failures"] = pd.read_parquet(failures) if failures.exists() else pd.DataFrame()
    _remove_merged(journal_path(path), saved)
    request.watcher.say(f"{path}: complete already, {len(table)} rows; nothing to measure")
    return table


def _remove_merged(journal: Path, plan: Plan) -> None:
    """Remove the journal of a run that was killed between writing its file and removing its journal."""
    found = read_journal(journal)
    if found is not None and Plan.from_json(found[0].get("plan"), source=str(journal)).id == plan.id:
        journal.unlink()


def _named(machine: Machine) -> str:
    return f"{machine.target(machine.devices)} with {machine.stack}"


def _begin(request: _Request, machine: Machine) -> _Run:
    plan = request.make_plan(machine)
    campaign = request.campaign or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    journal = None
    if request.path is not None:
        header = {"plan": plan.model_dump(mode="json"), "campaign": campaign, "machine": _named(machine)}
        journal = Journal(journal_path(request.path), header)
    return _Run(plan, machine, campaign, request.watcher, journal)


def _begin_or_resume(path: Path, request: _Request, machine: Machine) -> _Run:
    found = read_journal(journal_path(path))
    if found is None:
        return _begin(request, machine)
    source, begun = str(journal_path(path)), str(found[0].get("campaign"))
    plan = Plan.from_json(found[0].get("plan"), source=source)
    if not request.wants(plan):
        raise InputError(
            f"{source}: belongs to another run (suite {plan.suite.name}); move it away or name another file"
        )
    if found[0].get("machine") != _named(machine):
        raise InputError(
            f"{source}: was begun on {found[0].get('machine')}, this is {_named(machine)}; move it away or name "
            f"another file"
        )
    if request.seed not in (None, plan.seed):
        raise InputError(f"{source}: was begun with seed {plan.seed}; leave the seed out, or name another file")
    if request.campaign not in (None, begun):
        raise InputError(f"{source}: was begun as campaign {begun!r}; leave the campaign out, or name another file")
    run = _Run(plan, machine, begun, request.watcher, Journal(journal_path(path), {}))
    done, total = len(run.done()), len(plan.points)
    request.watcher.say(f"{path}: going on with a run that was ended; {done} of {total} points are there")
    return run


def _write(table: pd.DataFrame, path: Path) -> None:
    from bayesperf.store import write_failures, write_measurements

    failures = table.attrs["failures"]
    plain = table.copy(deep=False)
    plain.attrs = {k: v for k, v in table.attrs.items() if k != "failures"}
    try:
        if len(failures):
            write_failures(failures, failures_path(path))
        else:
            failures_path(path).unlink(missing_ok=True)
        write_measurements(plain, path, extra=table.attrs["facts"])
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error}); make room, then run the same command: what is in "
            f"{journal_path(path).name} stays, and nothing is measured again"
        ) from error


def _kind(point: Point) -> tuple[str, ...]:
    return point.probe, str(point.config["op"]), str(point.config.get("dtype")), point.scope


@dataclass
class _Run:
    plan: Plan
    machine: Machine
    campaign: str
    watcher: Progress
    journal: Journal | None

    def __post_init__(self) -> None:
        self.entries: list[dict[str, Any]] = [] if self.journal is None else list(self.journal.entries)
        self._distrusted: dict[tuple[str, ...], dict[str, Any]] = {}

    def done(self) -> set[str]:
        """Ids of the points that were measured or failed."""
        return {str(e["point"]) for e in self.entries if e["type"] in ("done", "failed")}

    def go(self, targets: pd.DataFrame | None) -> pd.DataFrame:
        """Measure what is missing, then assemble the table."""
        from bayesperf.measure.table import assemble

        self.watcher.begin(self.plan, len(self.done()))
        try:
            for batch in self.plan.batches(skip=self.done()):
                self._batch(batch, targets)
        except KeyboardInterrupt:
            if self.journal is not None:
                self.watcher.say(f"stopped; {len(self.done())} points are kept: the same command goes on from there")
            raise
        finally:
            self.watcher.end()
            if self.journal is not None:
                self.journal.close()
        return assemble(self.entries, self.plan, self.machine, self.campaign)

    def remove(self) -> None:
        """Delete the journal: it has been merged."""
        if self.journal is not None:
            self.journal.path.unlink(missing_ok=True)

    def _batch(self, batch: Batch, targets: pd.DataFrame | None) -> None:
        budget, points = self.plan.suite.budget, self._trusted(batch.points)
        job = {
            "n_devices": batch.n_devices,
            "budget": budget.model_dump(mode="json"),
            "memory_bytes": self.machine.memory_bytes,
            "check_large": batch.process == 0,
            "flush_bytes": self.machine.main_memory_bytes(batch.n_devices),
        }
        dealt = deal_processors(batch.n_devices) if batch.mode in ("pinned", "one-processor") else None
        if dealt is not None:
            job["cpus"], job["other_cpus"] = dealt if batch.mode == "pinned" else (dealt[0], dealt[0])
        job |= {"n_processes": batch.n_processes, "platform": self.plan.platform}
        each = batch.n_devices // batch.n_processes
        environment = scope_environment(self.plan.platform, each + batch.threads_beside)
        provenance = None
        for outcome in run_points(points, job, environment, budget.timeout_s):
            if outcome.kind == "environment":
                provenance = self._environment(outcome)
            else:
                self._outcome(outcome, provenance, targets)

    def _trusted(self, points: list[Point]) -> list[Point]:
        """Points whose kind has not given a wrong result in an earlier process; the others fail as it did."""
        trusted = [point for point in points if _kind(point) not in self._distrusted]
        for point in points:
            if point not in trusted:
                self._append({"type": "failed", "point": point.id, "failure": self._distrusted[_kind(point)]})
                self.watcher.finished(point, "wrong-result in another process")
        return trusted

    def _environment(self, outcome: Outcome) -> str:
        from bayesperf.measure.table import provenance_record

        identity, record = provenance_record(outcome.content, self.plan, self.campaign)
        self._append({"type": "environment", "provenance_id": identity, "record": record})
        return identity

    def _outcome(self, outcome: Outcome, provenance: str | None, targets: pd.DataFrame | None) -> None:
        point = outcome.point
        assert point is not None
        failure: Mapping[str, Any] | None = outcome.content if outcome.kind == "failed" else None
        if failure is None:
            record = {**outcome.content, "provenance_id": provenance}
            failure = self._above_ceiling(outcome, record, targets)
        if failure is None:
            self._append({"type": "done", "point": point.id, "record": record})
        else:
            self._append({"type": "failed", "point": point.id, "failure": dict(failure)})
            if failure["reason"] == "wrong-result":
                self._distrusted[_kind(point)] = dict(failure)
        self.watcher.finished(point, None if failure is None else f"{failure['reason']}: {failure['detail']}")

    def _above_ceiling(
        self, outcome: Outcome, record: Mapping[str, Any], targets: pd.DataFrame | None
    ) -> dict[str, Any] | None:
        if targets is None or outcome.point is None:
            return None
        import pandas as pd

        from bayesperf.measure.table import measurement_row
        from bayesperf.specs import above_ceiling

        row = measurement_row(outcome.point, record, self.machine, self.campaign)
        reason = above_ceiling(pd.DataFrame([row]), targets)[0]
        return None if reason is None else {"reason": "above-ceiling", "detail": str(CeilingError(reason))}

    def _append(self, entry: dict[str, Any]) -> None:
        if self.journal is not None:
            self.journal.append(entry)
        self.entries.append(entry)
