"""Labels, shapes and processors of co-runners, from our tables and from other people's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from _contention import KERNELS, Target, table

from bayesperf.errors import TableError
from bayesperf.models.contention.catalogue import Catalogue, shape_of
from bayesperf.models.contention.demand import Kernel, rates_of
from bayesperf.models.contention.encode import encode
from bayesperf.models.contention.mixes import Places, code_mixes, corunners_of, cpus_in, members_of
from bayesperf.schema import validate, with_ids

TRIAD = Kernel("stream_triad", "float32", 2e5, 1.2e6, 1.2e6, np.log(1e-4), 1.0)
SMALL = Kernel("stream_triad", "float32", 2e3, 1.2e4, 1.2e4, np.log(1e-6), 1.0)


def shape(elements: int, op: str = "stream_triad") -> frozenset[tuple[str, str]]:
    return shape_of({"op": op, "dtype": "float32", "elements": elements, "m": np.nan})


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue([("a", shape(100_000), TRIAD), ("a", shape(1000), SMALL), ("b", shape(100_000), TRIAD)])


@pytest.mark.parametrize(
    ("label", "counts"),
    [
        ("stream_triad:2", {"stream_triad": 2}),
        ("matmul:1+stream_triad:3", {"matmul": 1, "stream_triad": 3}),
        ("llama 7b decode", {"llama 7b decode": 1}),
        ("a:1 + a:1", {"a": 2}),
        ("a : 2", {"a": 2}),
        ("2 x a, b", {"a": 2, "b": 1}),
        ("3*a", {"a": 3}),
        ("a*3 + b x 2", {"a": 3, "b": 2}),
        ("conv3x3", {"conv3x3": 1}),
        ("3x3conv", {"3x3conv": 1}),
    ],
)
def test_labels(label: str, counts: dict[str, int]) -> None:
    assert corunners_of(label) == counts


@pytest.mark.parametrize(
    "label", ["matmul:", ":2", "matmul:0", "matmul:two", "a:1++b:1", "a:²", "a:1000000000", "none", "2", "True"]
)
def test_bad_labels_are_refused_by_column(label: str) -> None:
    with pytest.raises(TableError, match="corunners"):
        corunners_of(label)


def test_one_mix_has_one_name() -> None:
    rows = table(Target("box"), [KERNELS[:2]], 1, noise=0.0, campaigns=1).drop(columns="measurement_id")
    beside = rows[rows["corunners"].notna()]
    said = ["a:1+b:2", "b:2+a", "2 x b, a:1", "b:1+a+b"]
    spelled = pd.concat([rows, *(beside.assign(corunners=label) for label in said)], ignore_index=True)
    found = validate(spelled)["corunners"]
    assert set(found.dropna()) == {"stream_triad:1", "a:1+b:2"}
    assert encode(with_ids(validate(spelled), source="test"), None).pairs[1].count("a:1+b:2") == 1
    # Without shapes, processors are told in the order of the label.
    placed = validate(spelled.assign(corunner_cpus="0; 1; 2"))["corunners"]
    assert list(placed[-3:]) == said[1:]
    with pytest.raises(TableError, match=r"row \d+, column corunners.*empty"):
        validate(spelled.assign(corunners="none"))


@pytest.mark.parametrize(
    ("label", "shapes", "says"),
    [
        ("matmul:3", "op=stream_triad elements=5", "not in corunners"),
        ("stream_triad:3", "op=stream_triad elements=5; op=stream_triad elements=6", "equally many"),
        ("stream_triad:1", "100 elements", "write op="),
    ],
)
def test_shapes_that_contradict_the_label_are_refused(catalogue: Catalogue, label: str, shapes: str, says: str) -> None:
    with pytest.raises(TableError, match=says):
        members_of("a", {"corunners": label, "corunner_shapes": shapes}, catalogue, None)


def test_an_aggressor_of_another_target_is_told(catalogue: Catalogue) -> None:
    row = {"corunners": "stream_triad:1", "corunner_shapes": "op=stream_triad dtype=float32 elements=1000"}
    (member,), (note,) = members_of("b", row, catalogue, None)
    assert member.kernel.bytes == SMALL.bytes
    assert np.isnan(member.kernel.log_time)
    assert "not measured alone on b" in note


def test_shapes_name_the_kernel_and_processors_its_place(catalogue: Catalogue) -> None:
    row = {
        "corunners": "stream_triad:3",
        "corunner_shapes": "op=stream_triad dtype=float32 elements=100000",
        "corunner_cpus": "1; 2; 1",
    }
    members, notes = members_of("a", row, catalogue, None)
    assert not notes
    assert {(m.count, m.kernel, m.cpus) for m in members} == {(2, TRIAD, frozenset({1})), (1, TRIAD, frozenset({2}))}


def test_kinds_that_share_a_label_run_equally_often(catalogue: Catalogue) -> None:
    shapes = "; ".join(f"op=stream_triad dtype=float32 elements={n}" for n in (1000, 100_000))
    members, _ = members_of("a", {"corunners": "stream_triad:4", "corunner_shapes": shapes}, catalogue, None)
    assert {(m.count, m.kernel) for m in members} == {(2, SMALL), (2, TRIAD)}


def test_without_shapes_the_average_of_the_operation_and_a_note(catalogue: Catalogue) -> None:
    (member,), (note,) = members_of("a", {"corunners": "stream_triad:2"}, catalogue, None)
    assert member.count == 2
    assert SMALL.bytes < member.kernel.bytes < TRIAD.bytes
    assert "average" in note
    (other,), (note,) = members_of("c", {"corunners": "stream_triad"}, catalogue, None)
    assert np.isnan(other.kernel.log_time)
    assert "other targets" in note
    (unknown,), (note,) = members_of("a", {"corunners": "fortnite:1"}, catalogue, None)
    assert np.isnan(unknown.kernel.flops)
    assert "half" in note
    assert SMALL.working_set < unknown.kernel.working_set < TRIAD.working_set


def test_a_probe_s_shape_that_was_not_measured_is_known_by_formula(catalogue: Catalogue) -> None:
    row = {"corunners": "matmul:1", "corunner_shapes": "op=matmul dtype=float32 m=64 n=64 k=64"}
    (member,), notes = members_of("a", row, catalogue, None)
    assert not notes
    assert member.kernel.flops == 2 * 64**3


def test_processors_of_a_kernel_never_measured_are_those_of_kernels_as_long() -> None:
    long = Kernel("matmul", "float32", 1e10, 1e6, 1e6, np.log(1e-2), 1.9)
    known = Catalogue([("a", shape(1), SMALL), ("a", shape(2), long)])
    assert known.threads("a", "softmax", 1e9, 1e9) == pytest.approx(1.9, abs=0.01)
    assert known.threads("a", "softmax", 1e3, 1e4) == pytest.approx(1.0, abs=0.01)
    assert known.threads("a", "matmul", 1e3, 1e4) == 1.9
    assert known.threads("elsewhere", "matmul", 1e3, 1e4) == 1.0


def test_places_are_those_of_the_target_where_a_row_has_none(catalogue: Catalogue) -> None:
    places = Places(frozenset({0}), (frozenset({1}),))
    (member,), _ = members_of("a", {"corunners": "stream_triad:2"}, catalogue, places)
    assert (member.count, member.cpus) == (2, frozenset({1}))


@pytest.mark.parametrize(("text", "cpus"), [("0+1", {0, 1}), ("3", {3}), ("unknown", None), (None, None), ("", None)])
def test_processors(text: str | None, cpus: set[int] | None) -> None:
    assert cpus_in(text) == (None if cpus is None else frozenset(cpus))


def test_mixes_are_coded_by_shares_and_places() -> None:
    rows = table(Target("box"), [KERNELS[:2]], 1, noise=0.0)
    alone = rows[rows["corunners"].isna()].reset_index(drop=True)
    times = np.log(alone["time_s"].to_numpy(float))
    rates = rates_of(alone, times, np.log(alone["working_set_bytes"].to_numpy(float)))
    matmul, triad = (
        Kernel(r["op"], "float32", r["flops"], r["bytes"], r["working_set_bytes"], np.log(r["time_s"]))
        for r in alone.drop_duplicates("op").to_dict("records")
    )
    beside, _ = members_of("box", {"corunners": "stream_triad:2"}, Catalogue([("box", frozenset(), triad)]), None)
    mix = code_mixes(["box"], [(matmul, None)], [beside], rates)
    assert mix.compute[0, 0] == pytest.approx(1.0)
    # Its unit was only seen waiting for memory, which is no compute rate.
    assert mix.compute[0, 1] < 0.05
    np.testing.assert_allclose(mix.memory, [[0.1, 1.0]], rtol=1e-6)
    assert mix.count.tolist() == [[1, 2]]
    assert np.isnan(mix.capacity).all()
    assert mix.others.tolist() == [[[0, 2], [1, 1]]]
