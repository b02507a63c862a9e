"""NeuSight: a tree made up here for the loader's logic; the local copies for counts and values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.datasets.neusight.data import NeuSight
from bayesperf.errors import InputError, TableError
from bayesperf.schema import has_flag, is_excluded
from bayesperf.store import provenance_of

ROOT = "neusight/scripts/asplos/data"
HEAD = "OPName,Latency,Device,Torch Version,CUDNN Version,Kernel Name,CUDA Version,Kernels"


def _write(tree: Path, path: str, header: str, *rows: str) -> None:
    file = tree / ROOT / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([header, *rows]) + "\n")


@pytest.fixture
def tree(source_tree: Path) -> Path:
    """Two operations, two devices, both splits, and the AMD layout."""
    versions = "p2.1.0,8902,{kernel},cu121,;{kernel}"
    gemm = versions.format(kernel="sgemm")
    _write(
        source_tree,
        "dataset/train/collect/bmm/p2.1.0/Tesla T4.csv",
        HEAD + ",B,M,N,K",
        f"bmm,0.5,Tesla T4,{gemm},2,3,5,7",
    )
    _write(
        source_tree,
        "dataset/train/collect/conv/p2.1.0/Tesla T4.csv",
        HEAD + ",B,Input_Channel,Output_Channel,Kernel_Szie,Input_Size,Stride,Padding",
        f"conv,1.0,Tesla T4,{versions.format(kernel='cudnn_winograd_128')},1,8,8,3,5,1,1",
        f"conv,1.0,Tesla T4,{versions.format(kernel='implicit_gemm')},1,8,8,3,5,1,1",
    )
    _write(
        source_tree,
        "dataset/test/elem.csv",
        HEAD + ",B,H,large",
        f"add,0.1,Tesla T4,{gemm},16,32,True",
        f"gelu,0.1,NVIDIA H100 80GB HBM3,{gemm},16,32,True",
    )
    _write(
        source_tree,
        "dataset_amd/test/collect/bmm/p2.4.1/AMD Instinct MI100.csv",
        "OPName,Latency,Device,Kernel Name,Kernels,B,M,N,K",
        "bmm,2.0,AMD Instinct MI100,Cijk_MI32x32x2,,1,4,6,8",
    )
    return source_tree


@pytest.mark.usefixtures("tree")
def test_n_of_the_source_is_the_contraction() -> None:
    row = bp.datasets.load("neusight", ops="bmm", split="train").iloc[0]
    assert (row["batch"], row["m"], row["n"], row["k"]) == (2, 3, 7, 5)
    assert row["flops"] == 2 * 2 * 3 * 5 * 7
    assert row["bytes"] == 4 * 2 * (3 * 5 + 5 * 7 + 3 * 7)
    assert row["time_s"] == pytest.approx(0.5e-3), "the source has milliseconds"
    assert row["statistic"] == "mean-of-5-fastest-of-25"
    assert row["dtype"] == "float32"


@pytest.mark.usefixtures("tree")
def test_splits_are_campaigns_and_roles() -> None:
    table = bp.datasets.load("neusight")
    roles = dict(zip(table["campaign"], table["role"], strict=True))
    assert roles == {
        "neusight-train-tesla-t4": "fit",
        "neusight-test-tesla-t4": "heldout",
        "neusight-test-nvidia-h100-80gb-hbm3": "heldout",
        "neusight-test-amd-instinct-mi100": "heldout",
    }
    stacks = dict(zip(table["device"], table["stack"], strict=True))
    assert stacks["tesla-t4"] == "torch-2.1.0+cu121+cudnn8902"
    assert stacks["amd-instinct-mi100"] == "torch-2.4.1+rocm"
    assert "time_se_s" not in table, "the source carries no variance"


@pytest.mark.usefixtures("tree")
def test_winograd_is_flagged_and_left_out() -> None:
    table = bp.datasets.load("neusight", ops="conv2d")
    assert has_flag(table, "other-algorithm").tolist() == [True, False]
    assert len(bp.datasets.load("neusight", ops="conv2d", flagged="drop")) == 1


@pytest.mark.usefixtures("tree")
def test_a_rate_above_the_sheet_is_flagged(tree: Path) -> None:
    # 2 x 512 x 512 x 512 FLOP in 10 us: 27 TFLOP/s, where a T4 has 8.1.
    row = "bmm,0.01,Tesla T4,p2.1.0,8902,sgemm,cu121,,1,512,512,512"
    _write(tree, "dataset/train/collect/bmm/p2.1.0/Tesla T4.csv", HEAD + ",B,M,N,K", row)
    table = bp.datasets.load("neusight", ops="bmm", split="train")
    assert has_flag(table, "above-ceiling").all()
    assert is_excluded(table).all()


@pytest.mark.usefixtures("tree")
def test_options_narrow_what_is_read() -> None:
    table = bp.datasets.load("neusight", devices=["amd-instinct-mi100"])
    assert set(table["device"]) == {"amd-instinct-mi100"}
    used = {r["file"] for r in provenance_of(table).values() if r["kind"] == "dataset"}
    assert not any("Tesla T4" in path for path in used)
    assert "kernel" in bp.datasets.load("neusight", kernels=True)
    assert "kernel" not in table
    with pytest.raises(InputError, match=r"devices: 'gtx' is not among: .*tesla-t4"):
        bp.datasets.load("neusight", devices="gtx")
    with pytest.raises(InputError, match="ops: 'gemm' is not among: linear"):
        bp.datasets.load("neusight", ops="gemm")


def test_a_foreign_file_is_refused_by_name(tree: Path) -> None:
    path = "dataset/train/collect/bmm/p2.1.0/Tesla P4.csv"
    _write(tree, path, "a,b", "1,2")
    with pytest.raises(TableError, match=r"Tesla P4\.csv.*column\(s\) missing: OPName"):
        bp.datasets.load("neusight", ops="bmm")
    _write(tree, path, HEAD + ",B,M,N,K", "fft,0.5,Tesla P4,p,1,k,c,,1,2,3,4")
    with pytest.raises(TableError, match="row 2, column OPName: unknown operation 'fft'"):
        bp.datasets.load("neusight", ops="bmm")
    (tree / ROOT / path).write_bytes(b"\0\1\2\xff")
    with pytest.raises(InputError, match=r"Tesla P4\.csv"):
        bp.datasets.load("neusight", ops="bmm")


def test_cells_that_are_no_numbers_are_refused_by_line(tree: Path) -> None:
    path = "dataset/train/collect/bmm/p2.1.0/Tesla P4.csv"
    rows = ["bmm,0.5,Tesla P4,p,1,k,c,,1,2,3,4", "bmm,fast,Tesla P4,p,1,k,c,,1,2,3,4"]
    _write(tree, path, HEAD + ",B,M,N,K", *rows)
    with pytest.raises(TableError, match=r"Tesla P4\.csv, row 3, column Latency: 'fast' is not a number up to"):
        bp.datasets.load("neusight", ops="bmm")
    _write(tree, path, HEAD + ",B,M,N,K", "bmm,0.5,Tesla P4,p,1,k,c,,1,2,,4")
    with pytest.raises(TableError, match="row 2, column N"):
        bp.datasets.load("neusight", ops="bmm")


def test_what_was_merged_is_not_read_twice(tree: Path) -> None:
    before = len(bp.datasets.load("neusight"))
    row = "add,0.1,Tesla T4,p2.1.0,8902,k,cu121,,16,32"
    _write(tree, "dataset/test/collect/add/p2.1.0/Tesla T4.csv", HEAD + ",B,H", row)
    _write(tree, "dataset/train/elem.csv", HEAD + ",B,H", row)
    assert len(bp.datasets.load("neusight")) == before


def test_subsets_are_accepted_and_said(tree: Path) -> None:
    table = bp.datasets.load("neusight", ops="elementwise")
    (record,) = (r for r in provenance_of(table).values() if r["kind"] == "dataset")
    assert record["matches_source"] is False
    assert NeuSight().registry()[record["file"]] != record["sha256"]


# The local copies.

COUNTS = {
    ("fit", "linear"): 6423 + 6423 + 6460 + 6458 + 6460,
    ("fit", "bmm"): 17792 + 17779 + 17694 + 17697 + 16661,
    ("fit", "softmax"): 5 * 1750,
    ("fit", "layer_norm"): 5 * 1400,
    ("fit", "elementwise"): 5 * 5 * 1750,
    ("fit", "conv2d"): 4952 + 4996 + 4958 + 4969,
    ("heldout", "linear"): 5134 + 1040,
    ("heldout", "bmm"): 6405 + 2236,
    ("heldout", "softmax"): 375,
    ("heldout", "layer_norm"): 375,
    ("heldout", "elementwise"): 3219,
}


def test_row_counts_and_flags_of_the_local_copies(load_local: Callable[[str], pd.DataFrame]) -> None:
    table = load_local("neusight")
    assert table.groupby(["role", "op"]).size().to_dict() == COUNTS
    assert len(table) == 218_006
    assert table["device"].isin(bp.datasets.targets().index).all(), "every device has a spec sheet"
    assert int(has_flag(table, "other-algorithm").sum()) == 14_198
    assert int(has_flag(table, "above-ceiling").sum()) == 2_933
    above = table[has_flag(table, "above-ceiling")]
    assert set(above["algorithm"]) == {"fast"}, "only Winograd and FFT convolutions are above a peak"


def test_train_files_are_the_sources_own(load_local: Callable[[str], pd.DataFrame]) -> None:
    table = load_local("neusight")
    records = [r for r in provenance_of(table).values() if r["kind"] == "dataset"]
    assert {r["file"] for r in records if not r["matches_source"]} == {
        f"scripts/asplos/data/dataset/test/{name}.csv" for name in ("bmm", "elem", "linear", "ln", "softmax")
    }


# Read off the source's files by hand: (op, role, device, shape, latency in ms, FLOP, bytes).
VALUES: list[tuple[str, str, str, dict[str, Any], float, float, float]] = [
    ("bmm", "heldout", "tesla-v100-pcie-32gb", {"batch": 384, "m": 128, "k": 64, "n": 128}, 0.1117247983813285,
     2 * 384 * 128 * 64 * 128, 4 * 384 * (128 * 64 + 64 * 128 + 128 * 128)),
    ("bmm", "heldout", "tesla-t4", {"batch": 32, "m": 1024, "k": 1024, "n": 256}, 2.478506644566854,
     2 * 32 * 1024 * 1024 * 256, 4 * 32 * (1024 * 1024 + 1024 * 256 + 1024 * 256)),
    ("bmm", "fit", "tesla-p4", {"batch": 13, "m": 27, "k": 15, "n": 29}, 0.03233066697915395,
     2 * 13 * 27 * 15 * 29, 4 * 13 * (27 * 15 + 15 * 29 + 27 * 29)),
    ("bmm", "fit", "nvidia-a100-pcie-40gb", {"batch": 218, "m": 169, "k": 669, "n": 338}, 1.7673386732737224,
     2 * 218 * 169 * 669 * 338, 4 * 218 * (169 * 669 + 669 * 338 + 169 * 338)),
    ("bmm", "heldout", "amd-instinct-mi100", {"batch": 1280, "m": 2048, "k": 2048, "n": 256}, 91.30621490478515,
     2 * 1280 * 2048 * 2048 * 256, 4 * 1280 * (2048 * 2048 + 2048 * 256 + 2048 * 256)),
    ("linear", "heldout", "tesla-v100-pcie-32gb", {"m": 1024, "k": 2560, "n": 2560}, 1.1143167972564698,
     2 * 1024 * 2560 * 2560 + 1024 * 2560, 4 * (1024 * 2560 + 2560 * 2560 + 1024 * 2560 + 2560)),
    ("linear", "fit", "tesla-t4", {"m": 6219, "k": 54377, "n": 5256}, 1217.4834798177083,
     2 * 6219 * 54377 * 5256 + 6219 * 5256, 4 * (6219 * 54377 + 54377 * 5256 + 6219 * 5256 + 5256)),
    ("linear", "heldout", "amd-instinct-mi100", {"m": 1024, "k": 2560, "n": 2560}, 0.4951684057712555,
     2 * 1024 * 2560 * 2560 + 1024 * 2560, 4 * (1024 * 2560 + 2560 * 2560 + 1024 * 2560 + 2560)),
    ("softmax", "heldout", "tesla-v100-pcie-32gb", {"rows": 32768, "cols": 1600}, 0.7137215971946717,
     5 * 32768 * 1600, 8 * 32768 * 1600),
    ("layer_norm", "heldout", "tesla-p4", {"rows": 32768, "cols": 1280}, 2.922163152694702,
     6 * 32768 * 1280, 8 * 32768 * 1280 + 8 * 1280 + 8 * 32768),
    ("elementwise", "heldout", "tesla-v100-pcie-32gb", {"rows": 32768, "cols": 1600, "function": "add"},
     0.7671167969703674, 32768 * 1600, 12 * 32768 * 1600),
    ("elementwise", "heldout", "nvidia-a100-pcie-40gb", {"rows": 49152, "cols": 2048, "function": "tanh"},
     0.5936896085739136, 49152 * 2048, 8 * 49152 * 2048),
    ("elementwise", "fit", "tesla-v100-pcie-32gb", {"rows": 51, "cols": 232, "function": "gelu"}, 0.0389567993581295,
     51 * 232, 8 * 51 * 232),
    ("conv2d", "fit", "tesla-t4", {"batch": 38, "channels": 893, "filters": 326, "size": 5}, 2.7097493012746177,
     2 * 38 * 326 * 5 * 5 * 893 * 9, 4 * (38 * 893 * 25 + 326 * 893 * 9 + 38 * 326 * 25)),
]  # fmt: skip


def test_hand_checked_values(load_local: Callable[[str], pd.DataFrame]) -> None:
    table = load_local("neusight")
    for op, role, device, shape, latency_ms, flops, nbytes in VALUES:
        rows = table[(table["op"] == op) & (table["role"] == role) & (table["device"] == device)]
        for name, value in shape.items():
            rows = rows[rows[name] == value]
        times = rows["time_s"].to_numpy() * 1e3
        row = rows[abs(times / latency_ms - 1) < 1e-12]
        assert len(row) == 1, (op, device, shape)
        assert row["flops"].iloc[0] == flops, (op, device)
        assert row["bytes"].iloc[0] == nbytes, (op, device)
