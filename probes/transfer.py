"""Transfers of one buffer: host to device, device to host, device to device.

============ ================================================ =============== =======
op           one iteration                                    bytes of a rank n_devices
============ ================================================ =============== =======
``copy_h2d`` ``jax.device_put`` of a NumPy array              S (written)     scope's
``copy_d2h`` ``numpy.asarray`` of a device array              S (read)        scope's
``copy_p2p`` ``jax.device_put`` to the other device, and back S a hop         2
============ ================================================ =============== =======

flops 0; ``message_bytes`` S; bytes are the traffic of one device's memory, so the rate of a link is ``bytes / time_s``
(with write-allocate: the line is read once more where the processor writes it). The working set is both copies. Names
are those of nvbandwidth's importer. Every iteration allocates its destination, as these calls do, and waits for it:
launch and allocation are in the slope, and small sizes measure them.

What they are **on CPU**: the device's memory is the host's, so all three are copies in main memory, into buffers whose
pages are fresh when they are large: no link is measured, only what the same program pays there. JAX takes over aligned
NumPy memory and hands out views without copying; the host's buffer is therefore placed where it cannot be taken over, a
view is copied, and a result that shares memory with its source is refused (``aliased``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesperf.errors import InputError, MeasurementError
from bayesperf.probe import Config, Kernel, Probe, Routine, Work, element_bytes, hosted, never_aliased, uniform


class Transfer(Probe):
    """Sweep: ``ops`` and ``message_bytes``; ``dtypes`` defaults to float32."""

    name = "transfer"
    ops = ("copy_h2d", "copy_d2h", "copy_p2p")
    mode = "hosted"

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per op, dtype and size."""
        unknown = [op for op in sweep["ops"] if op not in self.ops]
        if unknown:
            raise InputError(f"transfer: no op named {unknown[0]!r}; there are: {', '.join(self.ops)}")
        return [
            {"op": op, "dtype": dtype, "elements": max(1, round(size / element_bytes(dtype)))}
            for op in sweep["ops"]
            for dtype in sweep.get("dtypes", ["float32"])
            for size in sweep["message_bytes"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        n = config["elements"]
        size = float(n * element_bytes(config["dtype"]))
        ranks = 2 if config["op"] == "copy_p2p" else 1
        return Work(0.0, size, 2 * size, 2 * size, n, message_bytes=size, ranks=ranks)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """The buffer; where two devices take part, one each."""
        data = uniform(rng, (config["elements"],), config["dtype"])
        makers = {"copy_h2d": _ToDevice, "copy_d2h": _ToHost, "copy_p2p": _BetweenDevices}
        return hosted((data,), (), makers[config["op"]])

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The same values, wherever they are."""
        return (np.asarray(kernel.operands[0], dtype=np.float64),)

    def tolerance(self, config: Config) -> float:
        """A copy is exact."""
        return 0.0

    def small(self, config: Config) -> Config:
        """At most 64 Ki elements."""
        return {**config, "elements": min(config["elements"], 2**16)}


class _ToDevice(Routine):
    """The host's array to every device."""

    def __init__(self, devices: Sequence[Any], kernel: Kernel):
        self._devices, self._host = list(devices), never_aliased(kernel.operands[0])
        self._arrived: list[Any] = []
        self.run(1)
        for array in self._arrived:
            _refuse_shared(array, self._host)

    def run(self, iterations: int) -> None:
        import jax

        for _ in range(iterations):
            arrived = [jax.device_put(self._host, device) for device in self._devices]
            self._arrived = jax.block_until_ready(arrived)

    def result(self) -> list[np.ndarray]:
        return [np.asarray(self._arrived[-1])]

    def release(self) -> None:
        for array in self._arrived:
            array.delete()
        self._arrived = []


class _ToHost(Routine):
    """Every device's array to the host."""

    def __init__(self, devices: Sequence[Any], kernel: Kernel):
        import jax

        source = never_aliased(kernel.operands[0])
        self._arrays = [jax.block_until_ready(jax.device_put(source, device)) for device in devices]
        self._arrived: list[np.ndarray] = []
        self.run(1)
        for host, array in zip(self._arrived, self._arrays, strict=True):
            _refuse_shared(array, host)

    def run(self, iterations: int) -> None:
        for _ in range(iterations):
            self._arrived = [_fetched(array) for array in self._arrays]

    def result(self) -> list[np.ndarray]:
        return [self._arrived[-1]]

    def release(self) -> None:
        for array in self._arrays:
            array.delete()
        self._arrays, self._arrived = [], []


class _BetweenDevices(Routine):
    """One array from the first device to the second, then back, and so on: one way is an iteration."""

    def __init__(self, devices: Sequence[Any], kernel: Kernel):
        import jax

        self._devices, self._at = list(devices[:2]), 0
        self._array = jax.block_until_ready(jax.device_put(never_aliased(kernel.operands[0]), self._devices[0]))
        before = self._array
        self.run(1)
        if _address(before) is not None and _address(before) == _address(self._array):
            raise MeasurementError("aliased", "the second device reads the first one's buffer: nothing is copied")

    def run(self, iterations: int) -> None:
        import jax

        for _ in range(iterations):
            self._at = 1 - self._at
            self._array = jax.block_until_ready(jax.device_put(self._array, self._devices[self._at]))

    def result(self) -> list[np.ndarray]:
        return [np.array(self._array)]

    def release(self) -> None:
        self._array.delete()


def _fetched(array: Any) -> np.ndarray:
    """The array's values in host memory of their own."""
    import jax

    # An array keeps what was once fetched: another one over the same buffer does not have it yet.
    fresh = jax.make_array_from_single_device_arrays(array.shape, array.sharding, [array])
    host = np.asarray(fresh)
    return host.copy() if host.ctypes.data == _address(array) else host


def _address(array: Any) -> int | None:
    """Address of an array of one device in the host's memory; None where its memory is another."""
    (device,) = array.devices()
    return int(array.unsafe_buffer_pointer()) if device.platform == "cpu" else None


def _refuse_shared(array: Any, host: np.ndarray) -> None:
    if host.ctypes.data == _address(array):
        raise MeasurementError("aliased", "device and host share the buffer: nothing is copied")


probe = Transfer()
