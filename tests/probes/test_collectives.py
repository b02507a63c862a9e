"""Collectives over four ranks: routes, wrong routes, conventions, sweeps."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from bayesperf import plugins
from bayesperf.collectives import bus_factor
from bayesperf.errors import InputError, MeasurementError
from bayesperf.measure.chain import build
from bayesperf.measure.point import check_result
from bayesperf.probe import AXIS, Config, Kernel, chained

OPS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ppermute")


def config(op: str, ranks: int, size: float = 4096.0, **more: Any) -> Config:
    probe = plugins.load("probe", "collectives")
    (one,) = probe.configurations({"ops": [op], "message_bytes": [size], "n_devices": [ranks], **more})
    return dict(one)


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("op", OPS)
def test_every_rank_has_what_it_should(op: str, ranks: int) -> None:
    probe, shape = plugins.load("probe", "collectives"), config(op, ranks)
    program = build(probe, shape, jax.local_devices()[:ranks], np.random.default_rng(0))
    assert check_result(probe, shape, program, iterations=3) <= probe.tolerance(shape)
    argument, output = program.carry()
    assert len(argument) == len(output) == ranks
    assert max(argument.nbytes, output.nbytes) / ranks == probe.work(shape).message_bytes
    assert len({rank.tobytes() for rank in argument}) == ranks


def test_a_wrong_route_is_a_wrong_result() -> None:
    probe, shape = plugins.load("probe", "collectives"), config("ppermute", 4)

    class Reversed:
        """The ring, the other way round."""

        mode, work, reference, tolerance = probe.mode, probe.work, probe.reference, probe.tolerance

        def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
            right = probe.kernel(config, rng)
            back = [(k, (k - 1) % 4) for k in range(4)]
            argument, output = right.carry
            return chained(lambda x: jax.lax.ppermute(x, AXIS, back), argument, output, (), right.expectation)

    other: Any = Reversed()
    program = build(other, shape, jax.local_devices()[:4], np.random.default_rng(0))
    with pytest.raises(MeasurementError) as caught:
        check_result(other, shape, program, iterations=1)
    assert caught.value.reason == "wrong-result"


@pytest.mark.parametrize(
    ("op", "moved", "factor"),
    [
        ("all_reduce", 2.0, 1.5),
        ("all_gather", 1.25, 0.75),
        ("reduce_scatter", 1.25, 0.75),
        ("all_to_all", 2.0, 0.75),
        ("ppermute", 2.0, 1.0),
    ],
)
def test_conventions_of_nccl_tests(op: str, moved: float, factor: float) -> None:
    work = plugins.load("probe", "collectives").work(config(op, 4, 4096.0))
    assert work.message_bytes == 4096.0
    assert work.bytes == moved * 4096.0
    assert work.bus_factor == factor
    assert (work.flops, work.ranks, work.processes) == (0.0, 4, 1)
    assert bus_factor("all_reduce", 2) == 1.0


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
def test_messages_are_whole_parts(ranks: int) -> None:
    shape = config("all_to_all", ranks, 1000.0)
    assert shape["elements"] % ranks == 0


@pytest.mark.parametrize(("ranks", "processes"), [(1, 1), (3, 2), (2, 0)])
def test_ranks_that_cannot_be_are_refused(ranks: int, processes: int) -> None:
    with pytest.raises(InputError, match="n_devices"):
        config("all_reduce", ranks, n_processes=[processes])


def test_as_many_devices_as_ranks() -> None:
    probe, shape = plugins.load("probe", "collectives"), config("all_reduce", 4)
    with pytest.raises(MeasurementError) as caught:
        build(probe, shape, jax.local_devices()[:2], np.random.default_rng(0))
    assert caught.value.reason == "unsupported"
