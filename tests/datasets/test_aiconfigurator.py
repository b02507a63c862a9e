"""AIConfigurator: a tree made up here for the loader's logic and traps; the local copies for counts and values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.errors import InputError, TableError
from bayesperf.schema import has_flag, is_excluded

ROOT = "aiconfigurator/aic-core/src/aiconfigurator_core/systems/data"
H100 = {"framework": "TRTLLM", "version": "1.0.0", "device": "NVIDIA H100 80GB HBM3", "kernel_source": "torch_flow"}
NCCL = {"framework": "TRTLLM", "version": "2.27.3", "device": "NVIDIA H100 80GB HBM3", "kernel_source": "NCCL"}
GEMM = {**H100, "op_name": "gemm", "gemm_dtype": "bfloat16", "m": 64, "n": 128, "k": 256, "latency": 0.1}
CONTEXT = {
    **H100, "op_name": "context_attention", "batch_size": 2, "isl": 10, "num_heads": 8, "num_key_value_heads": 2,
    "head_dim": 64, "window_size": 0, "beam_width": 1, "attn_dtype": "bfloat16", "kv_cache_dtype": "bfloat16",
    "step": 0, "latency": 0.1,
}  # fmt: skip
REDUCE = {**NCCL, "op_name": "all_reduce", "nccl_dtype": "half", "num_gpus": 8, "message_size": 1024, "latency": 0.02}


def _write(tree: Path, path: str, *rows: dict[str, Any]) -> None:
    file = tree / ROOT / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(list(rows)).to_parquet(file)


def _gemm(tree: Path, *rows: dict[str, Any], version: str = "1.0.0") -> pd.DataFrame:
    _write(tree, f"h100_sxm/gemm/trtllm/{version}/gemm_perf.parquet", *({**GEMM, **row} for row in rows))
    table: pd.DataFrame = bp.datasets.load("aiconfigurator", families="gemm")
    return table


def test_gemm_widths_by_quantization(source_tree: Path) -> None:
    names = ["bfloat16", "fp8", "int8_wo", "int4_wo", "sq"]
    table = _gemm(source_tree, *({"gemm_dtype": name} for name in names)).set_index("quantization")
    operands = {"bfloat16": (2, 2), "fp8": (1, 1), "int8_wo": (2, 1), "int4_wo": (2, 0.5), "sq": (1, 1)}
    for name, (activation, weight) in operands.items():
        assert table.loc[name, "bytes"] == 64 * 256 * activation + 256 * 128 * weight + 64 * 128 * 2, name
    assert set(table["flops"]) == {2 * 64 * 128 * 256}
    assert table["dtype"].to_dict() == {
        "bfloat16": "bfloat16", "fp8": "float8", "int8_wo": "float16", "int4_wo": "float16", "sq": "int8",
    }  # fmt: skip
    assert set(table["time_s"]) == {0.1 * 1e-3}
    assert set(table["stack"]) == {"trtllm-1.0.0"}
    assert set(table["target"]) == {"nvidia-h100-80gb-hbm3"}


def test_rows_of_nothing_are_flagged(source_tree: Path) -> None:
    table = _gemm(source_tree, {}, {"m": 0}, {"m": 1, "latency": 0.0009})
    assert has_flag(table, "zero-size").tolist() == [False, True, False]
    assert has_flag(table, "too-short").tolist() == [False, False, True]
    assert is_excluded(table).tolist() == [False, True, True]
    assert len(bp.datasets.load("aiconfigurator", flagged="drop")) == 1


def test_a_rate_above_the_peak_is_flagged(source_tree: Path) -> None:
    # 2 x 8192^3 FLOP in 1 ms: 1.1 PFLOP/s of bfloat16, where an H100 has 0.99; as fp8 it is possible.
    size = {"m": 8192, "n": 8192, "k": 8192, "latency": 1.0}
    table = _gemm(source_tree, size, {**size, "gemm_dtype": "fp8"})
    assert has_flag(table, "above-ceiling").tolist() == [True, False]


def test_unknown_precisions_are_left_out_loudly(source_tree: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = _gemm(source_tree, {"gemm_dtype": "nvfp4"}, {}, {"gemm_dtype": "fp8"})
    assert table["quantization"].tolist() == ["bfloat16", "fp8"]
    assert "1 rows left out, of unknown gemm_dtype: nvfp4" in caplog.text


def test_unknown_collectives_are_refused(source_tree: Path) -> None:
    _write(source_tree, "h100_sxm/comm/nccl/2.27.3/nccl_perf.parquet", {**REDUCE, "op_name": "gossip"})
    with pytest.raises(TableError, match="unknown collective 'gossip'; known are: all_reduce"):
        bp.datasets.load("aiconfigurator")


def test_a_version_column_that_contradicts_the_folder(source_tree: Path) -> None:
    table = _gemm(source_tree, {}, {"version": "1.1.0", "m": 65})
    assert has_flag(table, "version-conflict").tolist() == [False, True]
    assert table["stack"].tolist() == ["trtllm-1.0.0", "trtllm-1.1.0"]
    assert is_excluded(table).tolist() == [False, True]


def test_repeated_keys(source_tree: Path) -> None:
    table = _gemm(source_tree, {}, {"latency": 0.2}, {"k": 512})
    assert has_flag(table, "repeated-key").tolist() == [False, True, False]


def test_a_copied_table(source_tree: Path) -> None:
    rows = [{**GEMM, "m": m, "latency": 0.01 * m + 0.0123} for m in range(1, 41)]
    _write(source_tree, "h100_sxm/gemm/trtllm/1.0.0/gemm_perf.parquet", *rows)
    _write(source_tree, "h200_sxm/gemm/trtllm/1.0.0/gemm_perf.parquet", *({**r, "device": "NVIDIA H200"} for r in rows))
    assert has_flag(bp.datasets.load("aiconfigurator"), "copied-table").all()


def test_message_sizes_count_elements(source_tree: Path) -> None:
    rows = [{**REDUCE, "nccl_dtype": dtype, "message_size": 1024} for dtype in ("half", "int8")]
    _write(source_tree, "h100_sxm/comm/nccl/2.27.3/nccl_perf.parquet", *rows)
    table = bp.datasets.load("aiconfigurator")
    assert table["message_bytes"].tolist() == [2048, 1024]
    assert table["dtype"].tolist() == ["float16", "int8"]
    assert table["bytes"].tolist() == [2 * 2048, 2 * 1024]
    assert set(table["target"]) == {"nvidia-h100-80gb-hbm3-node"}
    assert set(table["n_devices"]) == {8}


def test_collective_names_and_traffic(source_tree: Path) -> None:
    rows = [{**REDUCE, "op_name": op} for op in ("alltoall", "all_gather", "reduce_scatter")]
    _write(source_tree, "h100_sxm/comm/nccl/2.27.3/nccl_perf.parquet", *rows)
    table = bp.datasets.load("aiconfigurator")
    assert table["op"].tolist() == ["all_to_all", "all_gather", "reduce_scatter"]
    assert table["bytes"].tolist() == [2 * 2048, 2048 * (1 + 1 / 8), 2048 * (1 + 1 / 8)]


def test_an_old_table_without_version_and_device(source_tree: Path) -> None:
    plain = {k: v for k, v in REDUCE.items() if k not in ("framework", "version", "device")}
    _write(source_tree, "h100_sxm/comm/nccl/2.23/nccl_perf.parquet", plain)
    _write(source_tree, "h100_sxm/comm/nccl/2.27.3/nccl_perf.parquet", REDUCE)
    table = bp.datasets.load("aiconfigurator")
    assert has_flag(table, "no-version").tolist() == [True, False]
    assert not is_excluded(table).any(), "it informs; the folder's version is taken"
    assert table["stack"].tolist() == ["nccl-2.23", "nccl-2.27.3"]
    assert set(table["device"]) == {"nvidia-h100-80gb-hbm3"}


def test_attention(source_tree: Path) -> None:
    folder = "h100_sxm/attention/trtllm/1.0.0"
    _write(source_tree, f"{folder}/context_attention_perf.parquet", CONTEXT, {**CONTEXT, "window_size": 4})
    decode = {**CONTEXT, "isl": 1, "step": 99, "kv_cache_dtype": "fp8"}
    _write(source_tree, f"{folder}/generation_attention_perf.parquet", decode)
    table = bp.datasets.load("aiconfigurator")
    prompt, windowed, step = (table.iloc[i] for i in range(3))
    assert prompt["flops"] == 4 * 2 * 8 * 64 * (10 * 11 // 2)
    assert windowed["flops"] == 4 * 2 * 8 * 64 * sum(min(4, i) for i in range(1, 11))
    assert prompt["bytes"] == 2 * (2 * 2 * 10 * 8 * 64) + 2 * (2 * 10 * 2 * 64) * (2 + 2)
    assert step["op"] == "attention_decode"
    assert step["flops"] == 4 * 2 * 8 * 64 * 100
    assert step["bytes"] == 2 * 2 * 2 * 64 * 100 * 1 + 2 * 2 * 8 * 64 * 2
    assert (step["past"], step["kv_dtype"]) == (100, "fp8")


def test_bad_files_and_options(source_tree: Path) -> None:
    with pytest.raises(TableError, match=r"gemm_perf\.parquet, column gemm_dtype: unknown precision: gemm_dtype fp3"):
        _gemm(source_tree, {"gemm_dtype": "fp3"})
    with pytest.raises(TableError, match=r"gemm_perf\.parquet, row 1, column latency: 'nan' is not a number up to"):
        _gemm(source_tree, {}, {"latency": float("nan")})
    _gemm(source_tree, {})
    with pytest.raises(InputError, match="systems: 'b200' is not among: h100_sxm"):
        bp.datasets.load("aiconfigurator", systems="b200")
    with pytest.raises(InputError, match="families: 'moe' is not among: gemm"):
        bp.datasets.load("aiconfigurator", families="moe")
    file = source_tree / ROOT / "h100_sxm/gemm/trtllm/1.0.0/gemm_perf.parquet"
    file.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        bp.datasets.load("aiconfigurator")
    file.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(InputError, match="git lfs pull"):
        bp.datasets.load("aiconfigurator")


# The local copies.

COUNTS = {
    "linear": 27384 + 9240 + 100668 + 107188 + 100668,
    "attention_context": 75840 + 75768,
    "attention_decode": 52033 + 52714,
    "all_gather": 126 + 114 + 252 + 126 + 126,
    "all_to_all": 126 + 114 + 252 + 126 + 126,
    "reduce_scatter": 126 + 114 + 252 + 126 + 126,
    "all_reduce": 126 + 252 + 126 + 126,
}
FLAGS = {"version-conflict": 1008, "repeated-key": 504, "no-version": 342, "above-ceiling": 831}


def test_row_counts_and_flags_of_the_local_copies(load_local: Callable[[str], pd.DataFrame]) -> None:
    table = load_local("aiconfigurator")
    assert table.groupby("op").size().to_dict() == COUNTS
    assert len(table) == 604_365
    assert {rule["flag"]: rule["rows"] for rule in table.attrs["rules"]} == FLAGS
    assert table["device"].isin(bp.datasets.targets().index).all()
    conflict = table[has_flag(table, "version-conflict")]
    assert set(conflict["folder_version"]) == {"2.27.3"}
    assert set(conflict["reported_version"]) == {"2.29.2"}
    attention = table[has_flag(table, "above-ceiling") & (table["op"] == "attention_context").to_numpy()]
    hopper = attention[attention["device"] == "nvidia-h100-80gb-hbm3"]
    rates = hopper["flops"] / hopper["time_s"]
    assert len(hopper) == 2
    assert (rates > 989.4e12).all()
    records = table.attrs["provenance"].values()
    assert all(r["matches_source"] for r in records if r["kind"] == "dataset")


def test_half_and_int8_agree_only_as_elements(load_local: Callable[[str], pd.DataFrame]) -> None:
    table = load_local("aiconfigurator")
    table = table[table["message_bytes"].notna() & ~is_excluded(table)]
    wide = table.pivot_table(index=["campaign", "op", "n_devices", "message_bytes"], columns="dtype", values="time_s")
    ratio = (wide["float16"] / wide["int8"]).dropna()
    large = ratio[ratio.index.get_level_values("message_bytes") >= 2**26]
    assert len(large) > 50
    assert abs(large.median() - 1.0) < 0.02
    # Read as bytes, a half message would be compared with an int8 message of half its size.
    shifted = table.assign(wrong=table["message_bytes"] / table["dtype"].map({"float16": 2.0, "int8": 1.0}))
    wide = shifted.pivot_table(index=["campaign", "op", "n_devices", "wrong"], columns="dtype", values="time_s")
    ratio = (wide["float16"] / wide["int8"]).dropna()
    assert ratio[ratio.index.get_level_values("wrong") >= 2**26].median() > 1.6


A100, H, L40S = "nvidia-a100-sxm4-80gb", "nvidia-h100-80gb-hbm3", "nvidia-l40s"
# Read off the source's files by hand: (op, device, key, latency in ms, FLOP, bytes).
VALUES = [
    ("linear", A100, {"quantization": "int8_wo", "m": 8192, "n": 65536, "k": 4096}, 16.763905,
     2 * 8192 * 65536 * 4096, 2 * 8192 * 4096 + 4096 * 65536 + 2 * 8192 * 65536),
    ("linear", A100, {"quantization": "int8_wo", "m": 8192, "n": 65536, "k": 5120}, 20.843519,
     2 * 8192 * 65536 * 5120, 2 * 8192 * 5120 + 5120 * 65536 + 2 * 8192 * 65536),
    ("linear", A100, {"quantization": "sq", "m": 512, "n": 3072, "k": 3584}, 0.039936,
     2 * 512 * 3072 * 3584, 512 * 3584 + 3584 * 3072 + 2 * 512 * 3072),
    ("linear", A100, {"quantization": "bfloat16", "m": 1, "n": 32, "k": 32, "stack": "trtllm-1.0.0"}, 0.0024917334,
     2 * 32 * 32, 2 * (32 + 32 * 32 + 32)),
    ("linear", H, {"quantization": "bfloat16", "m": 32768, "n": 65536, "k": 12288, "stack": "vllm-0.24.0"}, 60.324042,
     2 * 32768 * 65536 * 12288, 2 * (32768 * 12288 + 12288 * 65536 + 32768 * 65536)),
    ("linear", H, {"quantization": "fp8", "m": 32768, "n": 65536, "k": 12288, "stack": "vllm-0.24.0"}, 70.991733,
     2 * 32768 * 65536 * 12288, 32768 * 12288 + 12288 * 65536 + 2 * 32768 * 65536),
    ("linear", H, {"quantization": "bfloat16", "m": 225, "n": 65536, "k": 51200, "stack": "vllm-0.24.0"}, 2.326045,
     2 * 225 * 65536 * 51200, 2 * (225 * 51200 + 51200 * 65536 + 225 * 65536)),
    ("attention_context", H, {"batch": 16, "sequence": 8192, "heads": 96, "kv_heads": 1, "head_dim": 128,
                              "kv_dtype": "bfloat16", "window": 0, "dtype": "bfloat16"}, 53.496780,
     4 * 16 * 96 * 128 * (8192 * 8193 // 2), 4 * 16 * 8192 * 96 * 128 + 8 * 16 * 8192 * 128),
    ("attention_context", H, {"batch": 32, "sequence": 3072, "heads": 48, "kv_heads": 2, "head_dim": 128,
                              "kv_dtype": "fp8", "window": 0, "dtype": "float8"}, 7.216629,
     4 * 32 * 48 * 128 * (3072 * 3073 // 2), 4 * 32 * 3072 * 48 * 128 + 6 * 32 * 3072 * 2 * 128),
    ("attention_decode", H, {"batch": 32, "past": 2, "heads": 64, "kv_heads": 64, "head_dim": 64,
                             "kv_dtype": "bfloat16", "window": 0}, 0.023931,
     4 * 32 * 64 * 64 * 2, 4 * 32 * 64 * 64 * 2 + 4 * 32 * 64 * 64),
    ("attention_decode", H, {"batch": 256, "past": 16, "heads": 128, "kv_heads": 4, "head_dim": 256,
                             "kv_dtype": "fp8", "window": 0}, 0.101285,
     4 * 256 * 128 * 256 * 16, 2 * 256 * 4 * 256 * 16 + 4 * 256 * 128 * 256),
    ("all_gather", H, {"stack": "nccl-2.23", "dtype": "float16", "n_devices": 2, "message_bytes": 2 * 4096}, 0.00687,
     0, 8192 * 1.5),
    ("reduce_scatter", H, {"stack": "nccl-2.23", "dtype": "int8", "n_devices": 8, "message_bytes": 536870912}, 1.44120,
     0, 536870912 * 1.125),
    ("all_reduce", L40S, {"dtype": "int8", "n_devices": 8, "message_bytes": 536870912}, 721.028, 0, 2 * 536870912),
]  # fmt: skip


def test_hand_checked_values(load_local: Callable[[str], pd.DataFrame]) -> None:
    table = load_local("aiconfigurator")
    for op, device, key, latency_ms, flops, nbytes in VALUES:
        rows = table[(table["op"] == op) & (table["device"] == device)]
        for name, value in key.items():
            rows = rows[rows[name] == value]
        row = rows[abs(rows["time_s"] * 1e3 / latency_ms - 1) < 1e-4]
        assert len(row) == 1, (op, device, key)
        assert row["flops"].iloc[0] == flops, (op, key)
        assert row["bytes"].iloc[0] == nbytes, (op, key)
