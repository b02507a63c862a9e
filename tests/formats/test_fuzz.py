"""Hostile and made-up outputs: an importer refuses or tells, and never lies.

The hour of fuzzing is a command, ``tests/benchmarks/fuzz_formats.py``; what it found lies in ``seeds`` and is replayed
here. The structured tests write a tool's output from known numbers and ask for the same numbers back.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bayesperf.errors import BayesperfError
from bayesperf.formats import import_files
from bayesperf.formats.collectives import bus_factor

HERE = Path(__file__).parent
SEEDS = sorted((HERE / "seeds").iterdir())

SLOW_MACHINE = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_formats", HERE.parent / "benchmarks" / "fuzz_formats.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_files_that_once_broke_an_importer(path: Path, fuzz: ModuleType, tmp_path: Path) -> None:
    form = next(name for name in sorted(fuzz.FORMATS, key=len, reverse=True) if path.name.startswith(name))
    assert fuzz.attempt(fuzz.FORMATS[form], path, tmp_path / "out.parquet")


@pytest.mark.parametrize("seed", range(4))
def test_mutated_outputs(seed: int, fuzz: ModuleType, tmp_path: Path) -> None:
    accepted = 0
    for form, path in fuzz.corpus():
        work = tmp_path / path.name
        work.write_bytes(fuzz.mutate(path.read_bytes(), f"{seed}:{path.name}"))
        accepted += fuzz.attempt(form, work, tmp_path / "out.parquet") == "accepted"
    # Or the mutations destroy everything and test nothing.
    assert accepted >= 3


def imported(folder: Path, form: str, text: str, name: str = "log.txt", **options: Any) -> Any:
    path = folder / name
    path.write_bytes(text.encode())
    return import_files(form, [path], **options)


NOISE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=60).filter(
    lambda line: not any(word in line for word in ("#", "Function", "Running", "size", "{"))
)


@SLOW_MACHINE
@given(
    elements=st.integers(10**5, 10**10),
    seconds=st.lists(st.floats(1e-4, 10.0), min_size=4, max_size=4),
    stretch=st.floats(1.001, 3.0),
    noise=st.lists(NOISE, max_size=3),
)
def test_stream_gives_back_what_was_printed(
    tmp_path: Path, elements: int, seconds: list[float], stretch: float, noise: list[str]
) -> None:
    lines = ["STREAM version $Revision: 5.10 $", "This system uses 8 bytes per array element."]
    lines += [f"Array size = {elements} (elements), Offset = 0 (elements)", *noise]
    lines.append("Function    Best Rate MB/s  Avg time     Min time     Max time")
    arrays = (2, 2, 3, 3)
    for label, count, best in zip(("Copy", "Scale", "Add", "Triad"), arrays, seconds, strict=True):
        rate = 1e-6 * count * 8 * elements / best
        lines.append(f"{label + ':':11}{rate:12.1f}  {best * stretch:11.6f}  {best:11.6f}  {best * stretch**2:11.6f}")
    assume(all(1e-6 * count * 8 * elements / best >= 1 for count, best in zip(arrays, seconds, strict=True)))
    table = imported(tmp_path, "stream", "\n".join(lines)).table
    assert table["time_s"].tolist() == pytest.approx([best * stretch for best in seconds], abs=5.1e-7)
    assert table["bytes"].tolist() == [count * 8 * elements for count in arrays]
    assert "inconsistent" not in str(table.get("flags"))


@SLOW_MACHINE
@given(
    op=st.sampled_from(["all_reduce", "reduce_scatter", "broadcast", "reduce"]),
    ranks=st.integers(3, 64),
    rows=st.lists(
        st.tuples(st.integers(10, 26), st.floats(5.0, 5e5)), min_size=1, max_size=6, unique_by=lambda r: r[0]
    ),
    corrupt=st.sampled_from([None, "time", "algbw", "size"]),
    factor=st.sampled_from([0.1, 0.5, 1.1, 2.0, 10.0]),
)
def test_nccl_gives_back_what_was_printed_or_says_that_it_does_not_fit(
    tmp_path: Path, op: str, ranks: int, rows: list[tuple[int, float]], corrupt: str | None, factor: float
) -> None:
    redop = "none" if op == "broadcast" else "sum"
    root = 0 if op in ("broadcast", "reduce") else -1
    lines = [f"# Collective test starting: {op}_perf", f"# nThread 1 nGpus {ranks} minBytes 8 iters: 20 agg iters: 1"]
    lines += [f"#  Rank {r:2d} Group  0 Pid {r:6d} on host device {r:2d} [0000:01:00] NVIDIA Z1" for r in range(ranks)]
    lines.append("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong")
    expected = []
    for at, (power, us) in enumerate(rows):
        size = 2**power * ranks * 4
        count = size // 4 // (ranks if op == "reduce_scatter" else 1)
        alg = size / us / 1e3
        shown = {"time": us, "algbw": alg, "size": size}
        if corrupt and at == 0:
            assume(alg >= 1)
            shown[corrupt] = int(size * factor) if corrupt == "size" else shown[corrupt] * factor
        cells = f"{shown['time']:.2f} {shown['algbw']:.2f} {alg * bus_factor(op, ranks):.2f} 0"
        good = f"{us:.2f} {alg:.2f} {alg * bus_factor(op, ranks):.2f} 0"
        lines.append(f"{shown['size']} {count} float {redop} {root} {cells} {good}")
        expected.append(us)
    table = imported(tmp_path, "nccl-tests", "\n".join(lines)).table
    assert set(table["op"]) == {op}
    assert set(table["n_devices"]) == {ranks}
    first, second = table.iloc[0::2], table.iloc[1::2]
    assert second["time_s"].tolist() == pytest.approx([us * 1e-6 for us in expected], abs=6e-9)
    if corrupt:
        assert "inconsistent" in first["flags"].iloc[0]
    elif "flags" in table:
        assert not table["flags"].fillna("").str.contains("inconsistent").any()


@SLOW_MACHINE
@given(
    cells=st.lists(
        st.lists(st.one_of(st.floats(0.01, 9999.0), st.none()), min_size=2, max_size=2), min_size=1, max_size=4
    ),
    slip=st.one_of(st.none(), st.floats(1.0, 500.0)),
)
def test_nvbandwidth_matrices_and_their_sum(
    tmp_path: Path, cells: list[list[float | None]], slip: float | None
) -> None:
    values = [round(c, 2) for row in cells for c in row if c is not None]
    assume(values)
    lines = ["nvbandwidth Version: v0.7", "Running device_to_device_memcpy_read_ce."]
    lines += ["memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", "           0         1"]
    lines += [f" {at} " + " ".join("N/A" if c is None else f"{c:.2f}" for c in row) for at, row in enumerate(cells)]
    lines += ["", f"SUM device_to_device_memcpy_read_ce {sum(values) + (slip or 0):.2f}"]
    result = imported(tmp_path, "nvbandwidth", "\n".join(lines), target="t")
    assert result.table["rate_bytes_per_s"].tolist() == pytest.approx([v * 1e9 for v in values])
    assert ("sum disagrees" in result.report.files[0].notes) == (slip is not None)


@SLOW_MACHINE
@given(
    entries=st.lists(
        st.tuples(st.floats(1e-3, 1e6), st.sampled_from(["ns", "us", "ms", "s"]), st.integers(1, 2**40)), min_size=1
    )
)
def test_google_benchmark_recovers_bytes_and_seconds(tmp_path: Path, entries: list[tuple[float, str, int]]) -> None:
    scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    benchmarks = [
        {
            "name": f"BM_Copy/{at}/real_time",
            "run_type": "iteration",
            "iterations": 10,
            "real_time": value,
            "cpu_time": value,
            "time_unit": unit,
            "bytes_per_second": moved / (value * scale[unit]),
        }
        for at, (value, unit, moved) in enumerate(entries)
    ]
    text = json.dumps({"context": {"num_cpus": 1}, "benchmarks": benchmarks})
    table = imported(tmp_path, "google-benchmark", text, "b.json").table
    assert table["time_s"].tolist() == pytest.approx([value * scale[unit] for value, unit, _ in entries])
    assert table["bytes"].tolist() == [moved for _, _, moved in entries]


@SLOW_MACHINE
@given(
    rows=st.lists(
        st.tuples(st.floats(1e-6, 1e3), st.integers(1, 10**6), st.sampled_from(["fp16", "fp32"])),
        min_size=1,
        max_size=5,
    ),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
def test_generic_tables_round_trip(tmp_path: Path, rows: list[tuple[float, int, str]], separator: str) -> None:
    mapping = tmp_path / "map.toml"
    mapping.write_text(
        '[constants]\nop = "x"\ntarget = "t"\nflops = 0\n[columns]\nelements = "n"\n'
        'dtype = { column = "type", values = { fp16 = "float16", fp32 = "float32" } }\n'
        'time_s = { column = "t", unit = "ms" }\nbytes = { formula = "elements * dtype_bytes" }\n'
    )
    text = "\n".join([separator.join(("t", "n", "type")), *(separator.join(map(str, row)) for row in rows)])
    table = imported(tmp_path, "generic", text, "t.csv", mapping=mapping).table
    assert table["time_s"].tolist() == pytest.approx([t * 1e-3 for t, _, _ in rows])
    assert table["bytes"].tolist() == [n * (2 if kind == "fp16" else 4) for _, n, kind in rows]


@SLOW_MACHINE
@given(data=st.binary(max_size=2000), form=st.sampled_from(["stream", "nccl-tests", "pyperf", "mixbench", "auto"]))
def test_bytes_that_are_nothing(tmp_path: Path, data: bytes, form: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(BayesperfError):
        import_files(form, [path])


@pytest.mark.parametrize("form", ["stream", "nccl-tests", "babelstream", "mixbench", "osu", "nvbandwidth", "auto"])
def test_an_endless_line_takes_bounded_memory(form: str, tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "x"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b"1 " * 2**19)
    tracemalloc.start()
    try:
        with pytest.raises(BayesperfError):
            import_files(form, [path])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20


def test_more_rows_than_any_tool_prints_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayesperf.formats.base.MAX_ROWS", 100)
    line = "1048576 262144 float sum -1 37.49 27.97 41.95 0 38.24 27.42 41.13 0\n"
    header = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    path = tmp_path / "all_reduce.txt"
    path.write_text("# nThread 1 nGpus 4 iters: 20 agg iters: 1\n" + header + line * 60)
    with pytest.raises(BayesperfError, match="more than 100 rows"):
        import_files("nccl-tests", [path])
