"""A folder with everything that the documents' examples name, and a sampler that costs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bayesperf as bp
from bayesperf.inference.diagnostics import Check
from bayesperf.inference.sampling import sample_prior
from bayesperf.store import write_measurements
from tests.docs.pages import ROOT
from tests.tables import roofline_table

TARGETS = ("my-cpu-x1", "my-gpu", "old-gpu", "new-gpu", "A", "B", "NAME")
"""Names that the documents give to targets."""

STEP = """
import jax
import jax.numpy as jnp


def step():
    x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    return (lambda x, w: jnp.tanh(x @ w)), (x, x)
"""

WORKLOADS = "op,dtype,flops,bytes,count\nmatmul,float32,3.3e7,1e6,4\nstream_triad,float32,1e6,8e6,1\n"


@pytest.fixture(scope="module")
def no_sampler() -> Iterator[None]:
    """Fits whose posterior is their prior: examples must run, whatever they print; the sampler is tested elsewhere."""

    kept: list[xr.DataTree] = []

    def keeping(model: Any, *, draws: int, seed: int) -> xr.DataTree:
        kept.append(sample_prior(model, draws=draws, seed=seed))
        return kept[-1]

    def drawn(
        factors: Any, settings: Any, seed: int, progress: bool, attempts: int
    ) -> tuple[xr.DataTree, list[Check], Any, int]:
        prior = kept[-1]["prior"].to_dataset()
        shape = (prior.sizes["chain"], prior.sizes["draw"])
        stats = xr.Dataset({"diverging": (("chain", "draw"), np.zeros(shape, dtype=bool))})
        tree = xr.DataTree.from_dict({"posterior": prior, "sample_stats": stats})
        return tree, [Check("R-hat", 1.0, 1.01, True)], settings, 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayesperf.inference.infer.sample_prior", keeping)
        # What is told of such draws is found again in them.
        patch.setattr("bayesperf.verification.again.gate", lambda tree, names: [Check("R-hat", 1.0, 1.01, True)])
        patch.setattr("bayesperf.inference.infer.sample_until_passed", drawn)
        yield


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, no_sampler: None) -> Path:
    """Folder with the files that the documents name."""
    folder = tmp_path_factory.mktemp("documents")

    def at(name: str) -> Path:
        (folder / name).parent.mkdir(exist_ok=True)
        return folder / name

    simulated = roofline_table(1, targets=TARGETS, heldout=True).drop(columns="measurement_id")
    write_measurements(simulated, folder / "measurements.parquet")
    table = bp.read_measurements(folder / "measurements.parquet")
    for name in ("host.parquet", "first/measurements.parquet"):
        write_measurements(table, at(name))
    write_measurements(table[table["role"] == "heldout"].reset_index(drop=True), folder / "heldout.parquet")
    tomorrow = roofline_table(2, targets=TARGETS, campaigns=("tuesday",))
    for name in ("tomorrow.parquet", "tuesday.parquet"):
        write_measurements(tomorrow, folder / name)
    write_measurements(roofline_table(3, targets=("newcomer",)), folder / "rows.parquet")
    for name in ("lab-monday.parquet", "lab-tuesday.parquet", "lab-wednesday.parquet", "hosts/a.parquet"):
        shutil.copy(folder / "host.parquet", at(name))
    (folder / "specs.csv").write_text("device,peak_flops_float32,bandwidth_bytes_per_s\nA,1e12,1e11\n")
    bp.fit(table, seed=1).save(folder / "host.nc")
    for name in ("profile.nc", "fleet.nc", "before.nc", "after.nc", "last-month.nc", "first/profile.nc"):
        shutil.copy(folder / "host.nc", folder / name)
    for name in ("workloads.csv", "model.csv"):
        (folder / name).write_text(WORKLOADS)
    for name in ("train.py", "model.py"):
        (folder / name).write_text(STEP)
    outputs = ROOT / "tests" / "formats" / "fixtures"
    copies = {"allreduce.txt": "nccl_new.txt", "allgather.txt": "nccl_labelled.txt", "log.txt": "nccl_new.txt"}
    for name, output in {**copies, "stream.log": "stream_old.txt"}.items():
        shutil.copy(outputs / output, folder / name)
    (folder / "results.csv").write_text("M,N,K,type,latency,node\n64,64,64,fp16,0.5,7\n128,64,64,fp32,0.9,7\n")
    return folder
