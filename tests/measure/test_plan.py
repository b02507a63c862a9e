"""The saved plan: round trip, content id, batches."""

from __future__ import annotations

import itertools

import pytest

from bayesperf.errors import UnsupportedFileError
from bayesperf.measure.machine import Machine
from bayesperf.measure.plan import Plan, make_plan
from bayesperf.measure.suites import load_suite

MACHINE = Machine("cpu", "test-2-core", 2, 24e9, "jax")


def make(seed: int = 1) -> Plan:
    return make_plan(load_suite("quick"), MACHINE, seed)


def test_round_trip() -> None:
    plan = make()
    again = Plan.from_json(plan.model_dump(mode="json"), source="x")
    assert again == plan
    assert again.id == plan.id


def test_id_depends_on_content() -> None:
    assert make().id == make().id
    assert make(1).id != make(2).id


def test_point_ids_do_not_depend_on_order_or_seed() -> None:
    assert {p.id for p in make(1).points} == {p.id for p in make(2).points}
    assert [p.id for p in make(1).points] != [p.id for p in make(2).points]


def test_batches_are_fresh_processes_and_skip_what_is_done() -> None:
    plan = make()
    batches = plan.batches()
    assert len(batches) == 6
    assert sum(len(b.points) for b in batches) == len(plan.points)
    for batch in batches:
        assert {(p.scope, p.process) for p in batch.points} == {(batch.scope, batch.process)}
    done = {p.id for p in batches[0].points} | {batches[1].points[0].id}
    rest = plan.batches(skip=done)
    assert len(rest) == 5
    assert not done & {p.id for b in rest for p in b.points}


def test_configurations_are_interleaved() -> None:
    ops = [p.config["op"] for p in make().batches()[0].points]
    changes = sum(a != b for a, b in itertools.pairwise(ops))
    assert changes > len(ops) / 2


@pytest.mark.parametrize("content", [None, {}, {"version": 1, "points": 3}])
def test_damaged_plan_is_refused(content: object) -> None:
    with pytest.raises(UnsupportedFileError, match=r"file\.parquet: its plan is damaged"):
        Plan.from_json(content, source="file.parquet")


def test_newer_plan_is_refused() -> None:
    with pytest.raises(UnsupportedFileError, match="upgrade"):
        Plan.from_json({**make().model_dump(mode="json"), "version": 99}, source="x")
