"""A profile with an exact posterior, on disk beside the table that it was fitted to; a second fit draws again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

from bayesperf.inference.diagnostics import Check, gate, passed
from bayesperf.inference.infer import Inference, fingerprint
from bayesperf.prediction.profile import Profile
from bayesperf.store import read_measurements, with_provenance, write_measurements
from tests.exact import PRIOR, Flat, World, exact_profile

WORLD = World()


@dataclasses.dataclass(frozen=True)
class Case:
    """A profile, its file, and the file of its measurements."""

    profile: Profile
    path: Path
    table: Path

    def edit(self, change: Callable[[h5py.File], None]) -> None:
        """Change the profile's file in place, as an editor of NetCDF files would."""
        with h5py.File(self.path, "r+") as file:
            change(file)


def fitted(table: Any, seed: int) -> Profile:
    """The exact posterior of a table, with the facts that a file needs."""
    profile = exact_profile(WORLD, table, seed)
    tree = profile.tree
    posterior = tree["posterior"].to_dataset()["log_bandwidth"].values.reshape(4, -1, 2)
    tree["posterior"] = xr.Dataset({"log_bandwidth": (("chain", "draw", "target"), posterior)})
    tree["log_prior"] = xr.Dataset({"log_bandwidth": (("chain", "draw", "target"), -0.5 * posterior**2)})
    energy = np.random.default_rng(seed).standard_normal(posterior.shape[:2])
    stats = {"diverging": (("chain", "draw"), np.zeros(energy.shape, bool)), "energy": (("chain", "draw"), energy)}
    tree["sample_stats"] = xr.Dataset(stats)
    facts = {
        "model": "flat",
        "model_version": "1",
        "seed": seed,
        "sampler": {"draws": 500, "tune": 500, "chains": 4, "target_accept": 0.9},
        "fingerprint": fingerprint(table),
        "caveats": [],
    }
    checks = gate(tree, ["log_bandwidth"])
    assert passed(checks)
    return Profile(dataclasses.replace(profile.inference, facts=facts, checks=checks))


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Two targets, two campaigns, some rows held out; second fits draw from the same exact posterior."""
    rng = np.random.default_rng(5)
    bandwidth = {"old-gpu": PRIOR[0], "new-gpu": PRIOR[0] + 0.6}
    table = WORLD.measure(rng, bandwidth, campaigns=["monday", "tuesday"], rows=6).drop(columns="measurement_id")
    table["role"] = ["heldout" if at % 6 == 5 else "fit" for at in range(len(table))]
    table["samples_s"] = [[t, 2 * t, 3 * t] for t in table["time_s"]]
    table["samples_iterations"] = [[1, 2, 3]] * len(table)
    record = {"kind": "measurement", "host": "somewhere"}
    from bayesperf.store import provenance_id

    table["provenance_id"] = provenance_id(record)
    write_measurements(with_provenance(table, {provenance_id(record): record}), tmp_path / "host.parquet")
    read = read_measurements(tmp_path / "host.parquet")
    rows = read[read["role"] == "fit"].drop(columns=["samples_s", "samples_iterations"]).reset_index(drop=True)
    profile = fitted(rows, 1)
    profile.save(tmp_path / "host.nc")
    monkeypatch.setattr("bayesperf.plugins.load", lambda kind, name: lambda: Flat(WORLD))

    def again(inference: Inference, encoded: Any, progress: bool) -> tuple[xr.DataTree, list[Check]]:
        found = fitted(inference.rows, 2)
        return xr.DataTree.from_dict({"posterior": found.tree["posterior"].to_dataset()}), inference.checks

    def prior(model: Any, encoded: Any, seed: int) -> xr.Dataset:
        draws = PRIOR[0] + PRIOR[1] * np.random.default_rng(seed + 7).standard_normal((1, 500, 2))
        return xr.Dataset({"log_bandwidth": (("chain", "draw", "target"), draws)})

    monkeypatch.setattr("bayesperf.verification.refit._sample", again)
    monkeypatch.setattr("bayesperf.verification.again._draw_prior", prior)
    return Case(profile, tmp_path / "host.nc", tmp_path / "host.parquet")
