"""Loops and branches of programs of other backends, as text: multiplied out, named where unknown, marked."""

from __future__ import annotations

import math

import pytest

from bayesperf.errors import InputError
from bayesperf.workloads.trace import from_hlo
from tests.workloads.hlo_texts import loop, program, value


@pytest.mark.parametrize("config", ["", ', backend_config={"known_trip_count":{"n":"12"}}'])
def test_a_scan_over_stacked_weights_is_multiplied_out_and_reads_each_layer_once(config: str) -> None:
    table = from_hlo(loop(config))
    assert table["count"].tolist() == [12.0, 12.0, 12.0]
    assert value(table, "dot", "flops") == 2 * 16 * 64 * 64
    assert value(table, "layer", "bytes") == 2 * 4 * 64 * 64 + 4
    # A layer's weights are read again only in the next run, after all the others; where they are put was just used.
    whole, own = 4 * (12 * 64 * 64 + 64 * 64), 2 * 4 * 64 * 64
    assert value(table, "layer", "working_set_bytes") == pytest.approx((whole * own) ** 0.5, rel=0.1)
    assert value(table, "dot", "working_set_bytes") < 2 * value(table, "dot", "footprint_bytes")


def test_an_unknown_trip_count_is_named_and_never_one() -> None:
    table = from_hlo(loop(start="%n0"))
    assert table["count"].isna().all()
    assert set(table["flags"]) == {"unknown-trip-count"}
    assert table.attrs["unknown_trip_counts"] == ["while.1"]
    assert "while.1" in table.attrs["notes"][0]
    for given in (7, {"while.1": 7}):
        told = from_hlo(loop(start="%n0"), trip_counts=given)
        # The condition runs once more.
        assert told["count"].tolist() == [8.0, 7.0, 7.0, 7.0]
        assert told.attrs["unknown_trip_counts"] == []


def test_bad_trip_counts_are_refused() -> None:
    with pytest.raises(InputError, match=r"there are: while\.1"):
        from_hlo(loop(), trip_counts={"while.2": 3})
    with pytest.raises(InputError, match="at least 0"):
        from_hlo(loop(), trip_counts=math.nan)


@pytest.mark.parametrize(
    ("direction", "start", "limit", "step", "trips"),
    [("LT", 0, 10, 3, 4), ("LE", 1, 10, 1, 10), ("GT", 10, 0, -1, 10), ("NE", 0, 6, 2, 3), ("LT", 5, 5, 1, 0)],
)
def test_counters_of_every_kind(direction: str, start: int, limit: int, step: int, trips: int) -> None:
    others = f"""
%body (t: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %t = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %x = f32[8] get-tuple-element(%t), index=1
  %by = s32[] constant({step})
  %next = s32[] add(%by, %i)
  %y = f32[8] multiply(%x, %x)
  ROOT %out = (s32[], f32[8]) tuple(%next, %y)
}}
%condition (t: (s32[], f32[8])) -> pred[] {{
  %t = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %n = s32[] constant({limit})
  ROOT %c = pred[] compare(%i, %n), direction={direction}
}}
"""
    text = program(
        f"""
        %x = f32[8] parameter(0)
        %start = s32[] constant({start})
        %init = (s32[], f32[8]) tuple(%start, %x)
        ROOT %w = (s32[], f32[8]) while(%init), condition=%condition, body=%body
        """,
        others,
    )
    assert value(from_hlo(text), "y", "count") == trips


BRANCHES = """
%small (p: f32[1024]) -> f32[1024] {
  %p = f32[1024] parameter(0)
  ROOT %n = f32[1024] negate(%p)
}
%large (p: f32[1024]) -> f32[1024] {
  %p = f32[1024] parameter(0)
  %e = f32[1024] exponential(%p)
  ROOT %q = f32[1024] multiply(%e, %p)
}
"""


@pytest.mark.parametrize(
    "called",
    ["branch_computations={%small, %large}", "true_computation=%large, false_computation=%small"],
)
def test_of_a_conditional_the_heaviest_branch_is_counted_and_marked(called: str) -> None:
    text = program(
        f"""
        %which = s32[] parameter(0)
        %x = f32[1024] parameter(1)
        ROOT %c = f32[1024] conditional(%which, %x, %x), {called}
        """,
        BRANCHES,
    )
    table = from_hlo(text)
    assert table["instruction"].tolist() == ["e", "q"]
    assert set(table["flags"]) == {"branch"}
    assert "branch" in table.attrs["notes"][0]


@pytest.mark.parametrize(("mark", "threads"), [('frontend_attributes={xla_cpu_small_call="true"}', 1.0), ("", 2.0)])
def test_what_is_compiled_as_one_piece_is_not_cut_into_parts(mark: str, threads: float) -> None:
    others = """
%piece (p: f32[65536]) -> f32[65536] {
  %p = f32[65536] parameter(0)
  ROOT %f = f32[65536] fusion(%p), kind=kLoop, calls=%fused, backend_config={"outer_dimension_partitions":["2"]}
}
%fused (q: f32[65536]) -> f32[65536] {
  %q = f32[65536] parameter(0)
  ROOT %n = f32[65536] multiply(%q, %q)
}
"""
    text = program(
        f"""
        %x = f32[65536] parameter(0)
        ROOT %c = f32[65536] call(%x), to_apply=%piece{", " * bool(mark)}{mark}
        """,
        others,
    )
    assert value(from_hlo(text), "f", "threads") == threads
