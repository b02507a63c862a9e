"""What the sampler is asked for, and how a second attempt follows from what the first one lacked."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from bayesperf.inference.diagnostics import Check
from bayesperf.inference.factors import LONGEST, lacking
from bayesperf.inference.sampling import SamplerSettings, compile_model, sample


def _checks(rhat: float = 1.0, bulk: float = 4000.0, tail: float = 4000.0) -> list[Check]:
    found = [("R-hat", rhat, 1.01), ("bulk ESS", bulk, 400.0), ("tail ESS", tail, 400.0)]
    return [Check(name, value, limit, True) for name, value, limit in found]


@pytest.mark.parametrize(
    ("checks", "times"),
    [
        (_checks(), 2),
        (_checks(bulk=150.0), 3),
        (_checks(tail=101.0), 4),
        (_checks(rhat=1.045), 5),
        (_checks(rhat=1.4, bulk=7.0), LONGEST),
        (_checks(rhat=float("nan"), bulk=float("nan")), LONGEST),
    ],
)
def test_a_second_attempt_is_as_long_as_the_first_one_lacked(checks: list[Check], times: int) -> None:
    assert lacking(checks) == times


def test_thinned_draws_are_those_of_the_whole_chain() -> None:
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Deterministic("y", 2.0 * x)
    compiled = compile_model(model)
    whole, thinned = (
        sample(model, compiled, SamplerSettings(draws=60, tune=100, chains=2, thin=thin), seed=1, progress=False)
        for thin in (1, 3)
    )
    assert thinned["posterior"].sizes["draw"] == 20
    for name in ("x", "y"):
        assert np.array_equal(np.asarray(thinned["posterior"][name]), np.asarray(whole["posterior"][name])[:, ::3])
    assert thinned["sample_stats"].sizes["draw"] == 60
