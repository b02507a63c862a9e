"""Points that span devices, of one process and of two on loopback: layout, table, and a process that dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bayesperf as bp
from bayesperf.errors import InputError
from bayesperf.measure.cluster import jobs_of
from bayesperf.measure.machine import Machine
from bayesperf.measure.plan import make_plan
from bayesperf.measure.run import measure
from bayesperf.measure.suites import Suite

EIGHT = Machine("gpu", "test-gpu", 8, 64e9, "jax")

TOML = """
description = "collectives"
processes = 1
scopes = ["all"]

[budget]
point_s = 0.05
longest_share = 0.1
retries = 10
timeout_s = {timeout_s}

[[probe]]
name = "{probe}"
sweep = {sweep}
"""


def suite(**sweep: Any) -> Suite:
    full = {"ops": ["all_reduce"], "message_bytes": [4e3], **sweep}
    return Suite.model_validate(
        {"name": "c", "description": "c", "processes": 1, "scopes": ["one", "all"],
         "probe": [{"name": "collectives", "sweep": full}]}
    )  # fmt: skip


def written(tmp_path: Path, sweep: str, probe: str = "collectives", timeout_s: float = 60.0) -> Path:
    path = tmp_path / "suite.toml"
    path.write_text(TOML.format(sweep=sweep, probe=probe, timeout_s=timeout_s))
    return path


def test_numbers_of_devices_are_those_of_the_machine() -> None:
    points = make_plan(suite(n_devices=[2, 3, 8, 16, "all"]), EIGHT, 0).points
    assert sorted(p.n_devices for p in points) == [2, 3, 8]
    assert {p.scope for p in points} == {"all"}


def test_processes_have_workers_of_their_own() -> None:
    plan = make_plan(suite(n_devices=[4, 8], n_processes=[1, 2, 4]), EIGHT, 0)
    batches = {batch.n_processes: batch for batch in plan.batches()}
    assert set(batches) == {1, 2, 4}
    assert {batch.n_devices for batch in batches.values()} == {8}
    assert {p.worker for p in batches[2].points} == {"all-2-processes-0"}


def test_a_suite_that_needs_more_devices_says_so() -> None:
    alone = Machine("cpu", "test-1-core", 1, 64e9, "jax")
    with pytest.raises(InputError, match=r"1 cpu device\(s\)"):
        make_plan(suite(n_devices=[2, "all"]), alone, 0)


def test_jobs_share_an_address_and_the_devices() -> None:
    jobs = jobs_of(2, 8)
    assert len({job["address"] for job in jobs}) == 1
    assert jobs[0]["address"].startswith("127.0.0.1:")
    assert [job["process"] for job in jobs] == [0, 1]
    assert {job["devices_each"] for job in jobs} == {4}


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host of two devices, whatever its cores."""
    monkeypatch.setattr("bayesperf.measure.machine.cpu_devices", lambda: 2)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")


@pytest.mark.usefixtures("two_devices")
def test_one_process_and_two_measure_the_same_collectives(tmp_path: Path) -> None:
    sweep = '{ ops = ["all_reduce", "ppermute"], message_bytes = [4e3], n_devices = ["all"], n_processes = [1, 2] }'
    table = measure(written(tmp_path, sweep), seed=1, progress=False)
    assert not len(table.attrs["failures"])
    assert len(table) == 4
    assert (table["n_devices"] == 2).all()
    assert set(table["process"]) == {"all-0", "all-2-processes-0"}
    apart = table["n_processes"] == 2
    assert apart.sum() == 2
    assert set(table.loc[apart, "target"]) == {f"{table['device'].iloc[0]}-x2-2-processes"}
    # Work of one rank, not of both.
    assert (table["bytes"] == 2 * table["message_bytes"]).all()
    assert table["algbw_bytes_per_s"].to_numpy() == pytest.approx(table["message_bytes"] / table["time_s"])
    # Two ranks: the bus factor of an all-reduce is 2 (n - 1) / n = 1, as is that of a ring.
    assert table["busbw_bytes_per_s"].to_numpy() == pytest.approx(table["algbw_bytes_per_s"].to_numpy())
    processes = {r["jax"]["processes"] for r in table.attrs["provenance"].values()}
    assert processes == {1, 2}


PAIR = '''
"""Spans two processes, of which the second has faults of its own."""

import os

import jax
import numpy as np

from bayesperf.probe import AXIS, LoopExpectation, Probe, Work, chained, uniform


class Pair(Probe):
    name = "pair"
    ops = ("fine", "raise", "die")

    def configurations(self, sweep):
        return [{"op": op, "dtype": "float32", "elements": 64} for op in sweep["ops"]]

    def work(self, config):
        return Work(0.0, 512.0, 768.0, 512.0, 64, message_bytes=256.0, ranks=2, processes=2)

    def kernel(self, config, rng):
        if jax.process_index() == 1 and config["op"] == "raise":
            raise RuntimeError("only here")
        if jax.process_index() == 1 and config["op"] == "die":
            os._exit(9)
        x, y = uniform(rng, (2, 64)), uniform(rng, (2, 64))
        expectation = LoopExpectation((("all-reduce", "all-reduce-start"),))
        return chained(lambda x: jax.lax.psum(x, AXIS), x, y, (), expectation)

    def reference(self, config, kernel, iterations):
        x = np.array(kernel.carry[0], dtype=np.float64)
        for _ in range(iterations):
            y = np.tile(x.sum(axis=0), (2, 1))
            x[:, 0] = (1.0 + 1e-3 * np.tanh(y[:, 0])).astype(np.float32)
        return x, y


probe = Pair()
'''


@pytest.mark.usefixtures("two_devices")
def test_a_process_that_fails_or_dies_costs_its_point_only(
    tmp_path: Path, install_probe: Callable[[str, str], None]
) -> None:
    install_probe("pair", PAIR)
    table = measure(written(tmp_path, '{ ops = ["fine", "raise", "die"] }', probe="pair"), seed=1, progress=False)
    failures = table.attrs["failures"].set_index("op")["reason"]
    assert list(table["op"]) == ["fine"]
    assert failures["raise"] == "process-failed"
    assert failures["die"] == "crashed"


@pytest.mark.usefixtures("two_devices")
def test_transfers_are_measured_where_there_is_no_program(tmp_path: Path) -> None:
    sweep = '{ ops = ["copy_h2d", "copy_d2h", "copy_p2p"], message_bytes = [64e3] }'
    table = measure(written(tmp_path, sweep, probe="transfer"), seed=1, progress=False)
    assert not len(table.attrs["failures"])
    assert set(table["op"]) == {"copy_h2d", "copy_d2h", "copy_p2p"}
    assert table["hlo_hash"].isna().all()
    assert (table["bytes"] == table["message_bytes"]).all()
    out = tmp_path / "m.parquet"
    bp.measure(written(tmp_path, sweep, probe="transfer"), out=out, seed=1, progress=False)
    assert len(bp.read_measurements(out)) == 3
