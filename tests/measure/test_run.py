"""The whole run, with real workers: tables, resume, repeat, and every fault that a run must survive."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.errors import InputError, MeasurementError, UnknownNameError
from bayesperf.measure.journal import exclusive, journal_path, lock_path
from bayesperf.measure.plan import Plan
from bayesperf.measure.run import failures_path, measure, plan_for, repeat
from bayesperf.schema import validate

MakeSuite = Callable[..., Path]


def entries(out: Path) -> list[dict[str, Any]]:
    """Intact journal entries after the header."""
    path = journal_path(out)
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines[1:]]


def finished(out: Path) -> list[str]:
    """Ids of the points that the journal holds, in order."""
    return [e["point"] for e in entries(out) if e["type"] in ("done", "failed")]


def test_table_of_a_real_run(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "m.parquet"
    table = measure(fault_suite("fine", processes=2, n=2), out=out, seed=3, campaign="monday", progress=False)
    assert len(table) == 4
    validate(table)
    assert set(table["process"]) == {"all-0", "all-1"}
    assert (table["campaign"] == "monday").all()
    assert (table["target"] == table["device"] + "-x" + table["n_devices"].astype(str)).all()
    assert (table["bytes"] == 8 * table["elements"].astype(float) * table["n_devices"]).all()
    row = table.iloc[0]
    assert len(row["samples_s"]) == len(row["samples_iterations"]) >= 9
    assert len(set(row["samples_iterations"])) >= 3
    assert row["time_se_s"] > 0
    assert 0 < row["time_s"] < 1e-3
    assert row["hlo_hash"]
    assert row["stop_reason"]
    assert row["compile_s"] > 0
    record = table.attrs["provenance"][row["provenance_id"]]
    assert record["jax"]["platform"] == "cpu"
    assert record["jax"]["local_devices"] == row["n_devices"]
    assert not journal_path(out).exists()
    assert not lock_path(out).exists()
    assert not failures_path(out).exists()

    read = bp.read_measurements(out)
    assert len(read) == 4
    assert read["measurement_id"].is_unique
    assert set(read["provenance_id"]) <= set(read.attrs["provenance"])
    assert Plan.from_json(read.attrs["facts"]["plan"], source="m").seed == 3
    text = json.dumps(read.attrs)
    assert os.uname().nodename not in text or len(os.uname().nodename) < 4


def test_the_package_is_called_like_its_main_function() -> None:
    # Modules of the package are imported above, which makes bp.measure the package.
    assert inspect.signature(bp.measure) == inspect.signature(measure)
    with pytest.raises(UnknownNameError, match="quick"):
        bp.measure("no such suite")


def test_same_call_on_a_complete_file_measures_nothing(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    suite = fault_suite("fine", "raise")
    first = measure(suite, out=out, seed=1, progress=False)
    before = out.stat().st_mtime_ns
    started = time.monotonic()
    again = measure(suite, out=out, progress=False)
    assert time.monotonic() - started < 1.0
    assert out.stat().st_mtime_ns == before
    assert list(again["time_s"]) == list(first["time_s"])
    assert list(again.attrs["failures"]["reason"]) == ["probe-error"]
    for options in ({"seed": 2}, {"campaign": "another"}):
        with pytest.raises(InputError, match="measured with"):
            measure(suite, out=out, progress=False, **options)
    with pytest.raises(InputError, match="another plan"):
        measure(fault_suite("fine"), out=out, progress=False)


def test_faults_become_typed_failures_and_the_rest_goes_on(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    suite = fault_suite("hang", "crash", "fold", "memory", "raise", "wrong", "fine", timeout_s=4.0)
    table = measure(suite, out=out, seed=0, progress=False)
    assert list(table["op"]) == ["fine"]
    failures = pd.read_parquet(failures_path(out)).set_index("op")
    assert failures["reason"].to_dict() == {
        "hang": "timeout",
        "crash": "crashed",
        "fold": "folded",
        "memory": "out-of-memory",
        "raise": "probe-error",
        "wrong": "wrong-result",
    }
    details, logs = failures["detail"].to_dict(), failures["log"].to_dict()
    assert "SIGSEGV" in details["crash"]
    assert "about to fail" in logs["crash"]
    assert "a probe of mine is broken" in details["raise"]
    assert "4 s" in details["hang"]


def test_nothing_measured_at_all_is_an_error_that_says_why(fault_suite: MakeSuite) -> None:
    with pytest.raises(MeasurementError, match="a probe of mine is broken"):
        measure(fault_suite("raise"), progress=False)


def test_a_run_whose_points_all_failed_is_begun_anew(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    for _ in range(2):
        with pytest.raises(MeasurementError, match="the same command tries again"):
            measure(fault_suite("raise"), out=out, progress=False)
        assert list(pd.read_parquet(failures_path(out))["reason"]) == ["probe-error"]
        assert not journal_path(out).exists()
    assert len(measure(fault_suite("fine"), out=out, progress=False)) == 1


def test_nothing_in_the_folder_it_runs_in_is_code(
    fault_suite: MakeSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    (folder / "bayesperf").mkdir(parents=True)
    (folder / "bayesperf" / "__init__.py").write_text("raise RuntimeError('not the installed package')")
    (folder / "psutil.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONSAFEPATH")
    assert len(measure(fault_suite("fine"), progress=False)) == 1
    assert not (folder / "ran").exists()


RUN = """
import sys
from bayesperf.measure.plan import Plan
from bayesperf.measure.run import measure
measure(sys.argv[1], out=sys.argv[2], seed=5, progress=False)
"""


def start(suite: Path, out: Path, points: int) -> subprocess.Popen[bytes]:
    """Start a run in a process of its own and wait until its journal holds some points."""
    process = subprocess.Popen([sys.executable, "-c", RUN, str(suite), str(out)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(finished(out)) < points:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def test_killed_run_resumes_and_measures_only_what_is_missing(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    suite = fault_suite("slow", n=8)
    process = start(suite, out, points=3)
    workers = child_processes(process.pid)
    process.kill()
    process.wait()
    assert not out.exists()
    kept = {e["point"]: e for e in entries(out) if e["type"] == "done"}
    assert 3 <= len(kept) < 8
    with journal_path(out).open("ab") as journal:
        journal.write(b'{"type": "done", "point": "cut sho')  # what a crash in mid-write leaves

    table = measure(suite, out=out, progress=False)
    assert len(table) == 8
    assert table["point_id"].is_unique
    for _, row in table[table["point_id"].isin(list(kept))].iterrows():
        assert row["time_s"] == kept[row["point_id"]]["record"]["slope_s"], "a point was measured twice"
    assert Plan.from_json(table.attrs["facts"]["plan"], source="m").seed == 5
    assert table["campaign"].nunique() == 1
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker outlived its killed parent"
        time.sleep(0.05)


def child_processes(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_interrupt_keeps_what_was_measured(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    process = start(fault_suite("slow", n=8), out, points=2)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    assert len(finished(out)) >= 2
    assert not out.exists()
    assert not lock_path(out).exists()


def test_two_runs_cannot_write_one_file(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    with exclusive(out), pytest.raises(InputError, match="another run"):
        measure(fault_suite("fine"), out=out, progress=False)


def test_repeat_runs_the_same_plan_in_a_campaign_of_its_own(fault_suite: MakeSuite, tmp_path: Path) -> None:
    first = measure(fault_suite("fine", n=3), out=tmp_path / "a.parquet", seed=7, campaign="a", progress=False)
    second = repeat(tmp_path / "a.parquet", out=tmp_path / "b.parquet", campaign="b", progress=False)
    assert list(second["point_id"]) == list(first["point_id"])
    assert list(second["hlo_hash"]) == list(first["hlo_hash"])
    assert set(second["campaign"]) == {"b"}
    joined = bp.concat([bp.read_measurements(tmp_path / f"{name}.parquet") for name in "ab"])
    assert len(joined) == 6
    again = repeat(tmp_path / "a.parquet", out=tmp_path / "b.parquet", progress=False)
    assert list(again["time_s"]) == list(second["time_s"])
    with pytest.raises(InputError, match="file of its own"):
        repeat(tmp_path / "a.parquet", out=tmp_path / "a.parquet")
    measure(fault_suite("fine"), out=tmp_path / "c.parquet", progress=False)
    with pytest.raises(InputError, match="another plan"):
        repeat(tmp_path / "a.parquet", out=tmp_path / "c.parquet", progress=False)


def test_journal_left_by_a_kill_after_the_merge_is_removed(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out, suite = tmp_path / "m.parquet", fault_suite("slow", n=3)
    process = start(suite, out, points=1)
    process.kill()
    process.wait()
    journal = journal_path(out).read_bytes()
    measure(suite, out=out, progress=False)
    journal_path(out).write_bytes(journal)
    measure(suite, out=out, progress=False)
    assert not journal_path(out).exists()


def test_repeat_of_a_foreign_table_is_refused(tmp_path: Path, make_table: Any) -> None:
    bp.write_measurements(make_table(), tmp_path / "f.parquet")
    with pytest.raises(InputError, match="holds no plan"):
        repeat(tmp_path / "f.parquet")


def test_a_file_in_the_way_is_not_overwritten(fault_suite: MakeSuite, tmp_path: Path, make_table: Any) -> None:
    out = tmp_path / "f.parquet"
    bp.write_measurements(make_table(), out)
    content = out.read_bytes()
    with pytest.raises(InputError, match="not written by measure"):
        measure(fault_suite("fine"), out=out, progress=False)
    assert out.read_bytes() == content


def test_journal_of_another_suite_is_refused(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    process = start(fault_suite("slow", n=4), out, points=1)
    process.kill()
    process.wait()
    with pytest.raises(InputError, match="another run"):
        measure(fault_suite("fine"), out=out, progress=False)
    assert len(finished(out)) >= 1


def test_foreign_journal_is_refused(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    journal_path(out).write_text('{"something": "else"}\n')
    with pytest.raises(InputError, match="not a bayesperf journal"):
        measure(fault_suite("fine"), out=out, progress=False)


def test_rate_above_a_ceiling_is_a_failure(fault_suite: MakeSuite) -> None:
    suite = fault_suite("fine")
    device = measure(suite, progress=False)["device"].iloc[0]
    targets = pd.DataFrame({"peak_flops_float32": [1.0]}, index=pd.Index([device], name="device"))
    with pytest.raises(MeasurementError, match="above-ceiling"):
        measure(suite, progress=False, targets=targets)


def test_out_must_be_parquet(fault_suite: MakeSuite, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.parquet"):
        measure(fault_suite("fine"), out=tmp_path / "m.csv")


def test_wrong_result_in_one_process_distrusts_its_kind_in_all(fault_suite: MakeSuite) -> None:
    table = measure(fault_suite("fine", "wrong", processes=2), progress=False)
    assert set(table["op"]) == {"fine"}
    assert list(table.attrs["failures"]["reason"]) == ["wrong-result"] * 2


def test_resumed_run_keeps_seed_and_campaign(fault_suite: MakeSuite, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    suite = fault_suite("slow", n=4)
    process = start(suite, out, points=1)
    process.kill()
    process.wait()
    with pytest.raises(InputError, match="seed 5"):
        measure(suite, out=out, seed=6, progress=False)
    with pytest.raises(InputError, match="begun as campaign"):
        measure(suite, out=out, campaign="another", progress=False)
    journal = journal_path(out).read_text()
    journal_path(out).write_text(journal.replace('"machine": "', '"machine": "another-'))
    with pytest.raises(InputError, match="was begun on another-"):
        measure(suite, out=out, progress=False)
    assert len(finished(out)) >= 1


def test_order_is_random_and_from_the_seed(fault_suite: MakeSuite) -> None:
    suite = fault_suite("fine", n=12, processes=2)
    orders = [[p.config["elements"] for p in plan_for(suite, seed=s).points] for s in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0][:12] != sorted(orders[0][:12])
    assert orders[0][:12] != orders[0][12:]
    assert np.array_equal(sorted(orders[0][:12]), sorted(orders[0][12:]))
