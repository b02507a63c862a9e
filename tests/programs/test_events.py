"""Traces of every kind of device, written by hand, and where the seconds of a run go."""

from __future__ import annotations

from pathlib import Path

import pytest
from jax.profiler import ProfileData

from bayesperf.errors import MeasurementError
from bayesperf.programs.events import MARK, Operation, Run, covered, read_runs, runs_of
from bayesperf.programs.parts import PARTS, by_name, gaps, merged, parts_of

US = 1_000_000  # picoseconds


def event(kind: int, start_us: float, length_us: float, op: str = "", module: str = "") -> str:
    stats = [f'stats {{ metadata_id: {at} str_value: "{text}" }}' for at, text in ((1, op), (2, module)) if text]
    offset, duration = int(start_us * US), int(length_us * US)
    return f"events {{ metadata_id: {kind} offset_ps: {offset} duration_ps: {duration} {' '.join(stats)} }}"


def plane(name: str, lines: dict[str, list[str]], names: dict[int, str]) -> str:
    body = " ".join(f'lines {{ name: "{line}" timestamp_ns: 0 {" ".join(events)} }}' for line, events in lines.items())
    metadata = " ".join(f'event_metadata {{ key: {k} value {{ id: {k} name: "{v}" }} }}' for k, v in names.items())
    stats = " ".join(
        f'stat_metadata {{ key: {k} value {{ id: {k} name: "{v}" }} }}' for k, v in ((1, "hlo_op"), (2, "hlo_module"))
    )
    return f'planes {{ name: "{name}" {body} {metadata} {stats} }}'


def profile(*planes: str) -> ProfileData:
    return ProfileData.from_serialized_xspace(ProfileData.text_proto_to_serialized_xspace(" ".join(planes)))


HOST = plane("/host:CPU", {"python": [event(1, 0, 100), event(1, 200, 80)]}, {1: MARK})


def test_operations_of_a_gpu_are_those_of_its_streams() -> None:
    kernels = [event(1, 10, 30, "fusion.1", "jit_f"), event(2, 50, 20, "gemm", "jit_f"), event(2, 60, 5, "x", "jit_g")]
    device = plane(
        "/device:GPU:0",
        {"Stream #13(Compute)": kernels, "XLA Modules": [event(3, 10, 60, "", "jit_f")]},
        {1: "loop_fusion", 2: "sm90_gemm", 3: "jit_f"},
    )
    first, second = runs_of(profile(HOST, device), "jit_f")
    assert [operation.name for operation in first.operations] == ["fusion.1", "gemm"]
    assert {operation.device for operation in first.operations} == {"/device:GPU:0"}
    assert second.operations == ()
    assert first.seconds == pytest.approx(100e-6)


def test_operations_of_a_tpu_are_named_by_the_text_of_their_instruction() -> None:
    device = plane(
        "/device:TPU:0",
        {"XLA Ops": [event(1, 5, 10), event(2, 20, 10)], "Steps": [event(3, 0, 90)]},
        {1: "%fusion.3 = f32[8]{0} fusion(%p), kind=kLoop", 2: "%copy.1 = f32[8]{0} copy(%fusion.3)", 3: "1"},
    )
    first, _ = runs_of(profile(HOST, device), "jit_f")
    assert [operation.name for operation in first.operations] == ["fusion.3", "copy.1"]


def test_operations_of_a_cpu_are_events_of_its_threads() -> None:
    threads = plane(
        "/host:CPU",
        {
            "python": [event(1, 0, 100)],
            "tf_XLAExecute/1": [
                event(2, 20, 60, "while.1", "jit_f"),
                event(3, 30, 20, "dot", "jit_f"),
                event(4, 50, 1),
            ],
        },
        {1: MARK, 2: "while.1", 3: "dot", 4: "end: dot"},
    )
    (run,) = runs_of(profile(threads), "jit_f")
    assert [operation.name for operation in run.operations] == ["while.1", "dot"]


def test_an_operation_of_a_cpu_ends_when_its_threads_have_done_it() -> None:
    start = event(2, 20, 5, "convolution", "jit_f").replace("}  }", "} }")
    started = start[:-1] + "stats { metadata_id: 3 uint64_value: 77 } }"
    ended = event(3, 80, 1)[:-1] + "stats { metadata_id: 4 uint64_value: 77 } }"
    names = {1: MARK, 2: "convolution", 3: "end: convolution"}
    text = plane("/host:CPU", {"python": [event(1, 0, 100)], "a": [started], "b": [ended]}, names)
    keys = " ".join(f'stat_metadata {{ key: {k} value {{ id: {k} name: "{v}" }} }}' for k, v in ((3, "_p"), (4, "_c")))
    (seen,) = runs_of(profile(text[:-1] + keys + "}"), "jit_f")
    (operation,) = seen.operations
    assert (operation.start_s, operation.end_s) == pytest.approx((20e-6, 80e-6))


def test_no_trace_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="no-trace"):
        read_runs(tmp_path, "jit_f")
    xspace = ProfileData.text_proto_to_serialized_xspace(HOST)
    (tmp_path / "a.xplane.pb").write_bytes(xspace)
    with pytest.raises(MeasurementError, match="no operation of jit_f"):
        read_runs(tmp_path, "jit_f")


def run(*operations: tuple[str, float, float], device: str = "d") -> Run:
    return Run(0.0, 10.0, tuple(Operation(name, start, end, device) for name, start, end in operations))


def test_every_second_of_a_run_has_one_part() -> None:
    # a and b overlap; while.1 holds c and d, and its own bookkeeping before, between and after.
    seen = run(("a", 1, 3), ("b", 2, 4), ("while.1", 5, 9), ("c", 5.5, 6.5), ("d", 7, 8))
    parts = parts_of(seen, frozenset("abcd"))
    assert parts == {"dispatch": 1.0, "kernels": 5.0, "control": 2.0, "idle": 1.0, "return": 1.0}
    assert set(parts) == set(PARTS)
    assert sum(parts.values()) == seen.seconds


def test_of_several_devices_the_mean() -> None:
    both = Run(0.0, 10.0, (*run(("a", 1, 3)).operations, *run(("a", 1, 9), device="e").operations))
    assert parts_of(both, frozenset("a")) == {
        "dispatch": 1.0, "kernels": 5.0, "control": 0.0, "idle": 0.0, "return": 4.0,
    }  # fmt: skip
    assert by_name(both) == {"a": (1, 5.0)}


def test_intervals() -> None:
    assert merged([(3, 4), (0, 1), (0.5, 2), (2, 2.5)]) == [(0, 2.5), (3, 4)]
    assert gaps([(0, 2.5), (3, 4)]) == [(2.5, 3)]
    assert covered([(0, 2), (1, 3), (5, 6)]) == 4.0


def test_executions_are_counted() -> None:
    assert by_name(run(("a", 0, 1), ("a", 2, 4), ("b", 5, 6))) == {"a": (2, 3.0), "b": (1, 1.0)}
