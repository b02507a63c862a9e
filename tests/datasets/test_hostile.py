"""Damaged source files: a table or an error of ours, never a traceback of somebody else's."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import bayesperf as bp
from bayesperf.errors import BayesperfError

LINEAR = (
    b"OPName,Latency,Device,Torch Version,CUDNN Version,Kernel Name,CUDA Version,Kernels,B,M,N,K\n"
    b"linear,0.5,Tesla T4,p2.1.0,8902,volta_sgemm,cu121,;x,1,16,32,64\n"
    b"linear,0.7,Tesla T4,p2.1.0,8902,volta_sgemm,cu121,;x,1,16,32,65\n"
)
COLLECTIVE = (
    b",time_stats.send_recv.min,time_stats.send_recv.max,time_stats.send_recv.mean,time_stats.send_recv.median,"
    b"time_stats.send_recv.std,rank,num_workers,size,collective,devices_per_node,max_devices_per_node\n"
    b"0,0.009,0.013,0.011,0.012,0.0016,0,2,2048,send_recv,1,4\n"
    b"1,0.014,0.018,0.015,0.014,0.0018,0,2,10240,send_recv,1,4\n"
)
Edit = tuple[int, int, bytes]

JUNK = (b"", b",", b"\n", b'"', b"\0", b"nan", b"-1", b"1e999", b"0x1f", b"x", b"\xff", b"1_000", b"Inf", b"9" * 400)
edits = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 20), st.sampled_from(JUNK)),
    min_size=1,
    max_size=4,
)
patient = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _edited(content: bytes, changes: list[Edit]) -> bytes:
    for start, length, new in changes:
        at = start % (len(content) + 1)
        content = content[:at] + new + content[at + length :]
    return content


def _load(tree: Path, path: str, content: bytes, name: str) -> None:
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    try:
        table = bp.datasets.load(name)
    except BayesperfError:
        return
    assert (table["time_s"] > 0).all()
    assert table[["flops", "bytes"]].notna().all(axis=None)


@given(changes=edits)
@example(changes=[(0, 0, b"")])
@patient
def test_damaged_csv_of_neusight(source_tree: Path, changes: list[Edit]) -> None:
    path = "neusight/scripts/asplos/data/dataset/test/linear.csv"
    _load(source_tree, path, _edited(LINEAR, changes), "neusight")


@given(changes=edits)
@patient
def test_damaged_csv_of_vidur(source_tree: Path, changes: list[Edit]) -> None:
    _load(source_tree, "vidur/data/profiling/network/a100_dgx/send_recv.csv", _edited(COLLECTIVE, changes), "vidur")


@pytest.fixture(scope="module")
def gemm(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small valid table of AIConfigurator."""
    path = tmp_path_factory.mktemp("gemm") / "gemm.parquet"
    row = {"framework": "VLLM", "version": "1.0", "device": "NVIDIA L4", "gemm_dtype": "bfloat16"}
    pd.DataFrame([{**row, "m": m, "n": 32, "k": 64, "latency": 0.01 * m} for m in range(1, 9)]).to_parquet(path)
    return path.read_bytes()


@given(changes=edits)
@patient
def test_damaged_parquet_of_aiconfigurator(source_tree: Path, gemm: bytes, changes: list[Edit]) -> None:
    folder = "aiconfigurator/aic-core/src/aiconfigurator_core/systems/data/l4/gemm/vllm/1.0"
    stretched = [(start * 17, length, new) for start, length, new in changes]
    _load(source_tree, f"{folder}/gemm_perf.parquet", _edited(gemm, stretched), "aiconfigurator")


@given(
    cells=st.fixed_dictionaries(
        {},
        optional={
            "m": st.one_of(st.none(), st.floats(), st.integers(-5, 10**6)),
            "latency": st.one_of(st.none(), st.floats(), st.just("fast")),
            "gemm_dtype": st.one_of(st.none(), st.text(max_size=5), st.sampled_from(["fp8", "sq"])),
            "device": st.one_of(st.none(), st.text(max_size=5)),
            "version": st.one_of(st.none(), st.text(max_size=5)),
        },
    )
)
@patient
def test_odd_cells_of_aiconfigurator(source_tree: Path, cells: dict[str, object]) -> None:
    folder = source_tree / "aiconfigurator/aic-core/src/aiconfigurator_core/systems/data/l4/gemm/vllm/1.0"
    folder.mkdir(parents=True, exist_ok=True)
    row: dict[str, object] = {"framework": "VLLM", "version": "1.0", "device": "NVIDIA L4", "gemm_dtype": "bfloat16"}
    row |= {"m": 8, "n": 32, "k": 64, "latency": 0.1}
    pd.DataFrame([{**row, **cells}]).to_parquet(folder / "gemm_perf.parquet")
    content = (folder / "gemm_perf.parquet").read_bytes()
    _load(folder, "gemm_perf.parquet", content, "aiconfigurator")
