"""Spec sheets: every number has a source, dense peaks are dense, and the sheets are consistent in themselves."""

from __future__ import annotations

import pandas as pd
import pytest

import bayesperf as bp
from bayesperf.specs import NUMERIC, check_targets, slug

DTYPES = ("float64", "float64_vector", "float32", "float32_vector", "tf32", "bfloat16", "float16", "float8", "int8")
PEAKS = tuple(f"peak_flops_{d}" for d in DTYPES)
TENSOR = "peak_flops_bfloat16"


@pytest.fixture
def sheets() -> pd.DataFrame:
    """The table as shipped."""
    table: pd.DataFrame = bp.datasets.targets()
    return table


def test_enough_devices_of_every_vendor(sheets: pd.DataFrame) -> None:
    assert len(sheets) >= 30
    least = {"NVIDIA": 15, "AMD": 6, "Intel": 4, "Google": 4, "AWS": 2, "Tenstorrent": 2}
    counts = sheets["vendor"].value_counts()
    assert all(counts[vendor] >= number for vendor, number in least.items())
    assert sheets.index.str.contains("xeon|epyc|grace-cpu").sum() >= 3


def test_every_number_has_a_source_and_no_source_lacks_its_number(sheets: pd.DataFrame) -> None:
    for column in (*PEAKS, *NUMERIC):
        source = sheets[f"{column}_source"]
        unequal = sheets.index[sheets[column].notna() != source.notna()]
        assert unequal.empty, (column, list(unequal))
        given = source.dropna().astype(str)
        assert (given.str.len() >= 12).all(), column


def test_the_table_is_what_the_contract_reads(sheets: pd.DataFrame) -> None:
    again = check_targets(sheets.reset_index())
    pd.testing.assert_frame_equal(again, sheets)
    assert all(slug(device) == device for device in sheets.index), "keys are slugs of what the driver reports"
    known = {*PEAKS, *NUMERIC, *(f"{c}_source" for c in (*PEAKS, *NUMERIC)), "name", "vendor"}
    assert set(sheets.columns) == known


def test_a_caller_may_change_its_copy() -> None:
    mine = bp.datasets.targets()
    mine.loc["nvidia-h200", "tdp_w"] = 1.0
    assert bp.datasets.targets().loc["nvidia-h200", "tdp_w"] == 700


@pytest.mark.parametrize(
    "reported",
    [
        "Tesla P4", "Tesla P100-PCIE-16GB", "Tesla V100-PCIE-32GB", "Tesla T4", "NVIDIA A100-PCIE-40GB",
        "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA H100 80GB HBM3", "NVIDIA L4", "NVIDIA L40S",
        "NVIDIA H200", "NVIDIA GeForce RTX 4090", "AMD Instinct MI100", "AMD Instinct MI210", "AMD Instinct MI250",
        "TPU v4", "TPU v5 lite", "TPU v6 lite", "Intel(R) Xeon(R) Platinum 8480+",
        "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "AMD EPYC 7763 64-Core Processor",
    ],
)  # fmt: skip
def test_names_as_drivers_report_them_are_keys(sheets: pd.DataFrame, reported: str) -> None:
    assert slug(reported) in sheets.index


# Dense peaks and, where the vendor prints one, the figure with sparsity, in TFLOP/s.
DENSE_AND_SPARSE = [
    ("nvidia-a100-sxm4-80gb", "bfloat16", 312, 624),
    ("nvidia-a100-sxm4-80gb", "tf32", 156, 312),
    ("nvidia-a100-sxm4-80gb", "int8", 624, 1248),
    ("nvidia-h100-80gb-hbm3", "bfloat16", 989.4, 1978.9),
    ("nvidia-h100-80gb-hbm3", "tf32", 494.7, 989.4),
    ("nvidia-h100-80gb-hbm3", "float8", 1978.9, 3957.8),
    ("nvidia-h100-pcie", "bfloat16", 756.5, 1513),
    ("nvidia-h200", "bfloat16", 989.5, 1979),
    ("nvidia-l4", "bfloat16", 121, 242),
    ("nvidia-l4", "float8", 242, 485),
    ("nvidia-l40s", "bfloat16", 362.05, 733),
    ("nvidia-l40s", "int8", 733, 1466),
    ("nvidia-a40", "float16", 149.7, 299.4),
    ("nvidia-b200", "bfloat16", 2250, 4500),
    ("amd-instinct-mi300x", "float16", 1307.4, 2614.9),
    ("amd-instinct-mi300x", "float8", 2614.9, 5229.8),
    ("amd-instinct-mi355x", "float8", 5033.2, 10066.3),
    ("aws-trainium2", "float8", 1299, 2563),
]


@pytest.mark.parametrize(("device", "dtype", "dense", "sparse"), DENSE_AND_SPARSE)
def test_peaks_are_dense(sheets: pd.DataFrame, device: str, dtype: str, dense: float, sparse: float) -> None:
    peak = float(sheets[f"peak_flops_{dtype}"][device]) / 1e12
    assert peak == pytest.approx(dense, rel=1e-3)
    assert peak < 0.75 * sparse


# FLOP per clock and unit, dense: from the vendor's description of one SM or CU, with the clock the peak is given at.
PER_CLOCK = [
    ("tesla-v100-sxm2-16gb", "float16", 1024, 1.53),
    ("tesla-t4", "float16", 1024, 1.59),
    ("nvidia-a100-sxm4-80gb", "bfloat16", 2048, 1.41),
    ("nvidia-a100-sxm4-80gb", "tf32", 1024, 1.41),
    ("nvidia-a100-sxm4-80gb", "float32", 128, 1.41),
    ("nvidia-h100-80gb-hbm3", "bfloat16", 4096, 1.83),
    ("nvidia-h100-80gb-hbm3", "float32", 256, 1.98),
    ("nvidia-h100-pcie", "float32", 256, 1.755),
    ("nvidia-geforce-rtx-4090", "bfloat16", 512, 2.52),
    ("nvidia-geforce-rtx-4090", "float32", 256, 2.52),
    ("nvidia-l4", "float32", 256, 2.04),
    ("tesla-p4", "float32", 256, 1.07),
    ("tesla-p100-pcie-16gb", "float32", 128, 1.3),
    ("amd-instinct-mi100", "float16", 1024, 1.502),
    ("amd-instinct-mi100", "float32", 256, 1.502),
    ("amd-instinct-mi100", "float32_vector", 128, 1.502),
    ("amd-instinct-mi250x", "float16", 1024, 1.7),
    ("amd-instinct-mi300x", "float16", 2048, 2.1),
    ("amd-instinct-mi300x", "float8", 4096, 2.1),
    ("amd-instinct-mi355x", "float16", 4096, 2.4),
    ("intel-data-center-gpu-max-1550", "bfloat16", 4096, 1.6),
    ("intel-data-center-gpu-max-1550", "float64", 256, 1.6),
]


@pytest.mark.parametrize(("device", "dtype", "per_clock", "ghz"), PER_CLOCK)
def test_peaks_follow_from_units_and_clock(
    sheets: pd.DataFrame, device: str, dtype: str, per_clock: int, ghz: float
) -> None:
    row = sheets.loc[device]
    derived = row["parallel_units"] * per_clock * ghz * 1e9
    # A factor of two (sparsity, or a vector figure taken for a matrix one) is far outside.
    assert row[f"peak_flops_{dtype}"] == pytest.approx(derived, rel=0.03)


def test_ratios_between_dtypes(sheets: pd.DataFrame) -> None:
    nvidia = sheets[(sheets["vendor"] == "NVIDIA") & sheets[TENSOR].notna()]
    geforce = nvidia.index.str.contains("geforce")
    ultra = nvidia.index.str.contains("b300")
    ratio = nvidia["peak_flops_int8"] / nvidia[TENSOR]
    assert ratio[~geforce & ~ultra].between(1.95, 2.05).all()
    assert ratio[geforce].between(3.9, 4.1).all(), "GeForce halves bfloat16 with float32 accumulation"
    assert ratio[ultra].lt(0.1).all(), "Blackwell Ultra gave up int8"
    tf32 = (nvidia["peak_flops_tf32"] / nvidia[TENSOR]).dropna()
    assert tf32.between(0.49, 0.51).all()
    # TF32 runs on tensor cores, float32 on CUDA cores: never the same figure on data-centre parts since Ampere.
    apart = nvidia[nvidia.index.str.contains("a100|h100|h200|gh200|b200")]
    assert (apart["peak_flops_tf32"] / apart["peak_flops_float32"] > 6).all()


def test_lower_precision_is_never_slower(sheets: pd.DataFrame) -> None:
    ladder = ["float64_vector", "float64", "float32", "tf32", "float16", "float8"]
    for name, row in sheets.iterrows():
        peaks = [row[f"peak_flops_{d}"] for d in ladder if pd.notna(row[f"peak_flops_{d}"])]
        assert peaks == sorted(peaks), name
    vector = sheets["peak_flops_float32_vector"].notna()
    assert (sheets["peak_flops_float32_vector"] < sheets["peak_flops_float32"])[vector].all()


def test_memory_is_plausible(sheets: pd.DataFrame) -> None:
    accelerators = sheets[sheets["memory_bytes"].notna()]
    seconds = accelerators["memory_bytes"] / accelerators["bandwidth_bytes_per_s"]
    assert seconds.between(0.015, 0.12).all(), seconds[~seconds.between(0.015, 0.12)]
    assert (sheets["cache_bytes"].dropna() < 1e9).all()
    cached = accelerators[accelerators["cache_bytes"].notna()]
    assert len(cached) > 40
    assert (cached["cache_bytes"] < cached["memory_bytes"] / 100).all()
    assert sheets["bandwidth_bytes_per_s"].between(1e11, 1e13).all()
    assert sheets["year"].between(2015, 2026).all()
    assert sheets["tdp_w"].dropna().between(50, 1500).all()


def test_balance_is_plausible(sheets: pd.DataFrame) -> None:
    intensity = (sheets[TENSOR] / sheets["bandwidth_bytes_per_s"]).dropna()
    assert intensity.between(50, 720).all(), intensity[~intensity.between(50, 720)]
    vector = (sheets["peak_flops_float32"] / sheets["bandwidth_bytes_per_s"]).dropna()
    assert vector.between(8, 125).all(), vector[~vector.between(8, 125)]


def test_numbers_agree_with_the_system_files_of_aiconfigurator(sheets: pd.DataFrame) -> None:
    # systems/*.yaml at commit 095f58a: bandwidth in GB/s, bfloat16 and int8 in TFLOP/s, power in W.
    files = {
        "nvidia-a100-sxm4-80gb": (2039, 312, 624, 400),
        "nvidia-a100-80gb-pcie": (1935, 312, 624, 300),
        "nvidia-a30": (933, 165, 330, 165),
        "nvidia-h100-80gb-hbm3": (3350, 989, 1978, 700),
        "nvidia-h200": (4800, 989, 1978, 700),
        "nvidia-l4": (300, 121, 242, 72),
        "nvidia-l40s": (864, 362.05, 733, 350),
        "nvidia-b200": (7700, 2250, 4500, 1000),
        "nvidia-gb200": (8000, 2500, 5000, 1200),
        "intel-arc-pro-b60": (456, 98.304, 197, 200),
    }
    for device, (bandwidth, tensor, integer, power) in files.items():
        row = sheets.loc[device]
        assert row["bandwidth_bytes_per_s"] == pytest.approx(bandwidth * 1e9, rel=1e-3), device
        assert row[TENSOR] == pytest.approx(tensor * 1e12, rel=1e-3), device
        assert row["peak_flops_int8"] == pytest.approx(integer * 1e12, rel=1e-3), device
        assert row["tdp_w"] == power, device
