"""AIConfigurator: GEMM, attention and NCCL on H100, A100, L40S, by serving stack and version (NVIDIA, Apache-2.0)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayesperf.dataset import Dataset, Files, Rule, Source, SourceFile, choose
from bayesperf.datasets import formulas, rules
from bayesperf.datasets.fetch import read_card, read_registry
from bayesperf.datasets.tables import numbers, read_parquet, require
from bayesperf.errors import TableError
from bayesperf.specs import slug

__all__ = ["AIConfigurator"]

COMMIT = "095f58a51c4ca8e61b66ec108d86f223f8d559ce"
ROOT = "aic-core/src/aiconfigurator_core/systems/data"
FAMILIES = {
    "gemm": ("gemm_perf",),
    "attention": ("context_attention_perf", "generation_attention_perf"),
    "nccl": ("nccl_perf",),
}
LOG = logging.getLogger("bayesperf")
MS = 1e-3
SYSTEMS = {
    "a100_sxm": "nvidia-a100-sxm4-80gb",
    "a100_pcie": "nvidia-a100-80gb-pcie",
    "h100_sxm": "nvidia-h100-80gb-hbm3",
    "h100_pcie": "nvidia-h100-pcie",
    "h200_sxm": "nvidia-h200",
    "l40s": "nvidia-l40s",
    "l4": "nvidia-l4",
    "a30": "nvidia-a30",
    "b200_sxm": "nvidia-b200",
    "gb200": "nvidia-gb200",
}


class Precision(NamedTuple):
    """Element type that is multiplied, and bytes per element of activations, weights and results."""

    dtype: str
    activation: float
    weight: float
    result: float = 2.0


PRECISIONS = {
    "bfloat16": Precision("bfloat16", 2.0, 2.0),
    "float16": Precision("float16", 2.0, 2.0),
    "fp8": Precision("float8", 1.0, 1.0),
    "fp8_block": Precision("float8", 1.0, 1.0),
    "fp8_ootb": Precision("float8", 1.0, 1.0),
    "int8_wo": Precision("float16", 2.0, 1.0),
    "int4_wo": Precision("float16", 2.0, 0.5),
    "sq": Precision("int8", 1.0, 1.0),
}
CACHE_BYTES = {"bfloat16": 2.0, "float16": 2.0, "fp8": 1.0, "int8": 1.0}
NCCL_BYTES = {"half": 2.0, "int8": 1.0}
NCCL_DTYPES = {"half": "float16", "int8": "int8"}
COLLECTIVES = {"alltoall": "all_to_all"}


class _Where(NamedTuple):
    """What the path of a table says."""

    system: str
    family: str
    framework: str
    version: str
    table: str


def _where(path: str) -> _Where | None:
    parts = path.removeprefix(f"{ROOT}/").split("/")
    if len(parts) != 5 or not parts[4].endswith(".parquet"):
        return None
    system, _, framework, version, name = parts
    table = name.removesuffix(".parquet")
    family = next((f for f, tables in FAMILIES.items() if table in tables), None)
    return None if family is None else _Where(system, family, framework, version, table)


class AIConfigurator(Dataset):
    """Operator tables of NVIDIA's AIConfigurator."""

    name = "aiconfigurator"
    source = Source(
        repository="https://github.com/ai-dynamo/aiconfigurator",
        commit=COMMIT,
        licence="Apache-2.0",
        citation="NVIDIA: AIConfigurator, https://github.com/ai-dynamo/aiconfigurator, commit 095f58a",
        folder="aiconfigurator",
        urls=(
            f"https://raw.githubusercontent.com/ai-dynamo/aiconfigurator/{COMMIT}/{{path}}",
            # Files kept in Git LFS come as pointers from the first address.
            f"https://media.githubusercontent.com/media/ai-dynamo/aiconfigurator/{COMMIT}/{{path}}",
        ),
    )

    def registry(self) -> Mapping[str, str]:
        """Hashes of the source's own files."""
        return read_registry("bayesperf.datasets.aiconfigurator")

    def card(self) -> str:
        """Text of the card."""
        return read_card("bayesperf.datasets.aiconfigurator")

    def rules(self) -> Iterable[Rule]:
        """Zero sizes, times of nothing, contradicting or missing versions, two runs in one table, copies."""
        keys = ["op", "quantization", "m", "n", "k", "batch", "sequence", "past", "heads", "kv_heads", "head_dim"]
        keys += ["window", "kv_dtype", "dtype", "n_devices", "message_bytes"]
        contradicts = "the version column names another version than the folder: which stack ran is not known"
        return [
            rules.zero_size(["m", "n", "k", "batch", "sequence", "heads", "message_bytes"]),
            rules.too_short(),
            Rule("version-conflict", contradicts, _contradicts),
            Rule(
                "no-version",
                "the table has no version column; the folder's version is taken",
                lambda t: t["reported_version"].isna().to_numpy(),
                exclude=False,
            ),
            rules.repeated_key(keys),
            rules.copied_table(keys),
        ]

    def rows(
        self,
        files: Files,
        *,
        families: Iterable[str] | str | None = None,
        systems: Iterable[str] | str | None = None,
        frameworks: Iterable[str] | str | None = None,
    ) -> pd.DataFrame:
        """Rows of the wanted tables.

        Parameters
        ----------
        files
            The source's files.
        families
            Some of ``gemm``, ``attention``, ``nccl``; None: all.
        systems
            Folders of the source, such as ``h100_sxm``; None: all.
        frameworks
            ``trtllm``, ``vllm``, ``nccl``, as far as there are; None: all.
        """
        wanted = choose("families", families, FAMILIES)
        patterns = [f"{ROOT}/*/{table}.parquet" for family in wanted for table in FAMILIES[family]]
        places = {path: where for path in files.paths(*patterns) if (where := _where(path)) is not None}
        chosen = choose("systems", systems, sorted({w.system for w in places.values()}))
        stacks = choose("frameworks", frameworks, sorted({w.framework for w in places.values()}))
        tables = [
            _READERS[where.table](files.get(path), where)
            for path, where in places.items()
            if where.system in chosen and where.framework in stacks
        ]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _contradicts(table: pd.DataFrame) -> np.ndarray:
    reported = table["reported_version"]
    return (reported.notna() & (reported != table["folder_version"])).to_numpy()


def _common(raw: pd.DataFrame, file: SourceFile, where: _Where) -> dict[str, Any]:
    """Columns every table has. A device column wins over the folder's name."""
    require(raw, ["latency"], file)
    if "device" in raw:
        device: Any = raw["device"].map({d: slug(str(d)) for d in raw["device"].unique()})
    else:
        device = SYSTEMS.get(where.system, slug(where.system))
    reported = raw["version"].astype("str") if "version" in raw else None
    stack = where.framework + "-" + (where.version if reported is None else reported)
    return {
        "device": device,
        "time_s": numbers(raw, "latency", file) * MS,
        "statistic": "mean",
        "stack": stack,
        "reported_version": reported,
        "folder_version": where.version,
        "campaign": f"aiconfigurator-{where.system}-{where.table.removesuffix('_perf')}-"
        f"{where.framework}-{where.version}",
        "file": file.path,
    }


def _known(raw: pd.DataFrame, column: str, known: Mapping[str, Any], file: SourceFile) -> pd.DataFrame:
    """Rows of known precision; others are left out, which is said: their bytes cannot be counted."""
    bad = ~raw[column].isin(list(known))
    if not bad.any():
        return raw
    names = ", ".join(sorted(map(str, raw[column][bad].unique())))
    if bad.all():
        at = f"{column} {names}"
        raise TableError(f"unknown precision: {at}; known are: {', '.join(known)}", source=file.path, column=column)
    LOG.warning("%s: %d rows left out, of unknown %s: %s", file.path, int(bad.sum()), column, names)
    return raw[~bad]


def _table(raw: pd.DataFrame, columns: dict[str, Any], work: formulas.Work) -> pd.DataFrame:
    device = columns.pop("device")
    target = columns.pop("target_suffix", "")
    table = pd.DataFrame({"device": device, **columns}, index=raw.index)
    counts = {"flops": work.flops, "bytes": work.bytes, "parallelism": work.parallelism}
    return table.assign(target=table["device"] + target, **counts)


def _gemm(file: SourceFile, where: _Where) -> pd.DataFrame:
    raw = read_parquet(file)
    require(raw, ["gemm_dtype", "m", "n", "k"], file)
    raw = _known(raw, "gemm_dtype", PRECISIONS, file)
    kinds = [PRECISIONS[name] for name in raw["gemm_dtype"]]
    m, n, k = (numbers(raw, c, file) for c in ("m", "n", "k"))
    work = formulas.matmul(
        m,
        n,
        k,
        itemsize=[p.activation for p in kinds],
        weight_itemsize=[p.weight for p in kinds],
        out_itemsize=[p.result for p in kinds],
    )
    columns = _common(raw, file, where) | {"op": "linear", "dtype": [p.dtype for p in kinds]}
    columns |= {"quantization": raw["gemm_dtype"], "m": m, "n": n, "k": k, "working_set_bytes": work.bytes}
    if "kernel_source" in raw:
        columns["kernel"] = raw["kernel_source"]
    return _table(raw, columns, work)


def _attention(file: SourceFile, where: _Where) -> pd.DataFrame:
    raw = read_parquet(file)
    sizes = ["batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "step"]
    require(raw, [*sizes, "attn_dtype", "kv_cache_dtype"], file)
    raw = _known(_known(raw, "attn_dtype", PRECISIONS, file), "kv_cache_dtype", CACHE_BYTES, file)
    batch, isl, heads, kv, dim, step = (numbers(raw, c, file) for c in sizes)
    window = numbers(raw, "window_size", file) if "window_size" in raw else np.zeros(len(raw))
    kv_bytes = raw["kv_cache_dtype"].map(CACHE_BYTES).to_numpy("float64")
    decode = where.table.startswith("generation")
    if decode:
        # The new token attends to all before it and to itself.
        shape = {"sequence": np.ones(len(raw)), "past": isl + step}
        work = formulas.attention_decode(batch, isl + step, heads, kv, dim, window=window, kv_itemsize=kv_bytes)
    else:
        shape = {"sequence": isl, "past": step}
        work = formulas.attention_context(batch, isl, heads, kv, dim, past=step, window=window, kv_itemsize=kv_bytes)
    columns = _common(raw, file, where) | {
        "op": "attention_decode" if decode else "attention_context",
        "dtype": [PRECISIONS[name].dtype for name in raw["attn_dtype"]],
        "kv_dtype": raw["kv_cache_dtype"],
        "batch": batch,
        **shape,
        "heads": heads,
        "kv_heads": kv,
        "head_dim": dim,
        "window": window,
        "working_set_bytes": work.bytes,
    }
    return _table(raw, columns, work)


def _nccl(file: SourceFile, where: _Where) -> pd.DataFrame:
    raw = read_parquet(file)
    require(raw, ["nccl_dtype", "num_gpus", "message_size", "op_name"], file)
    raw = _known(raw, "nccl_dtype", NCCL_BYTES, file)
    # message_size counts elements: the collector divides nccl-tests' size in bytes by the element size.
    message = numbers(raw, "message_size", file) * raw["nccl_dtype"].map(NCCL_BYTES).to_numpy("float64")
    ranks = numbers(raw, "num_gpus", file)
    op = raw["op_name"].replace(COLLECTIVES)
    traffic = np.zeros(len(raw))
    for name in op.unique():
        if name not in formulas.COLLECTIVES:
            known = ", ".join(formulas.COLLECTIVES)
            raise TableError(f"unknown collective {name!r}; known are: {known}", source=file.path, column="op_name")
        mine = (op == name).to_numpy()
        traffic[mine] = formulas.collective(name, message[mine], ranks[mine]).bytes
    columns = _common(raw, file, where) | {
        "op": op,
        "dtype": raw["nccl_dtype"].map(NCCL_DTYPES),
        "message_bytes": message,
        "n_devices": ranks,
        "target_suffix": "-node",
    }
    none = np.full(len(raw), np.nan)
    return _table(raw, columns, formulas.Work(np.zeros(len(raw)), traffic, none))


_READERS = {
    "gemm_perf": _gemm,
    "context_attention_perf": _attention,
    "generation_attention_perf": _attention,
    "nccl_perf": _nccl,
}
