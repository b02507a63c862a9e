"""Vidur: LLM layers and collectives on A100 and A40, float16 (Agrawal et al., MLSys 2024)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.dataset import Dataset, Files, Rule, Source, SourceFile, choose
from bayesperf.datasets import formulas, rules
from bayesperf.datasets.fetch import read_card, read_registry
from bayesperf.datasets.tables import numbers, read_csv, require
from bayesperf.datasets.vidur.layers import FOOTPRINT, LAYERS, layer
from bayesperf.specs import slug

__all__ = ["Vidur", "standard_error"]

COMMIT = "7d47513363ec447a741ac5e47241580b47724fbf"
ROOT = "data/profiling"
KINDS = ("compute", "network")
COLLECTIVES = ("all_reduce", "send_recv")
MS = 1e-3
RESOLUTION_S = 1e-6
LAYER_SAMPLES = {"emb": 21}
COLLECTIVE_SAMPLES = 3
# The source's folder names do not say the board; the README says A100 80GB, the SXM board has the higher ceilings.
DEVICES = {
    "a100": "nvidia-a100-sxm4-80gb",
    "a100_dgx": "nvidia-a100-sxm4-80gb",
    "a100_pairwise_nvlink": "nvidia-a100-80gb-pcie",
    "a40": "nvidia-a40",
    "a40_pairwise_nvlink": "nvidia-a40",
    "h100": "nvidia-h100-80gb-hbm3",
    "h100_dgx": "nvidia-h100-80gb-hbm3",
    "h100_pairwise_nvlink": "nvidia-h100-pcie",
}
SIZES = ("n_head", "n_kv_head", "n_embd", "n_expanded_embd", "use_gated_mlp", "num_tokens")
PARALLEL = "num_tensor_parallel_workers"


class Vidur(Dataset):
    """Layer profiles (min, max, mean, median, deviation) and collectives of Vidur."""

    name = "vidur"
    source = Source(
        repository="https://github.com/microsoft/vidur",
        commit=COMMIT,
        licence="MIT",
        citation="A. Agrawal et al.: Vidur: a large-scale simulation framework for LLM inference, MLSys 2024, "
        "arXiv:2405.05465",
        folder="vidur",
        urls=(f"https://raw.githubusercontent.com/microsoft/vidur/{COMMIT}/{{path}}",),
    )

    def registry(self) -> Mapping[str, str]:
        """Hashes of the source's own files."""
        return read_registry("bayesperf.datasets.vidur")

    def card(self) -> str:
        """Text of the card."""
        return read_card("bayesperf.datasets.vidur")

    def rules(self) -> Iterable[Rule]:
        """Copied tables, zero sizes, times of nothing."""
        keys = ["function", "model", "num_tokens", "workers", "message_bytes", "n_devices", "devices_per_node"]
        return [rules.zero_size(["num_tokens", "message_bytes"]), rules.too_short(), rules.copied_table(keys)]

    def rows(
        self,
        files: Files,
        *,
        kinds: Iterable[str] | str | None = None,
        devices: Iterable[str] | str | None = None,
        models: Iterable[str] | str | None = None,
        layers: Iterable[str] | str | None = None,
    ) -> pd.DataFrame:
        """Rows of the wanted kinds.

        Parameters
        ----------
        files
            The source's files.
        kinds
            ``compute`` (layers of a language model), ``network`` (collectives), or both (None).
        devices
            Folders of the source, such as ``a100`` or ``a100_dgx``; None: all.
        models
            Models of the compute profiles, such as ``microsoft/phi-2``; None: all.
        layers
            Layers of the compute profiles, such as ``mlp_up_proj``; None: all.
        """
        wanted, names = choose("kinds", kinds, KINDS), choose("layers", layers, LAYERS)
        paths = [p for p in files.paths(*(f"{ROOT}/{kind}/*.csv" for kind in wanted)) if _kind(p) in wanted]
        chosen = choose("devices", devices, sorted({_folder(p) for p in paths}))
        paths = [p for p in paths if _folder(p) in chosen]
        if models is not None:
            known = sorted({_model(p) for p in paths if _kind(p) == "compute"})
            kept = choose("models", models, known)
            paths = [p for p in paths if _kind(p) != "compute" or _model(p) in kept]
        tables = [(_compute(files.get(p), names) if _kind(p) == "compute" else _network(files.get(p))) for p in paths]
        return pd.concat(tables, ignore_index=True)


def _kind(path: str) -> str:
    parts = path.split("/")
    if parts[2] == "compute" and parts[-1] == "mlp.csv":
        return "compute"
    if parts[2] == "network" and parts[-1].removesuffix(".csv") in COLLECTIVES:
        return "network"
    return "other"


def _folder(path: str) -> str:
    return path.split("/")[3]


def _model(path: str) -> str:
    return "/".join(path.split("/")[4:-1])


def standard_error(deviation_s: Any, samples: int) -> Any:
    """Standard error of a median, from the population deviation of `samples` values quantised to 1 us.

    sqrt(pi/2) s / sqrt(n - 1), s the population deviation (numpy's), in quadrature with the uniform quantisation error
    of 1 us / sqrt(12). The factor is that of a normal median; it is a little pessimistic for three samples.
    """
    spread = np.sqrt(np.pi / 2.0) * np.asarray(deviation_s, dtype="float64") / np.sqrt(samples - 1.0)
    return np.hypot(spread, RESOLUTION_S / np.sqrt(12.0))


def _times(raw: pd.DataFrame, name: str, samples: int, file: SourceFile) -> dict[str, Any]:
    def column(statistic: str) -> Any:
        return numbers(raw, f"time_stats.{name}.{statistic}", file, missing=True) * MS

    return {
        "time_s": column("median"),
        "statistic": "median",
        "time_se_s": standard_error(column("std"), samples),
        "time_min_s": column("min"),
        "time_mean_s": column("mean"),
        "time_max_s": column("max"),
        "time_std_s": column("std"),
        "time_resolution_s": RESOLUTION_S,
        "samples": samples,
    }


def _statistics(name: str) -> list[str]:
    return [f"time_stats.{name}.{s}" for s in ("min", "max", "mean", "median", "std")]


def _compute(file: SourceFile, names: list[str]) -> pd.DataFrame:
    raw = read_csv(file)
    require(raw, [*SIZES, PARALLEL], file)
    folder, model = _folder(file.path), _model(file.path)
    device = DEVICES.get(folder, folder)
    tables = []
    for name in names:
        if f"time_stats.{name}.median" not in raw:
            continue  # phi-2 has no norm after attention
        require(raw, _statistics(name), file)
        op, shape, work = layer(raw, name, file)
        columns = {
            "target": device,
            "device": device,
            "op": op,
            "function": name,
            "model": model,
            "dtype": "float16",
            "flops": work.flops,
            "bytes": work.bytes,
            **_times(raw, name, LAYER_SAMPLES.get(name, 20), file),
            "working_set_bytes": work.bytes * FOOTPRINT.get(name, 1.0),
            "parallelism": work.parallelism,
            **shape,
            "num_tokens": numbers(raw, "num_tokens", file),
            "workers": numbers(raw, PARALLEL, file),
            "campaign": f"vidur-{folder}-{slug(model)}",
            "file": file.path,
        }
        # A layer may be absent from single rows (no kernel was found in the trace).
        table = pd.DataFrame(columns)
        tables.append(table[table["time_s"].notna()])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _network(file: SourceFile) -> pd.DataFrame:
    name = file.path.split("/")[-1].removesuffix(".csv")
    folder = _folder(file.path)
    raw = read_csv(file)
    require(raw, ["num_workers", "size", "devices_per_node", *_statistics(name)], file)
    device = DEVICES.get(folder, folder)
    fabric = folder.partition("_")[2].replace("_", "-") or "node"
    ranks, per_node = numbers(raw, "num_workers", file), numbers(raw, "devices_per_node", file)
    message = numbers(raw, "size", file)
    work = formulas.collective(name, message, ranks)
    # Ranks on several nodes talk over another network than ranks on one: another target.
    place = np.where(ranks > per_node, "between-nodes", "in-node")
    columns = {
        "target": pd.Series([f"{device}-{fabric}-{p}" for p in place], dtype="str"),
        "device": device,
        "op": name,
        "function": name,
        "dtype": "float16",
        "flops": work.flops,
        "bytes": work.bytes,
        **_times(raw, name, COLLECTIVE_SAMPLES, file),
        "message_bytes": message,
        "n_devices": ranks,
        "devices_per_node": per_node,
        "campaign": f"vidur-{folder}-{name}",
        "file": file.path,
    }
    return pd.DataFrame(columns)
