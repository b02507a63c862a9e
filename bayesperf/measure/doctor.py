"""What of this machine would spoil a measurement, before anything is measured."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal

import psutil

from bayesperf.errors import MeasurementError
from bayesperf.measure import environment, gpu, machine, watch

__all__ = ["Finding", "diagnose"]

Level = Literal["ok", "note", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    level
        ``ok``, ``note`` (worth knowing), ``warning`` (errors will be larger) or ``problem`` (nothing can be measured).
    topic
        What was looked at.
    seen
        What was seen; says so where it could not be read.
    advice
        What to do, or empty.
    """

    level: Level
    topic: str
    seen: str
    advice: str = ""


def diagnose(*, seconds: float = 1.0, ask_jax: bool = True) -> list[Finding]:
    """Look at governor, quota, affinity, load, steal, temperature, memory, JAX and other users of the device.

    Parameters
    ----------
    seconds
        How long the processors are watched.
    ask_jax
        Whether to start JAX in a process of its own to see its devices.
    """
    checks: list[Callable[[], Finding]] = [
        _governor, _quota, _affinity, _power, _temperature, _memory, _disk, _caches, _threads,
        lambda: _busy(seconds),
    ]  # fmt: skip
    findings = [check() for check in checks]
    return [*findings, *(_jax() if ask_jax else [])]


def _governor() -> Finding:
    governor = environment.of_host()["cpu_governor"]
    if governor is None:
        return Finding("note", "clock governor", "not readable here (usual in virtual machines and containers)")
    if governor == "performance":
        return Finding("ok", "clock governor", governor)
    return Finding(
        "warning", "clock governor", f"{governor}: the clock follows the load, so short points run slower",
        "set it to performance: cpupower frequency-set -g performance",
    )  # fmt: skip


def _quota() -> Finding:
    quota = environment.cgroup_quota_cores()
    if quota is None:
        return Finding("ok", "processor quota", "none")
    level: Level = "warning" if quota != int(quota) or quota < 1 else "note"
    advice = (
        "give the container whole processors: throttling in mid-sample makes times bimodal" if level != "note" else ""
    )
    return Finding(
        level, "processor quota", f"{quota:g} processors; all-device points use {machine.cpu_devices()}", advice
    )


def _affinity() -> Finding:
    logical = psutil.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    if allowed < logical:
        return Finding(
            "warning", "affinity", f"this process may use {allowed} of {logical} processors",
            "JAX may start threads for all of them: start without taskset, or measure what you will use",
        )  # fmt: skip
    return Finding("ok", "affinity", f"all {logical} processors; all-device points use {machine.cpu_devices()}")


def _power() -> Finding:
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    if battery is not None and battery.power_plugged is False:
        return Finding("warning", "power supply", "on battery: clocks are held back", "plug it in")
    return Finding("ok", "power supply", "mains" if battery is not None else "no battery seen")


def _disk() -> Finding:
    free = shutil.disk_usage(".").free
    if free < 2**27:
        return Finding(
            "warning", "disk", f"{free / 2**20:.0f} MiB free in this folder",
            "make room, or write elsewhere with --out: a run stops when its journal cannot be written",
        )  # fmt: skip
    return Finding("ok", "disk", f"{free / 2**30:.1f} GiB free in this folder")


def _temperature() -> Finding:
    hottest = environment.state()["temperature_c"]
    if hottest is None:
        return Finding("note", "temperature", "not readable here; throttling would go unseen")
    if hottest >= 85:
        return Finding("warning", "temperature", f"{hottest:.0f} C", "let it cool: a hot device lowers its clock")
    return Finding("ok", "temperature", f"{hottest:.0f} C")


def _memory() -> Finding:
    free = machine.memory_limit_bytes()
    if free < 2**31:
        return Finding(
            "warning", "memory", f"{free / 2**30:.1f} GiB available",
            "free some, or main-memory points will be left out as too large",
        )  # fmt: skip
    return Finding("ok", "memory", f"{free / 2**30:.1f} GiB available")


def _caches() -> Finding:
    size = environment.last_level_cache_bytes()
    if size is None:
        return Finding("note", "caches", "sizes not readable; main memory is taken to begin at 512 MiB")
    return Finding("ok", "caches", f"last level {size / 2**20:.0f} MiB as reported (never used as a result)")


def _threads() -> Finding:
    names = ("OMP_NUM_THREADS", "XLA_FLAGS", "NPROC", "JAX_PLATFORMS", "JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION")
    given = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    if not given:
        return Finding("ok", "environment variables", "none that change JAX")
    return Finding(
        "note", "environment variables", ", ".join(given), "they are recorded and become part of what is measured"
    )


def _busy(seconds: float) -> Finding:
    before = watch.read()
    time.sleep(seconds)
    seen = watch.disturbance(before, watch.read())
    if seen.others is None:
        return Finding("note", "other load", "not readable here; disturbed points would go unseen")
    text = f"others use {seen.others:.0%} of the processors"
    if seen.steal is not None:
        text += f", the hypervisor takes {seen.steal:.0%}"
    load = environment.state()["load_average"]
    text += f", load average {load:.2f}" if load is not None else ""
    if seen.disturbed():
        return Finding(
            "warning", "other load", text,
            "end other work, or wait: points will be flagged disturbed, repeated, and their errors larger",
        )  # fmt: skip
    return Finding("ok", "other load", text)


def _jax() -> list[Finding]:
    from bayesperf.measure.supervise import describe

    try:
        version = metadata.version("jax")
    except metadata.PackageNotFoundError:
        return [Finding("problem", "JAX", "not installed", "pip install jax (or jax[cuda12] for NVIDIA devices)")]
    if tuple(int(part) for part in version.split(".")[:2]) < (0, 10):
        return [Finding("problem", "JAX", f"version {version}", "pip install 'jax>=0.10'")]
    try:
        seen = describe(shortcut=False)
    except MeasurementError as error:
        lines = error.detail.splitlines()
        return [
            Finding("problem", "JAX", f"cannot start: {lines[-1]}", "see its message; JAX_PLATFORMS=cpu falls back")
        ]
    name = f"{seen['local_devices']} x {seen['device_kind']} ({seen['platform']}), JAX {seen['jax']}"
    findings = [Finding("ok", "JAX", name)]
    if seen["platform"] == "cpu":
        findings += _forgotten_accelerator()
    else:
        findings += _gpus(seen)
    if seen.get("x64"):
        findings.append(
            Finding("note", "JAX", "64-bit mode is on; probes state their dtypes and are not changed by it")
        )
    return findings


def _forgotten_accelerator() -> list[Finding]:
    if os.path.exists("/dev/nvidia0") or os.path.exists("/dev/kfd") or os.path.exists("/dev/accel0"):
        return [
            Finding(
                "warning", "accelerator", "this host has one, but JAX runs on the CPU",
                "install JAX for it, such as jax[cuda12]; see the JAX installation page",
            )
        ]  # fmt: skip
    return []


def _gpus(seen: dict[str, Any]) -> list[Finding]:
    """NVIDIA devices, where NVML is installed: other users, throttling, partitions, persistence."""
    if seen["platform"] != "gpu":
        return []
    devices = gpu.gpu_state()
    if devices is None:
        return [
            Finding(
                "note", "device state", "unknown: clocks, power, throttling and other users go unseen",
                f"{gpu.INSTALL} (NVIDIA devices)",
            )
        ]  # fmt: skip
    return [_gpu_users(devices), _gpu_throttling(devices), *_gpu_settings(devices)]


def _gpu_users(devices: list[dict[str, Any]]) -> Finding:
    if all(device["users"] is None for device in devices):
        return Finding("note", "device users", "not readable here (usual in containers)")
    users = {pid for device in devices for pid in device["users"] or []} - {os.getpid()}
    if users:
        advice = "end them, or wait: a shared device is a different target"
        return Finding("warning", "device users", f"{len(users)} other process(es) on the device", advice)
    return Finding("ok", "device users", "none")


def _gpu_throttling(devices: list[dict[str, Any]]) -> Finding:
    state = gpu.summary(devices)
    power = "unknown power" if state["power_w"] is None else f"{state['power_w']:.0f} W"
    heat = "unknown temperature" if state["temperature_c"] is None else f"{state['temperature_c']:.0f} C"
    seen = f"{power}, {heat}"
    if state["throttle"] is None:
        return Finding("note", "device clocks", f"{seen}; whether they are held back is not readable here")
    if state["throttle"]:
        return Finding(
            "warning", "device clocks", f"held back now by {state['throttle']}; {seen}",
            "let it cool, raise its power limit, or take off application clocks (nvidia-smi -rac); "
            "`nvidia-smi -q -d PERFORMANCE` tells more",
        )  # fmt: skip
    return Finding("ok", "device clocks", f"free; {seen}")


def _gpu_settings(devices: list[dict[str, Any]]) -> list[Finding]:
    findings = []
    if any(device["mig"] for device in devices):
        findings.append(Finding("note", "device partitions", "MIG is on", "each instance is a target of its own"))
    if any(device["persistence"] is False for device in devices):
        findings.append(
            Finding(
                "note", "device persistence", "off: the driver is loaded again for each process",
                "nvidia-smi -pm 1 makes starts shorter and clocks steadier",
            )
        )  # fmt: skip
    return findings
