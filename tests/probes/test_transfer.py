"""Transfers really move: nothing is a view, nothing is answered from what was fetched before."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from bayesperf import plugins
from bayesperf.errors import InputError, MeasurementError
from bayesperf.measure.chain import build
from bayesperf.measure.hosted import HostedProgram
from bayesperf.probe import hosted, never_aliased

SIZES = (4096, 2**20 + 64)


def program(op: str, size: int) -> Any:
    probe = plugins.load("probe", "transfer")
    (config,) = probe.configurations({"ops": [op], "message_bytes": [size]})
    return build(probe, config, jax.local_devices()[: probe.work(config).ranks], np.random.default_rng(0))


@pytest.mark.parametrize("size", SIZES)
def test_host_to_device_is_a_copy(size: int) -> None:
    moved = program("copy_h2d", size)
    moved.run(2)
    expected = moved.kernel.operands[0].copy()
    moved._routine._host[:] = 0
    np.testing.assert_array_equal(moved.carry()[0], expected)


@pytest.mark.parametrize("size", SIZES)
def test_device_to_host_is_a_new_copy_every_time(size: int) -> None:
    moved = program("copy_d2h", size)
    moved.run(1)
    first = moved.carry()[0]
    moved.run(1)
    second = moved.carry()[0]
    np.testing.assert_array_equal(first, second)
    assert not np.shares_memory(first, second)
    device = moved._routine._arrays[0]
    assert second.ctypes.data != device.unsafe_buffer_pointer()


@pytest.mark.parametrize("size", SIZES)
def test_device_to_device_goes_there_and_back(size: int) -> None:
    moved = program("copy_p2p", size)
    at = []
    for _ in range(3):
        moved.run(1)
        at.append(next(iter(moved._routine._array.devices())))
    assert at[0] == at[2] != at[1]
    np.testing.assert_array_equal(moved.carry()[0], moved.kernel.operands[0])


def test_a_view_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # A backend that takes over the host's memory whatever its address.
    class View:
        def devices(self) -> set[Any]:
            return set(jax.local_devices()[:1])

        def unsafe_buffer_pointer(self) -> int:
            return int(host.ctypes.data)

    host = never_aliased(np.ones(64, dtype=np.float32))
    monkeypatch.setattr(jax, "device_put", lambda array, device: View())
    monkeypatch.setattr(jax, "block_until_ready", lambda array: array)
    make = plugins.load("probe", "transfer").kernel(
        {"op": "copy_h2d", "dtype": "float32", "elements": 64}, np.random.default_rng(0)
    )
    with pytest.raises(MeasurementError) as caught:
        HostedProgram(hosted((host,), (), make.routine), jax.local_devices()[:1])
    assert caught.value.reason == "aliased"


@pytest.mark.parametrize("offset", [0, 4, 16, 60])
def test_never_aliased_keeps_values_and_leaves_alignment(offset: int) -> None:
    raw = np.zeros(4 * 256 + 128, dtype=np.uint8)
    start = (offset - raw.ctypes.data) % 64
    array = raw[start : start + 4 * 256].view(np.float32)
    array[:] = np.arange(256)
    moved = never_aliased(array)
    np.testing.assert_array_equal(moved, array)
    assert moved.ctypes.data % 64


def test_two_devices_are_needed_between_devices() -> None:
    probe = plugins.load("probe", "transfer")
    (config,) = probe.configurations({"ops": ["copy_p2p"], "message_bytes": [64]})
    with pytest.raises(MeasurementError) as caught:
        build(probe, config, jax.local_devices()[:1], np.random.default_rng(0))
    assert caught.value.reason == "unsupported"


def test_a_hosted_probe_without_a_routine_is_told_so() -> None:
    kernel = hosted((np.ones(4, dtype=np.float32),), (), None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="hosted"):
        HostedProgram(kernel, [])
