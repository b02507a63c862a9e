"""What a report says of contention is what the mixes say, with no more width than they leave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from _contention import KERNELS, Target, pairs, table

from bayesperf.model import Draws
from bayesperf.models.contention.coded import Encoded
from bayesperf.models.contention.encode import encode
from bayesperf.models.contention.quantities import of_contention

Prior = Callable[[Encoded, int], Draws]


def test_demand_and_capacity_that_mixes_cannot_tell_apart_do_not_widen_what_they_show(prior_draws: Prior) -> None:
    encoded = encode(table(Target("box"), list(pairs(KERNELS[:2])), 1), None)
    draws = prior_draws(encoded, 3)
    stream = encoded.ops.index("stream_triad")
    # Three explanations of streams that cost each other nothing: room for two, or less of it and less demand.
    demand = np.array([0.0, -0.4, -0.8])
    draws["demand_effect"][:, stream] = demand
    draws["memory_room"][:, 0] = np.log(4.0 * np.exp(demand) - 1.0)
    draws["memory_loss"][:, 0] = np.log(1e-6)
    draws["victim_effect"][:] = 0.0
    found = {quantity.name: quantity.draws for quantity in of_contention(encoded, draws)}
    np.testing.assert_allclose(found["contention_memory"], 1.0, atol=0.02)
    assert np.ptp(found["shared_memory"]) > 1.0


def test_what_no_mix_saturates_is_the_prior_s(prior_draws: Prior) -> None:
    weak = KERNELS[0], KERNELS[0]
    encoded = encode(table(Target("box"), [weak], 1), None)
    draws = prior_draws(encoded, 200)
    found = {quantity.name: quantity.draws for quantity in of_contention(encoded, draws)}
    assert np.ptp(np.quantile(found["contention_memory"], [0.05, 0.95])) > 0.3
