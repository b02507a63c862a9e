"""Simulation-based calibration of the communication model in a small configuration (Talts et al. 2018).

Every parameter and the joint log likelihood: two collectives between 2 and 4 ranks on one target, four sizes, two
repeats of each.
"""

from __future__ import annotations

import pytest

from bayesperf.checks import sbc
from tests.messages import messages_table

SIMULATIONS = 400


@pytest.mark.slow
def test_ranks_are_uniform() -> None:
    """The family-wise level over all rows of the table is 1 %."""
    table = messages_table(1, ops=("all_reduce", "all_gather"), ranks=(2, 4), sizes=(1e3, 3e4, 1e6, 3e7))
    found = sbc("communication", table, simulations=SIMULATIONS, draws=200, tune=400, seed=17)
    assert found.simulations == SIMULATIONS
    named = set(found.table["parameter"])
    assert {"link", "own", "growth", "start", "step", "exponent", "latency", "byte"} <= named
    assert {"handshake", "flags", "misfit", "repeat", "log_likelihood"} <= named
    assert found.failed(0.01) == [], found.table.sort_values("p").head(10)
