"""State of NVIDIA devices through NVML, the optional extra ``gpu``: what cannot be read is None, never guessed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["INSTALL", "THROTTLE_REASONS", "gpu_state", "summary"]

INSTALL = "pip install 'bayesperf[gpu]'"

THROTTLE_REASONS = {
    0x1: "idle",
    0x2: "application-clocks",
    0x4: "power-cap",
    0x8: "hardware-slowdown",
    0x10: "sync-boost",
    0x20: "thermal-software",
    0x40: "thermal-hardware",
    0x80: "power-brake",
    0x100: "display-clocks",
}
"""Bits of NVML's clocks-event reasons (nvml.h, ``nvmlClocksEventReason*``); ``idle`` is no reason to worry."""


def gpu_state() -> list[dict[str, Any]] | None:
    """One record per device that this process may use; None where NVML is not installed or finds no driver.

    Each holds ``name``, ``clock_mhz``, ``clock_max_mhz``, ``memory_clock_mhz``, ``power_w``, ``power_limit_w``,
    ``temperature_c``, ``throttle`` (a list of `THROTTLE_REASONS`), ``mig`` (whether it is partitioned),
    ``persistence``, ``compute_mode``, ``ecc`` and ``users`` (process ids); None for what a device does not tell.
    """
    try:
        import pynvml
    except ImportError:
        return None
    with _started(pynvml) as started:
        return [_device(pynvml, handle) for handle in _handles(pynvml)] if started else None


def summary(devices: list[dict[str, Any]] | None) -> dict[str, Any]:
    """The slowest clock, the hottest temperature, the whole power and every reason to throttle; None is unknown."""
    devices = devices or []

    def known(name: str) -> list[float]:
        return [d[name] for d in devices if d.get(name) is not None]

    reasons = [d["throttle"] for d in devices if d.get("throttle") is not None]
    return {
        "clock_mhz": min(known("clock_mhz"), default=None),
        "temperature_c": max(known("temperature_c"), default=None),
        "power_w": sum(known("power_w")) if known("power_w") else None,
        "throttle": "+".join(sorted({r for each in reasons for r in each} - {"idle"})) if reasons else None,
    }


@contextmanager
def _started(nvml: Any) -> Iterator[bool]:
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        nvml.nvmlShutdown()


def _handles(nvml: Any) -> list[Any]:
    """Devices that CUDA would show this process, as far as its variable names them by number or UUID."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = nvml.nvmlDeviceGetCount()
    if visible is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    handles = []
    for name in filter(None, map(str.strip, visible.split(","))):
        try:
            if name.isdigit():
                handles.append(nvml.nvmlDeviceGetHandleByIndex(int(name)))
            else:
                handles.append(nvml.nvmlDeviceGetHandleByUUID(name))
        except nvml.NVMLError:
            continue  # a name that CUDA would not find either
    return handles


def _device(nvml: Any, handle: Any) -> dict[str, Any]:
    def ask(function: str, *arguments: Any, then: Callable[[Any], Any] = lambda value: value) -> Any:
        # Functions come and go with versions of the binding, and boards support what they like.
        found = getattr(nvml, function, None)
        if found is None:
            return None
        try:
            return then(found(handle, *arguments))
        except nvml.NVMLError:
            return None

    reasons = ask("nvmlDeviceGetCurrentClocksEventReasons")
    if reasons is None:
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    return {
        "name": ask("nvmlDeviceGetName", then=lambda name: name.decode() if isinstance(name, bytes) else str(name)),
        "clock_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        "clock_max_mhz": ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        "power_w": ask("nvmlDeviceGetPowerUsage", then=lambda milliwatt: milliwatt / 1000),
        "power_limit_w": ask("nvmlDeviceGetEnforcedPowerLimit", then=lambda milliwatt: milliwatt / 1000),
        "temperature_c": ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU, then=float),
        "throttle": None if reasons is None else [name for bit, name in THROTTLE_REASONS.items() if reasons & bit],
        "mig": ask("nvmlDeviceGetMigMode", then=lambda modes: bool(modes[0])),
        "persistence": ask("nvmlDeviceGetPersistenceMode", then=bool),
        "compute_mode": ask("nvmlDeviceGetComputeMode"),
        "ecc": ask("nvmlDeviceGetEccMode", then=lambda modes: bool(modes[0])),
        "users": ask("nvmlDeviceGetComputeRunningProcesses", then=lambda found: [process.pid for process in found]),
    }
