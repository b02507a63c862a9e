"""Simulation-based calibration of the shipped roofline in a small configuration (Talts et al. 2018).

All scalar parameters and the joint log likelihood, on one target: matrix products, streams and launches with two
repeats each, as `tests.tables.roofline_table` lays them out.
"""

from __future__ import annotations

import pytest

from bayesperf.checks import sbc
from tests.tables import roofline_table

SIMULATIONS = 200


@pytest.mark.slow
def test_ranks_are_uniform() -> None:
    """The family-wise level over all rows of the table is 1 %."""
    found = sbc("roofline", roofline_table(1), simulations=SIMULATIONS, seed=17)
    assert found.simulations == SIMULATIONS
    named = set(found.table["parameter"])
    assert {"scale", "main", "sharpness", "misfit", "repeat", "rate", "memory", "overhead", "drop", "launch"} <= named
    assert "log_likelihood" in named
    assert found.failed(0.01) == [], found.table.sort_values("p").head(10)
