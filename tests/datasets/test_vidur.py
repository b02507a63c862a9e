"""Vidur: a tree made up here for the loader's logic and the copied table; the local copies for counts and values."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.datasets.vidur.data import standard_error
from bayesperf.errors import InputError, TableError
from bayesperf.schema import has_flag, is_excluded

ROOT = "vidur/data/profiling"


def _collective(
    name: str, sizes: list[int], medians: list[float], *, ranks: int = 2, per_node: int = 2
) -> pd.DataFrame:
    statistics = {"min": 0.9, "max": 1.2, "mean": 1.05, "median": 1.0, "std": 0.1}
    columns = {f"time_stats.{name}.{s}": [m * f for m in medians] for s, f in statistics.items()}
    shape = {"rank": 0, "num_workers": ranks, "size": sizes, "collective": name, "devices_per_node": per_node}
    return pd.DataFrame({**columns, **shape, "max_devices_per_node": 8})


def _layers(*, gated: bool) -> pd.DataFrame:
    names = ["emb", "input_layernorm", "attn_pre_proj", "attn_rope", "attn_post_proj", "mlp_up_proj", "mlp_act"]
    names += ["mlp_down_proj", "add"]
    statistics = {"min": 0.9, "max": 1.1, "mean": 1.0, "median": 1.0, "std": 0.019}
    columns = {f"time_stats.{n}.{s}": [v] for n in names for s, v in statistics.items()}
    sizes = {"n_head": 8, "n_kv_head": 2, "n_embd": 64, "n_expanded_embd": 96, "vocab_size": 1000}
    run = {"use_gated_mlp": gated, "num_tokens": 10, "num_tensor_parallel_workers": 2}
    return pd.DataFrame({**columns, **{k: [v] for k, v in {**sizes, **run}.items()}})


def _write(tree: Path, path: str, table: pd.DataFrame) -> None:
    file = tree / ROOT / path
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file)


def test_layer_shapes_and_work(source_tree: Path) -> None:
    _write(source_tree, "compute/a40/some/Model/mlp.csv", _layers(gated=True))
    table = bp.datasets.load("vidur").set_index("function")
    tokens, width, expanded, head_dim = 10, 64, 96 // 2, 8
    shapes = {
        "attn_pre_proj": (tokens, (8 + 2 * 2) * head_dim // 2, width),
        "attn_post_proj": (tokens, width, width // 2),
        "mlp_up_proj": (tokens, 2 * expanded, width),
        "mlp_down_proj": (tokens, width, expanded),
    }
    for name, (m, n, k) in shapes.items():
        row = table.loc[name]
        assert (row["m"], row["n"], row["k"]) == (m, n, k), name
        assert row["flops"] == 2 * m * n * k
        assert row["bytes"] == 2 * (m * k + k * n + m * n)
    assert table.loc["mlp_act", "bytes"] == 2 * 3 * tokens * expanded
    assert table.loc["add", "bytes"] == 2 * 3 * tokens * width
    assert table.loc["attn_rope", "bytes"] == 2 * (2 * tokens * (8 + 2) // 2 * head_dim + tokens * head_dim)
    rope = table.loc["attn_rope"]
    assert rope["working_set_bytes"] == rope["bytes"] / 2
    assert table.loc["input_layernorm", "op"] == "rms_norm"
    assert table.loc["input_layernorm", "bytes"] == 2 * (2 * tokens * width + width)
    assert table.loc["emb", "bytes"] == 2 * 2 * tokens * width + 8 * tokens
    assert set(table["dtype"]) == {"float16"}
    assert set(table["device"]) == {"nvidia-a40"}


def test_layers_of_a_model_without_gate(source_tree: Path) -> None:
    _write(source_tree, "compute/a40/some/Model/mlp.csv", _layers(gated=False))
    table = bp.datasets.load("vidur").set_index("function")
    assert table.loc["mlp_up_proj", "n"] == 96 // 2
    assert table.loc["mlp_act", "bytes"] == 2 * 2 * 10 * 48
    assert table.loc["add", "bytes"] == 2 * 2 * 3 * 10 * 64, "two additions"
    assert table.loc["input_layernorm", "op"] == "layer_norm"
    assert "post_attention_layernorm" not in table.index


def test_times_are_medians_with_an_error(source_tree: Path) -> None:
    _write(source_tree, "compute/a40/some/Model/mlp.csv", _layers(gated=True))
    table = bp.datasets.load("vidur").set_index("function")
    row = table.loc["mlp_act"]
    assert row["time_s"] == pytest.approx(1e-3), "the source has milliseconds"
    assert row["statistic"] == "median"
    expected = math.hypot(math.sqrt(math.pi / 2) * 0.019e-3 / math.sqrt(19), 1e-6 / math.sqrt(12))
    assert row["time_se_s"] == pytest.approx(expected)
    assert (row["samples"], table.loc["emb", "samples"]) == (20, 21)
    assert (row["time_min_s"], row["time_max_s"]) == (pytest.approx(0.9e-3), pytest.approx(1.1e-3))


def test_standard_error_covers_simulated_medians() -> None:
    # 20 normal samples quantised to 1 us: the error of their median, over many draws, against what is reported.
    rng = np.random.default_rng(5)
    samples = np.round(rng.normal(100.0, 3.0, size=(4000, 20))) * 1e-6
    truth = np.median(samples, axis=1).std()
    reported = standard_error(samples.std(axis=1), 20).mean()
    assert reported == pytest.approx(truth, rel=0.1)


def test_collectives(source_tree: Path) -> None:
    _write(
        source_tree, "network/a100_dgx/all_reduce.csv", _collective("all_reduce", [2048], [0.05], ranks=8, per_node=8)
    )
    _write(
        source_tree, "network/a40_pairwise_nvlink/send_recv.csv", _collective("send_recv", [2048], [0.02], per_node=1)
    )
    table = bp.datasets.load("vidur", kinds="network").set_index("op")
    reduce, send = table.loc["all_reduce"], table.loc["send_recv"]
    assert (reduce["message_bytes"], reduce["n_devices"], reduce["flops"]) == (2048, 8, 0)
    assert reduce["bytes"] == 2 * 2048
    assert reduce["target"] == "nvidia-a100-sxm4-80gb-dgx-in-node"
    assert send["target"] == "nvidia-a40-pairwise-nvlink-between-nodes"
    assert send["bytes"] == 2048
    assert send["time_s"] == pytest.approx(2e-5)
    assert send["samples"] == 3


def test_a_copied_fabric_is_found(source_tree: Path) -> None:
    # As in the source: the tables of two GPUs' pairwise fabrics with identical medians.
    rng = np.random.default_rng(7)
    sizes = [2048 * i for i in range(1, 41)]
    times = [round(t, 3) for t in rng.uniform(0.02, 20, size=40)]
    other = [round(t * f, 3) for t, f in zip(times, rng.uniform(0.6, 0.9, size=40), strict=True)]
    _write(source_tree, "network/a100_pairwise_nvlink/send_recv.csv", _collective("send_recv", sizes, times))
    _write(source_tree, "network/h100_pairwise_nvlink/send_recv.csv", _collective("send_recv", sizes, times))
    _write(source_tree, "network/a40_pairwise_nvlink/send_recv.csv", _collective("send_recv", sizes, other))
    table = bp.datasets.load("vidur")
    copied = set(table["device"][has_flag(table, "copied-table")])
    assert copied == {"nvidia-a100-80gb-pcie", "nvidia-h100-pcie"}
    assert set(bp.datasets.load("vidur", flagged="drop")["device"]) == {"nvidia-a40"}
    (rule,) = table.attrs["rules"]
    assert (rule["flag"], rule["rows"]) == ("copied-table", 80)


def test_empty_messages_are_flagged(source_tree: Path) -> None:
    table = _collective("send_recv", [0, 2048], [0.02, 0.02])
    _write(source_tree, "network/a40_pairwise_nvlink/send_recv.csv", table)
    assert is_excluded(bp.datasets.load("vidur")).tolist() == [True, False]


def test_other_files_of_a_full_copy_are_left_alone(source_tree: Path) -> None:
    _write(source_tree, "compute/a40/some/Model/mlp.csv", _layers(gated=True))
    _write(source_tree, "compute/a40/some/Model/attention.csv", pd.DataFrame({"x": [1]}))
    _write(source_tree, "network/a100_dgx/cpu_overhead.csv", pd.DataFrame({"x": [1]}))
    assert len(bp.datasets.load("vidur")) == 9


def test_options_and_bad_files(source_tree: Path) -> None:
    _write(source_tree, "compute/a40/some/Model/mlp.csv", _layers(gated=True))
    _write(source_tree, "compute/a40/some/Other/mlp.csv", _layers(gated=True))
    assert set(bp.datasets.load("vidur", models="some/Model", layers="add")["function"]) == {"add"}
    with pytest.raises(InputError, match="models: 'x' is not among: some/Model, some/Other"):
        bp.datasets.load("vidur", models="x")
    with pytest.raises(InputError, match="devices: 'b200' is not among: a40"):
        bp.datasets.load("vidur", devices="b200")
    _write(source_tree, "compute/a40/some/Other/mlp.csv", pd.DataFrame({"num_tokens": [1]}))
    with pytest.raises(TableError, match=r"some/Other/mlp\.csv.*n_head"):
        bp.datasets.load("vidur")


# The local copies.

COUNTS = {
    "linear": 4 * (6261 + 4437),
    "elementwise": 2 * (6261 + 4437),
    "rms_norm": 12000 + 8352,
    "layer_norm": 2 * 261,
    "rope": 6261 + 4437,
    "embedding": 6261 + 4437,
    "all_reduce": 6958 + 4496,
    "send_recv": 3 * 1988,
}


def test_row_counts_and_flags_of_the_local_copies(load_local: Callable[[str], pd.DataFrame]) -> None:
    table = load_local("vidur")
    assert table.groupby("op").size().to_dict() == COUNTS
    assert len(table) == 123_876
    assert table["device"].isin(bp.datasets.targets().index).all()
    flagged = table[is_excluded(table)]
    assert set(flagged["flags"]) == {"above-ceiling+excluded"}
    assert set(flagged["op"]) <= {"elementwise", "rope", "rms_norm", "layer_norm"}
    assert flagged["working_set_bytes"].lt(70e6).all(), "only what may lie partly in cache is above the memory's rate"


def test_local_copies_are_the_sources_own(load_local: Callable[[str], pd.DataFrame]) -> None:
    records = load_local("vidur").attrs["provenance"].values()
    assert all(r["matches_source"] for r in records if r["kind"] == "dataset")


QWEN = {"model": "Qwen/Qwen-72B", "device": "nvidia-a100-sxm4-80gb", "num_tokens": 4096, "workers": 1}
QWEN_TP2 = {**QWEN, "num_tokens": 152, "workers": 2}
PHI = {"model": "microsoft/phi-2", "device": "nvidia-a40", "num_tokens": 4096, "workers": 1}
DGX = {"device": "nvidia-a100-sxm4-80gb"}
# Read off the source's files by hand: (function, key, median in ms, FLOP, bytes).
VALUES = [
    ("emb", QWEN, 0.447, 0, 4 * 4096 * 8192 + 8 * 4096),
    ("attn_pre_proj", QWEN, 7.306, 2 * 4096 * 8192 * 24576, 2 * (4096 * 8192 + 8192 * 24576 + 4096 * 24576)),
    ("attn_rope", QWEN, 0.304, 3 * 4096 * 128 * 128, 2 * (2 * 4096 * 128 * 128 + 4096 * 128)),
    ("mlp_up_proj", QWEN, 14.0915, 2 * 4096 * 8192 * 49152, 2 * (4096 * 8192 + 8192 * 49152 + 4096 * 49152)),
    ("add", QWEN, 0.112, 4096 * 8192, 6 * 4096 * 8192),
    ("attn_post_proj", QWEN_TP2, 0.066, 2 * 152 * 8192 * 4096, 2 * (152 * 4096 + 4096 * 8192 + 152 * 8192)),
    ("mlp_down_proj", QWEN_TP2, 0.222, 2 * 152 * 8192 * 12288, 2 * (152 * 12288 + 12288 * 8192 + 152 * 8192)),
    ("input_layernorm", QWEN_TP2, 0.008, 6 * 152 * 8192, 2 * (2 * 152 * 8192 + 8192)),
    ("mlp_act", PHI, 0.295, 8 * 4096 * 10240, 4 * 4096 * 10240),
    ("add", PHI, 0.222, 2 * 4096 * 2560, 12 * 4096 * 2560),
    ("all_reduce", {**DGX, "message_bytes": 67108864, "n_devices": 16}, 7.193, 0, 2 * 67108864),
    ("send_recv", {**DGX, "message_bytes": 67108864, "devices_per_node": 2}, 0.294, 0, 67108864),
    ("send_recv", {"device": "nvidia-a40", "message_bytes": 67108864, "devices_per_node": 2}, 16.9, 0, 67108864),
]


def test_hand_checked_values(load_local: Callable[[str], pd.DataFrame]) -> None:
    table = load_local("vidur")
    for function, key, median_ms, flops, nbytes in VALUES:
        rows = table[table["function"] == function]
        for name, value in key.items():
            rows = rows[rows[name] == value]
        row = rows[abs(rows["time_s"] * 1e3 / median_ms - 1) < 1e-9]
        assert len(row) >= 1, (function, key)
        assert set(row["flops"]) == {flops}, function
        assert set(row["bytes"]) == {nbytes}, function
