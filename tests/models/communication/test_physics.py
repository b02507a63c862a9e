"""The equations alone: their limits, and that shares are the derivatives they claim to be."""

from __future__ import annotations

import numpy as np
import pytest

from bayesperf.collectives import bus_factor, is_collective, traffic
from bayesperf.models.communication.physics import (
    log_factor,
    log_kept,
    log_steps,
    message_of,
    protocol_times,
    shares,
    walks,
)

LATENCY, HANDSHAKE, FLAGS = np.log(1e-5), np.log(2.0), np.log(1.0)


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
def test_rings_and_trees_are_the_ends_of_one_law(ranks: int) -> None:
    assert np.exp(log_steps(np, 1.0, np.log(ranks))) == pytest.approx(ranks - 1)
    assert np.exp(log_steps(np, 1e-6, np.log(ranks))) == pytest.approx(np.log2(ranks), rel=1e-4)


def test_steps_are_the_same_in_pytensor() -> None:
    import pytensor.tensor as pt
    from pytensor.compile.mode import Mode

    ours = log_steps(np, 0.7, np.log([2.0, 5.0]))
    theirs = log_steps(pt, pt.as_tensor(0.7), np.log([2.0, 5.0])).eval(mode=Mode("py", "fast_compile"))
    np.testing.assert_allclose(ours, theirs)


def test_small_messages_wait_and_large_ones_move() -> None:
    transfer = np.log(np.array([1e-12, 1e2]))
    together, _, _ = protocol_times(np, LATENCY, transfer, HANDSHAKE, FLAGS)
    # Small: the latency alone. Large: the bytes alone, without the flags that the other protocol adds.
    np.testing.assert_allclose(together, [LATENCY, transfer[1]], atol=0.02)


def test_the_faster_protocol_is_taken() -> None:
    transfer = np.log(np.geomspace(1e-7, 1e-2, 50))
    together, small, large = protocol_times(np, LATENCY, transfer, HANDSHAKE, FLAGS)
    faster = np.minimum(small, large)
    assert (together <= faster).all()
    assert (together >= faster - np.log(2) / 4 - 1e-12).all()
    assert (np.diff(together) > 0).all()


def test_shares_are_the_sensitivities() -> None:
    transfer, step = np.log(np.geomspace(1e-7, 1e-2, 20)), 1e-5
    waiting, moving = shares(np.full(20, LATENCY), transfer, np.full(20, HANDSHAKE), np.full(20, FLAGS))
    for which, share in ((0, waiting), (1, moving)):
        up, down = (
            protocol_times(np, LATENCY + s * (which == 0), transfer + s * (which == 1), HANDSHAKE, FLAGS)[0]
            for s in (step, -step)
        )
        np.testing.assert_allclose(share, (up - down) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "broadcast", "send_recv", "ppermute"])
@pytest.mark.parametrize("ranks", [2, 8])
def test_factors_are_those_of_nccl_tests(op: str, ranks: int) -> None:
    known = "send_recv" if op == "ppermute" else op
    assert np.exp(log_factor(op, ranks)) == pytest.approx(bus_factor(known, ranks))
    assert message_of(op, np.array([traffic(known, 3e6, ranks)]), np.array([float(ranks)]))[0] == pytest.approx(3e6)
    kept = np.exp(log_kept(op, ranks))
    assert kept == pytest.approx(1 / ranks if op.startswith("all_") else 0.0)


def test_a_lone_rank_puts_nothing_on_the_wire() -> None:
    assert np.exp(log_factor("all_reduce", 1)) < 1e-30
    assert np.exp(log_kept("all_reduce", 1)) == 1.0


def test_what_is_a_collective() -> None:
    assert all(is_collective(op) for op in ("all_reduce", "reduce_scatter", "send_recv", "ppermute", "broadcast"))
    assert not any(is_collective(op) for op in ("matmul", "stream_copy", "copy_h2d", "send_recv_window"))
    assert walks("broadcast")
    assert not walks("ppermute")
