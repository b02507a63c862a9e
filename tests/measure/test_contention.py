"""Victims alone and beside aggressors, with real workers, threads and processes; and what can go wrong with company."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest

from bayesperf import plugins
from bayesperf.errors import MeasurementError
from bayesperf.measure import company, helpers
from bayesperf.measure.company import Together
from bayesperf.measure.machine import Machine, deal_processors
from bayesperf.measure.overlap import Launches
from bayesperf.measure.plan import make_plan
from bayesperf.measure.points import Corunner
from bayesperf.measure.run import measure, plan_for
from bayesperf.measure.suites import Suite, load_suite
from bayesperf.schema import validate

MakeSuite = Callable[..., Path]
CPU = Machine("cpu", "test-4-core", 4, 24e9, "jax")


def by_corunners(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    labels = table["corunners"].fillna("alone")
    return {str(label): table[labels == label] for label in labels.unique()}


def test_victim_alone_and_beside_in_threads_and_processes(fault_suite: MakeSuite) -> None:
    suite = fault_suite("fine", aggressors=["slow"], beside=[0, 1, 2], mode=["processes", "threads"])
    # A machine that others fill may spoil a point; three times in a row it is not the machine.
    for _ in range(3):
        table = measure(suite, seed=1, progress=False)
        if not len(table.attrs["failures"]):
            break
    assert not len(table.attrs["failures"]), table.attrs["failures"]["detail"].tolist()
    validate(table)
    one = table[table["scope"] == "one"] if table["scope"].nunique() > 1 else table
    groups = by_corunners(one)
    assert set(groups) == {"alone", "slow:1", "slow:2"}
    for label, rows in groups.items():
        assert set(rows["mode"]) == {"plain", "threads"}
        threads = rows["mode"] == "threads"
        assert rows["target"].str.endswith("-threads").tolist() == threads.tolist()
        if label == "alone":
            assert rows["overlap"].isna().all()
            assert rows["alone_s"].isna().all()
            continue
        assert (rows["alone_s"] > 0).all()
        assert (rows["alone_se_s"] > 0).all()
        assert [len(s) for s in rows["alone_samples_s"]] == [len(n) for n in rows["alone_samples_iterations"]]
        assert (rows["overlap"] >= 0.9).all()
        assert (rows["overlap"] <= 1.0 + 1e-9).all()
        # What aggressors did meanwhile, by their formula: 8 bytes and one flop per element.
        assert (rows["corunner_bytes_per_s"] > 0).all()
        assert (rows["corunner_bytes_per_s"] / rows["corunner_flops_per_s"]).round(6).eq(8.0).all()
        assert rows["corunner_how"].tolist() == ["threads" if t else "processes" for t in threads]


def test_company_s_faults_are_the_point_s_and_the_rest_goes_on(fault_suite: MakeSuite) -> None:
    suite = fault_suite("fine", aggressors=["raise", "fold", "crash", "fine"], beside=[0, 1])
    table = measure(suite, seed=0, progress=False)
    failures = table.attrs["failures"].set_index("corunners")
    reasons = failures["reason"].to_dict()
    assert reasons == {"raise:1": "probe-error", "fold:1": "folded", "crash:1": "corunner-failed"}
    assert "a probe of mine is broken" in failures["detail"]["raise:1"]
    assert "SIGSEGV" in failures["detail"]["crash:1"]
    # The helper that died was replaced.
    assert "fine:1" in set(table["corunners"].dropna())


def test_hung_aggressor_is_ended_by_the_watchdog_with_all_its_processes(fault_suite: MakeSuite) -> None:
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    suite = fault_suite("fine", aggressors=["hang"], beside=[0, 1], timeout_s=6.0)
    table = measure(suite, seed=0, progress=False)
    assert list(table.attrs["failures"]["reason"]) == ["timeout"]
    assert table["corunners"].isna().all()
    deadline = time.monotonic() + 5
    while left := {p.pid for p in psutil.Process().children(recursive=True)} - before:
        assert time.monotonic() < deadline, f"processes {left} outlived their run"
        time.sleep(0.05)
    workers = [p for p in psutil.process_iter(["cmdline"]) if "bayesperf.measure.worker" in (p.info["cmdline"] or [])]
    assert not [p for p in workers if p.ppid() == 1 and p.create_time() > time.time() - 120], "an orphan is left"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin")
def test_pinned_company_runs_where_it_should(fault_suite: MakeSuite) -> None:
    table = measure(fault_suite("fine", aggressors=["fine"], mode=["pinned"]), seed=0, progress=False)
    pinned = table[table["mode"] == "pinned"]
    assert set(pinned["corunners"].fillna("alone")) == {"alone", "fine:1"}
    assert pinned["target"].str.endswith("-pinned").all()
    dealt = deal_processors(1)
    assert dealt is not None
    assert set(pinned["cpus"]) == {"+".join(map(str, dealt[0]))}
    assert set(pinned["corunner_cpus"].dropna()) == {str(dealt[1][0])}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin")
def test_company_on_the_victim_s_own_processor(fault_suite: MakeSuite) -> None:
    table = measure(fault_suite("fine", aggressors=["fine"], mode=["one-processor"]), seed=0, progress=False)
    shared = table[table["mode"] == "one-processor"]
    assert set(shared["corunners"].fillna("alone")) == {"alone", "fine:1"}
    beside = shared[shared["corunners"].notna()]
    assert beside["corunner_cpus"].tolist() == beside["cpus"].tolist()
    assert beside["target"].str.endswith("-one-processor").all()


def test_processors_are_dealt_so_that_aggressors_have_others() -> None:
    dealt = deal_processors(1)
    if dealt is None:
        pytest.skip("this system cannot pin")
    own, others = dealt
    assert len(own) == 1
    if len(os.sched_getaffinity(0)) > 1:
        assert not set(own) & set(others)


class Late:
    """An aggressor whose launches are what the test says."""

    pid: int | None = None
    cpus: list[int] | None = None

    def __init__(self, *spans: tuple[float, float], fails: str = ""):
        self.spans, self.fails, self.calls = spans, fails, list[str]()

    def start(self) -> None:
        self._call("start")

    def await_running(self) -> None:
        self._call("await_running")

    def stop(self) -> Launches:
        self._call("stop")
        return Launches(self.spans, 1)

    def release(self) -> None:
        self._call("release")

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name == self.fails:
            raise MeasurementError("corunner-failed", name)


def together(*members: Any) -> Together:
    config = {"op": "stream_copy", "dtype": "float32", "elements": 1024}
    corunner = Corunner(probe="stream", config=config, count=1, working_set_bytes=8192)
    return Together([(corunner, member) for member in members])


def test_an_aggressor_that_did_not_overlap_is_refused() -> None:
    group = together(Late((0.0, 5.0)), Late((2.0, 5.0)))
    with group.at_work():
        pass
    with pytest.raises(MeasurementError) as caught:
        group.seen([(1.0, 3.0)])
    assert caught.value.reason == "no-overlap"


def test_rates_are_of_the_timed_region() -> None:
    group = together(Late((0.0, 2.0), (2.0, 4.0)))
    with group.at_work():
        pass
    seen = group.seen([(1.0, 2.0), (2.0, 3.0)])
    work = plugins.load("probe", "stream").work({"op": "stream_copy", "dtype": "float32", "elements": 1024})
    # Half of each of two launches of one iteration, in two seconds.
    assert seen["corunner_bytes_per_s"] == pytest.approx(work.bytes / 2)
    assert seen["overlap"] == pytest.approx(1.0)


@pytest.mark.parametrize("fails", ["start", "await_running", "stop"])
def test_all_are_stopped_whatever_fails(fails: str) -> None:
    members = [Late((0.0, 1.0), fails=fails), Late((0.0, 1.0))]
    with pytest.raises(MeasurementError), together(*members).at_work():
        pass
    assert all(member.calls[-1] == "stop" for member in members)


def test_an_error_of_the_victim_is_not_hidden_by_its_company() -> None:
    member = Late((0.0, 1.0), fails="stop")
    with pytest.raises(MeasurementError, match="nonlinear"), together(member).at_work():
        raise MeasurementError("nonlinear", "the victim")


SUITE = """
description = "x"
processes = 2
scopes = ["one", "all"]
[[probe]]
name = "stream"
sweep = { ops = ["stream_triad"], working_set_bytes = [400e3] }
[[contention]]
victim = { name = "stream", sweep = { ops = ["stream_triad"], working_set_bytes = [400e3] } }
aggressors = [
    { name = "stream", sweep = { ops = ["stream_read"], working_set_bytes = [1e6, 1e8] } },
    { name = "matmul", sweep = { dtypes = ["float32"], shapes = [512] } },
]
n = [0, 1, 2]
mode = ["processes", "threads", "pinned"]
"""


def suite_of(tmp_path: Path, text: str) -> Suite:
    path = tmp_path / "s.toml"
    path.write_text(text)
    return load_suite(path)


def test_plan_of_a_contention_suite(tmp_path: Path) -> None:
    plan = make_plan(suite_of(tmp_path, SUITE), CPU, 1)
    assert len({p.id for p in plan.points}) == len(plan.points)
    # Per process: one plain point in "all"; in "one", of each mode, one alone and three kinds beside, one or two.
    assert len(plan.points) == 2 * (1 + 3 * (1 + 3 * 2))
    batches = plan.batches()
    assert {(b.scope, b.mode) for b in batches} == {
        ("all", "plain"),
        *(("one", m) for m in ("plain", "threads", "pinned")),
    }
    threads = next(b for b in batches if b.mode == "threads")
    assert (threads.threads_beside, threads.processes_beside) == (2, 0)
    plain = next(b for b in batches if (b.scope, b.mode) == ("one", "plain"))
    assert (plain.threads_beside, plain.processes_beside) == (0, 2)
    labels = {p.beside.label for p in plan.points if p.beside is not None}
    assert labels == {f"{op}:{n}" for op in ("stream_read", "matmul") for n in (1, 2)}
    # A resumed run starts its workers as the first one did, whatever is left to do.
    done = {p.id for p in plan.points if p.beside is not None and p.beside.count == 2}
    assert {b.threads_beside for b in plan.batches(skip=done) if b.mode == "threads"} == {2}
    again = plan.from_json(plan.model_dump_json(), source="x")
    assert again == plan


def test_plain_points_keep_the_ids_they_had_without_contention(tmp_path: Path) -> None:
    plain = suite_of(tmp_path, SUITE[: SUITE.index("[[contention]]")])
    ids = {p.id for p in make_plan(plain, CPU, 1).points}
    assert ids < {p.id for p in make_plan(suite_of(tmp_path, SUITE), CPU, 1).points}


def test_all_aggressors_together(tmp_path: Path) -> None:
    plan = make_plan(suite_of(tmp_path, SUITE + "together = true\n"), CPU, 1)
    assert {p.beside.label for p in plan.points if p.beside is not None} == {
        "matmul:1+stream_read:2", "matmul:2+stream_read:4",
    }  # fmt: skip


@pytest.mark.parametrize("role", ["fit", "heldout"])
def test_role_of_an_experiment_is_the_role_of_its_points(role: str, tmp_path: Path) -> None:
    plan = make_plan(suite_of(tmp_path, SUITE + f'role = "{role}"\n'), CPU, 1)
    assert {p.role for p in plan.points if p.beside is not None} == {role}
    # Its victims alone as well, but nobody else's.
    assert role in {p.role for p in plan.points if p.beside is None and p.scope == "one"}
    assert {p.role for p in plan.points if p.scope == "all"} == {"fit"}


def test_memory_of_the_company_counts(tmp_path: Path) -> None:
    plan = make_plan(suite_of(tmp_path, SUITE), CPU, 1)
    alone = next(p for p in plan.points if p.beside is None and p.scope == "one")
    crowded = max(plan.points, key=lambda p: p.bytes_needed(shared=True))
    assert crowded.bytes_needed(shared=True) == pytest.approx(alone.bytes_needed(shared=True) + 4e8, rel=0.01)
    assert crowded.bytes_needed(shared=False) == pytest.approx(alone.bytes_needed(shared=False) + 2e8, rel=0.01)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("n = [0, 1, 2]", "n = [-1]"),
        ('mode = ["processes", "threads", "pinned"]', 'mode = ["fibres"]'),
        ("aggressors = [", "offenders = ["),
    ],
)
def test_bad_contention_is_refused_by_key(change: str, names: str, tmp_path: Path) -> None:
    from bayesperf.errors import InputError

    with pytest.raises(InputError, match="contention"):
        suite_of(tmp_path, SUITE.replace(change, names))


def test_dry_run_lists_who_runs_beside(fault_suite: MakeSuite) -> None:
    described = plan_for(fault_suite("fine", aggressors=["slow"]), seed=1).describe()
    assert set(described["corunners"].dropna()) == {"slow:1"}
    alone, beside = described["corunners"].isna(), described["corunners"].notna()
    assert described[beside]["seconds"].min() > described[alone]["seconds"].min()


def test_waits_are_shorter_than_the_default_watchdog() -> None:
    # An aggressor that hangs ends as its own failure before the watchdog ends the whole worker.
    assert max(company.WAIT_S, helpers.ANSWER_S) < Suite.model_fields["budget"].default.timeout_s


RUN = """
import sys
from bayesperf.measure.run import measure
measure(sys.argv[1], out=sys.argv[2], seed=5, progress=False)
"""


def test_killed_run_leaves_no_aggressor_behind(fault_suite: MakeSuite, tmp_path: Path) -> None:
    suite = fault_suite("slow", n=4, aggressors=["fine"], beside=[1])
    process = subprocess.Popen([sys.executable, "-c", RUN, str(suite), str(tmp_path / "m.parquet")])
    # The run's worker, and that one's helper.
    deadline = time.monotonic() + 60
    while len(family := psutil.Process(process.pid).children(recursive=True)) < 2:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    gone, alive = psutil.wait_procs(family, timeout=15)
    assert not alive
    assert len(gone) >= 2
