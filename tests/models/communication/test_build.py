"""Whatever table comes, the model has named dims, a finite density and a finite gradient where sampling starts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from pytensor.compile.mode import Mode

from bayesperf.models.communication.build import build
from bayesperf.models.communication.encode import encode
from tests.messages import messages_table

PLAIN = Mode("py", "fast_compile")


def _everything() -> pd.DataFrame:
    """Targets, campaigns, a lone rank and a thousand, empty messages, messages to a neighbour."""
    return pd.concat(
        [
            messages_table(1, targets=("a", "b", "c"), campaigns=("x", "y"), sizes=(1e3, 1e6, 1e9)),
            messages_table(2, targets=("alone",), ranks=(1,), ops=("all_gather",), sizes=(1e3, 1e6)),
            messages_table(3, targets=("wide",), ops=("send_recv", "ppermute"), ranks=(2, 1024), sizes=(0.0, 1e9)),
        ],
        ignore_index=True,
    )


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "everything": _everything,
    "one row": lambda: messages_table(1, ops=("broadcast",), ranks=(2,), sizes=(1e6,), processes=1),
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "everything")) for n in TABLES])
def test_density_and_gradient_are_finite_at_the_start(name: str) -> None:
    model = build(encode(TABLES[name]()))
    point = model.initial_point(random_seed=1)
    assert all(np.isfinite(term).all() for term in model.compile_logp(sum=False, mode=PLAIN)(point))
    assert np.isfinite(model.compile_dlogp(mode=PLAIN)(point)).all()
