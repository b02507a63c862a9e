"""What does not fit into memory is refused before it is tried, with what to do instead."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesperf.errors import InputError
from bayesperf.measure import machine
from bayesperf.prediction.profile import Profile
from bayesperf.prediction.room import draws_in, refuse_beyond_memory
from bayesperf.validation.validate import _draws_for
from tests.exact import PRIOR, World, exact_profile


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch) -> Profile:
    """A profile on a machine with 100 MB of memory left."""
    monkeypatch.setattr(machine, "memory_limit_bytes", lambda: 1e8)
    world = World()
    table = world.measure(np.random.default_rng(1), {"a": PRIOR[0], "b": PRIOR[0]}, campaigns=["monday"])
    return exact_profile(world, table, 1, draws=1000)


@pytest.fixture
def workloads() -> pd.DataFrame:
    """Enough of them that somebody looks."""
    return pd.DataFrame({"op": "copy", "flops": 0.0, "bytes": np.geomspace(1e6, 1e9, 4000)})


def test_predictions_beyond_memory_name_the_way_that_keeps_summaries(profile: Profile, workloads: pd.DataFrame) -> None:
    with pytest.raises(
        InputError, match=r"4e\+06 pairs .* take about 0\.6 GB of memory, 0\.1 GB are free: use predict_fr"
    ):
        profile.predict(workloads, "a")
    with pytest.raises(InputError, match="fewer workloads at a time"):
        profile.compare(["a", "b"], workloads)
    assert profile.predict(workloads, "a", draws=10).draws.shape == (10, 4000)


def test_what_is_small_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_limit_bytes", lambda: 0.0)
    refuse_beyond_memory(1e6, "never")
    with pytest.raises(InputError, match="never"):
        refuse_beyond_memory(1e8, "never")


def test_large_tables_are_validated_by_fewer_replicates(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_limit_bytes", lambda: 1e12)
    assert [draws_in(_draws_for(profile, rows)) for rows in (10, 12_500, 1_000_000)] == [1000, 800, 500]
    monkeypatch.setattr(machine, "memory_limit_bytes", lambda: 1e9)
    with pytest.raises(InputError, match="validate fewer rows at a time"):
        _draws_for(profile, 1_000_000)
