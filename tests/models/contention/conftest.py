"""The simulated targets that these tests share with the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesperf.model import Draws
from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.levels import LEVELS

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))


@pytest.fixture
def prior_draws() -> Callable[[Encoded, int], Draws]:
    """Draws of contention's part of the prior, without compiling it."""

    def draw(encoded: Encoded, n: int) -> Draws:
        rng = np.random.default_rng(1)
        draws: dict[str, Any] = {}
        for name, ((location, scale), spread) in LEVELS.items():
            common = location + scale * rng.standard_normal((n, 1))
            draws[f"{name}_common"], draws[f"{name}_spread"] = common[:, 0], np.full(n, spread)
            draws[name] = common + spread * rng.standard_normal((n, len(encoded.targets)))
        for name in ("corner", "turn_corner"):
            draws[name] = np.ones(n)
        for name in ("demand_effect", "victim_effect"):
            draws[f"{name}_spread"] = np.full(n, 0.2)
            draws[name] = 0.2 * rng.standard_normal((n, len(encoded.ops)))
        draws["pair_slope"], draws["noise_slope"] = np.full(n, 0.08), np.full(n, 0.05)
        draws["pair"] = rng.standard_normal((n, len(encoded.pairs)))
        return draws

    return draw
