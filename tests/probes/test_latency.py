"""The pointer chase: one cycle through every line, each hop waiting for the one before."""

from __future__ import annotations

import numpy as np
import pytest

from bayesperf import plugins
from bayesperf.errors import InputError
from bayesperf.probe import Config


def config(size: float, line: int = 64) -> Config:
    (one,) = plugins.load("probe", "latency").configurations({"working_set_bytes": [size], "line_bytes": line})
    return dict(one)


@pytest.mark.parametrize(("size", "line"), [(16e3, 64), (1e6, 64), (300e3, 128)])
def test_the_cycle_visits_every_line_once(size: float, line: int) -> None:
    shape = config(size, line)
    kernel = plugins.load("probe", "latency").kernel(shape, np.random.default_rng(0))
    table, at = kernel.operands[0], int(kernel.carry[0][0])
    assert table.dtype == np.int32
    assert table.nbytes == shape["lines"] * line
    seen = set()
    for _ in range(shape["lines"]):
        seen.add(at // (line // 4))
        at = int(table[at])
    assert len(seen) == shape["lines"]
    assert at == int(kernel.carry[0][0])


def test_neighbours_are_not_neighbours_in_memory() -> None:
    shape = config(1e6)
    table = plugins.load("probe", "latency").kernel(shape, np.random.default_rng(0)).operands[0]
    steps = np.abs(table[::16].astype(np.int64) // 16 - np.arange(shape["lines"]))
    assert np.mean(steps <= 8) < 0.01


def test_hops_do_not_exceed_the_working_set() -> None:
    work = plugins.load("probe", "latency").work(config(1.0))
    assert work.bytes <= work.working_set_bytes
    assert work.parallelism == 1


@pytest.mark.parametrize(("size", "line"), [(1e12, 64), (1e6, 63), (1e6, 4)])
def test_what_int32_cannot_reach_is_refused(size: float, line: int) -> None:
    with pytest.raises(InputError, match=r"stay below|multiple"):
        config(size, line)
