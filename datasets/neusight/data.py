"""NeuSight: single PyTorch operators, float32, on P4, P100, V100, T4, A100 and MI100 (Lee et al., ASPLOS 2025)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.dataset import Dataset, Files, Rule, Source, SourceFile, choose
from bayesperf.datasets import formulas
from bayesperf.datasets.fetch import read_card, read_registry
from bayesperf.datasets.tables import numbers, read_csv, require
from bayesperf.errors import TableError
from bayesperf.specs import slug

__all__ = ["NeuSight"]

COMMIT = "6945927d9afcca2b9daf021f8395e53edc5b4eef"
ROOT = "scripts/asplos/data"
OPS = ("linear", "bmm", "softmax", "layer_norm", "elementwise", "conv2d")
SPLITS = ("train", "test")
FAMILY = {"linear": "linear", "bmm": "bmm", "softmax": "softmax", "ln": "layer_norm", "conv": "conv2d"}
BINARY = ("add", "mul", "pow", "div")
UNARY = ("addu", "mulu", "powu", "divu", "relu", "gelu", "tanh")
FAMILY |= dict.fromkeys(BINARY + UNARY, "elementwise")
FOLDERS = {
    "linear": ("linear",),
    "bmm": ("bmm",),
    "softmax": ("softmax",),
    "layer_norm": ("ln",),
    "elementwise": BINARY + UNARY,
    "conv2d": ("conv",),
}
MERGED = {"elementwise": "elem", "layer_norm": "ln", "conv2d": "conv"}
MS = 1e-3
COLUMNS = ("OPName", "Latency", "Device", "Torch Version", "CUDNN Version", "CUDA Version", "Kernel Name", "Kernels")
SHAPES = ("B", "M", "N", "K", "H", "Input_Channel", "Output_Channel", "Kernel_Szie", "Input_Size", "Stride", "Padding")
FAST_CONV = re.compile(r"winograd|fft|gcgemm", re.IGNORECASE)


class NeuSight(Dataset):
    """Operator latencies of NeuSight's training and test shapes."""

    name = "neusight"
    source = Source(
        repository="https://github.com/sitar-lab/NeuSight",
        commit=COMMIT,
        licence="MIT",
        citation=(
            "S. Lee, A. Phanishayee, D. Mahajan: Forecasting GPU Performance for Deep Learning Training and Inference, "
            "ASPLOS 2025, doi:10.1145/3669940.3707265"
        ),
        folder="neusight",
        urls=(f"https://raw.githubusercontent.com/sitar-lab/NeuSight/{COMMIT}/{{path}}",),
    )

    def registry(self) -> Mapping[str, str]:
        """Hashes of the source's own files."""
        return read_registry("bayesperf.datasets.neusight")

    def card(self) -> str:
        """Text of the card."""
        return read_card("bayesperf.datasets.neusight")

    def rules(self) -> Iterable[Rule]:
        """Convolutions by another algorithm than the one whose FLOP are counted."""
        why = "the library ran a Winograd or FFT kernel, which does fewer FLOP than the direct form that is counted"
        return [Rule("other-algorithm", why, lambda table: (table["algorithm"] == "fast").to_numpy())]

    def rows(
        self,
        files: Files,
        *,
        ops: Iterable[str] | str | None = None,
        devices: Iterable[str] | str | None = None,
        split: Iterable[str] | str | None = None,
        kernels: bool = False,
    ) -> pd.DataFrame:
        """Rows of the wanted operations.

        Parameters
        ----------
        files
            The source's files.
        ops
            Some of ``linear``, ``bmm``, ``softmax``, ``layer_norm``, ``elementwise``, ``conv2d``; None: all.
        devices
            Device slugs such as ``tesla-v100-pcie-32gb``; None: all.
        split
            ``train`` (role ``fit``), ``test`` (role ``heldout``) or both (None).
        kernels
            Also give the name of the library kernel that ran, in a column ``kernel``.
        """
        wanted, splits = choose("ops", ops, OPS), choose("split", split, SPLITS)
        patterns = [p for op in wanted for s in splits for p in _patterns(op, s)]
        paths = files.paths(*patterns)
        chosen = None if devices is None else {devices} if isinstance(devices, str) else set(devices)
        needed = [p for p in paths if chosen is None or _device_of(p) in {None, *chosen}]
        tables = [_read(files.get(path), kernels) for path in needed]
        table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"device": [], "op": []})
        known = sorted({*table["device"].unique(), *(d for d in map(_device_of, paths) if d)})
        rows = table["op"].isin(wanted) & table["device"].isin(choose("devices", devices, known))
        return table[rows].reset_index(drop=True)


def _patterns(op: str, split: str) -> list[str]:
    if split == "train":
        return [f"{ROOT}/dataset*/train/collect/{folder}/*/*.csv" for folder in FOLDERS[op]]
    # NVIDIA's test shapes come merged, one file for all devices; reading what was merged too would count rows twice.
    amd = [f"{ROOT}/dataset_amd/test/collect/{folder}/*/*.csv" for folder in FOLDERS[op]]
    return [f"{ROOT}/dataset/test/{MERGED.get(op, op)}.csv", *amd]


def _device_of(path: str) -> str | None:
    """Device of a file of one device; None for a merged one."""
    return slug(path.split("/")[-1].removesuffix(".csv")) if "/collect/" in path else None


def _read(file: SourceFile, kernels: bool) -> pd.DataFrame:
    raw = read_csv(file, [*COLUMNS, *SHAPES])
    require(raw, ["OPName", "Latency", "Device", "B"], file)
    unknown = raw.index[~raw["OPName"].isin(list(FAMILY))]
    if len(unknown):
        at = int(unknown[0])
        problem = f"unknown operation {raw['OPName'].iloc[at]!r}; known are: {', '.join(FAMILY)}"
        raise TableError(problem, source=file.path, row=at + 2, column="OPName")
    parts = [_converted(part, str(name), file) for name, part in raw.groupby("OPName", sort=False)]
    table = pd.concat(parts).sort_index() if parts else pd.DataFrame()
    if kernels and "Kernel Name" in raw:
        table["kernel"] = raw["Kernel Name"]
    return table


def _converted(raw: pd.DataFrame, name: str, file: SourceFile) -> pd.DataFrame:
    op = FAMILY[name]
    shape, work = _SHAPES[op](raw, name, file)
    split = "test" if "/test/" in file.path else "train"
    device = raw["Device"].astype("str").map({d: slug(str(d)) for d in raw["Device"].unique()})
    columns: dict[str, Any] = {
        "target": device,
        "device": device,
        "op": op,
        "function": name,
        "dtype": "float32",
        "flops": work.flops,
        "bytes": work.bytes,
        "time_s": numbers(raw, "Latency", file) * MS,
        "statistic": "mean-of-5-fastest-of-25",
        "working_set_bytes": work.bytes,
        "parallelism": work.parallelism,
        **shape,
        # One run of the collecting script on one machine: a campaign of that device alone.
        "campaign": f"neusight-{split}-" + device,
        "stack": _stack(raw, file),
        "role": "fit" if split == "train" else "heldout",
        "algorithm": _algorithm(raw) if op == "conv2d" else None,
        "file": file.path,
    }
    return pd.DataFrame(columns, index=raw.index)


def _stack(raw: pd.DataFrame, file: SourceFile) -> pd.Series | str:
    if "Torch Version" in raw:
        versions = ["Torch Version", "CUDA Version", "CUDNN Version"]
        require(raw, versions, file)
        torch, cuda, cudnn = (raw[version].astype(object).map(str) for version in versions)
        return "torch-" + torch.str.removeprefix("p") + "+" + cuda + "+cudnn" + cudnn
    folder = file.path.split("/")[-2]
    return f"torch-{folder.removeprefix('p')}+rocm"


def _algorithm(raw: pd.DataFrame) -> np.ndarray:
    names = raw["Kernels"].fillna("") if "Kernels" in raw else pd.Series("", index=raw.index)
    names = names + raw["Kernel Name"].fillna("")
    return np.where(names.str.contains(FAST_CONV), "fast", "direct")


def _matmul(raw: pd.DataFrame, name: str, file: SourceFile) -> tuple[dict[str, Any], formulas.Work]:
    # The source multiplies (B, M, N) by (B, N, K): its N is the contraction. Ours is k.
    require(raw, ["M", "N", "K"], file)
    batch, m, n, k = (numbers(raw, c, file) for c in ("B", "M", "K", "N"))
    work = formulas.matmul(m, n, k, batch=batch, itemsize=4.0, bias=name == "linear")
    return {"batch": batch, "m": m, "n": n, "k": k}, work


def _rows_cols(raw: pd.DataFrame, name: str, file: SourceFile) -> tuple[dict[str, Any], formulas.Work]:
    require(raw, ["H"], file)
    rows, cols = numbers(raw, "B", file), numbers(raw, "H", file)
    if name == "softmax":
        work = formulas.softmax(rows, cols)
    elif name == "ln":
        work = formulas.layer_norm(rows, cols)
    else:
        work = formulas.elementwise(rows * cols, operands=2 if name in BINARY else 1)
    return {"rows": rows, "cols": cols}, work


def _conv(raw: pd.DataFrame, name: str, file: SourceFile) -> tuple[dict[str, Any], formulas.Work]:
    names = ["B", "Input_Channel", "Output_Channel", "Kernel_Szie", "Input_Size", "Stride", "Padding"]
    require(raw, names, file)
    b, channels, filters, kernel, size, stride, padding = (numbers(raw, c, file) for c in names)
    work = formulas.conv2d(b, channels, filters, kernel, size, stride=stride, padding=padding)
    shape = {"batch": b, "channels": channels, "filters": filters, "kernel_size": kernel, "size": size}
    return {**shape, "stride": stride, "padding": padding}, work


_SHAPES = {
    "linear": _matmul,
    "bmm": _matmul,
    "softmax": _rows_cols,
    "layer_norm": _rows_cols,
    "elementwise": _rows_cols,
    "conv2d": _conv,
}
