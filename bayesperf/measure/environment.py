"""What a measurement was made on. What cannot be read is None, never guessed; host and user names are left out."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from bayesperf import __version__
from bayesperf.measure import gpu

__all__ = [
    "affinity",
    "cgroup_memory_bytes",
    "cgroup_quota_cores",
    "cpu_model",
    "device_state",
    "last_level_cache_bytes",
    "of_host",
    "of_jax",
    "second_threads",
    "state",
]

_CPU = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")


def of_host() -> dict[str, Any]:
    """Facts of host and software that do not change during a run."""
    return {
        "bayesperf": __version__,
        "probe_code_commit": _git_commit(),
        "python": platform.python_version(),
        "os": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()) or None,
        "machine": platform.machine(),
        "cpu_model": cpu_model(),
        "cpu_logical": psutil.cpu_count(),
        "cpu_physical": psutil.cpu_count(logical=False),
        "cpu_affinity": affinity(),
        "cpu_governor": _text(_CPU / "cpu0/cpufreq/scaling_governor"),
        "cpu_caches": _caches(),
        "cgroup_quota_cores": cgroup_quota_cores(),
        "cgroup_memory_bytes": cgroup_memory_bytes(),
        "memory_bytes": psutil.virtual_memory().total,
        "transparent_hugepages": _text(Path("/sys/kernel/mm/transparent_hugepage/enabled")),
        "numa_nodes": _numa_nodes(),
        "virtualised": _virtualised(),
        "xla_flags": os.environ.get("XLA_FLAGS"),
        "jax_environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("JAX_")} or None,
        "cuda_environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("CUDA_")} or None,
    }


def of_jax() -> dict[str, Any]:
    """Facts of JAX and its devices; importing JAX and starting its backend is the caller's wish."""
    import jax

    devices = jax.local_devices()
    first = devices[0]
    statistics = first.memory_stats() or {}
    return {
        "jax": jax.__version__,
        "jaxlib": metadata.version("jaxlib"),
        "platform": "gpu" if first.platform in ("gpu", "cuda", "rocm") else first.platform,
        "platform_version": str(first.client.platform_version).splitlines()[0],
        "device_kind": first.device_kind,
        "local_devices": len(devices),
        "processes": jax.process_count(),
        "memory_bytes": statistics.get("bytes_limit"),
        "process_threads": psutil.Process().num_threads(),
        "compute_capability": getattr(first, "compute_capability", None),
        "x64": bool(jax.config.jax_enable_x64),
        "default_matmul_precision": jax.config.jax_default_matmul_precision,
    }


def state() -> dict[str, Any]:
    """Facts that change: load, clock, temperature, and the state of NVIDIA devices."""
    try:
        load: float | None = os.getloadavg()[0]
    except OSError:
        load = None
    frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    return {
        "load_average": load,
        "cpu_mhz": getattr(frequency, "current", None) or None,
        "temperature_c": _temperature(),
        "memory_available_bytes": psutil.virtual_memory().available,
        "gpus": gpu.gpu_state(),
    }


def device_state(platform: str) -> dict[str, Any]:
    """Clock in MHz, temperature in C, power in W and reasons to throttle of the devices now; None is unknown."""
    if platform != "cpu":
        return gpu.summary(gpu.gpu_state() if platform in ("gpu", "cuda") else None)
    frequency = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    clock = getattr(frequency, "current", None) or None
    return {"clock_mhz": clock, "temperature_c": _temperature(), "power_w": None, "throttle": None}


def affinity() -> list[int] | None:
    """Processors this process may use; None where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def second_threads() -> frozenset[int]:
    """Processors that are not the first of their core, as far as the system tells."""
    later: set[int] = set()
    for path in _CPU.glob("cpu[0-9]*/topology/thread_siblings_list"):
        # Such as "0,4" or "0-1".
        numbers = [int(n) for n in (_text(path) or "").replace("-", ",").split(",") if n.isdigit()]
        later.update(n for n in numbers if n > min(numbers))
    return frozenset(later)


def cpu_model() -> str | None:
    """Model name of the processor, or None."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    facts: Mapping[str, str] = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines) if value
    }
    return facts.get("model name") or facts.get("Model") or platform.processor() or None


def cgroup_quota_cores() -> float | None:
    """Processors that the cgroup's quota grants, or None where there is no quota."""
    text = _text(_cgroup_v2("cpu.max"))
    if text:
        quota, _, period = text.partition(" ")
        return None if quota == "max" else float(quota) / float(period or 100000)
    quota_text, period_text = _text(_CGROUP / "cpu/cpu.cfs_quota_us"), _text(_CGROUP / "cpu/cpu.cfs_period_us")
    if quota_text and period_text and float(quota_text) > 0:
        return float(quota_text) / float(period_text)
    return None


def cgroup_memory_bytes() -> float | None:
    """Memory limit of the cgroup in byte, or None where there is none."""
    text = _text(_cgroup_v2("memory.max")) or _text(_CGROUP / "memory/memory.limit_in_bytes")
    if not text or text == "max":
        return None
    limit = float(text)
    return limit if limit < 2**60 else None


def _cgroup_v2(name: str) -> Path:
    own = _text(Path("/proc/self/cgroup")) or ""
    for line in own.splitlines():
        if line.startswith("0::"):
            return _CGROUP / line[3:].lstrip("/") / name
    return _CGROUP / name


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _caches() -> list[dict[str, str | None]] | None:
    found = [
        {name: _text(folder / name) for name in ("level", "type", "size", "shared_cpu_list")}
        for folder in sorted((_CPU / "cpu0/cache").glob("index*"))
    ]
    return found or None


def last_level_cache_bytes() -> float | None:
    """Sizes of the host's largest caches as the system reports them, added up; None where it does not tell."""
    sizes: dict[str, tuple[int, float]] = {}
    for folder in _CPU.glob("cpu[0-9]*/cache/index*"):
        level, size, shared = (_text(folder / name) for name in ("level", "size", "shared_cpu_list"))
        if level and size and shared and size[:-1].isdigit():
            units = {"K": 2.0**10, "M": 2.0**20}
            sizes[f"{level}:{shared}"] = (int(level), int(size[:-1]) * units.get(size[-1], 1.0))
    top = max((level for level, _ in sizes.values()), default=0)
    return sum(size for level, size in sizes.values() if level == top) or None


def _numa_nodes() -> int | None:
    return len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or None


def _virtualised() -> bool | None:
    text = _text(Path("/proc/cpuinfo"))
    return None if text is None else " hypervisor" in text


def _temperature() -> float | None:
    if not hasattr(psutil, "sensors_temperatures"):
        return None
    readings = [r.current for group in psutil.sensors_temperatures().values() for r in group if r.current]
    return max(readings) if readings else None


def _git_commit() -> str | None:
    """Commit of the checkout the probes come from, or None for an installed package."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


if sys.platform == "win32":  # pragma: no cover - the package declares POSIX
    raise ImportError("bayesperf measures on POSIX systems only")
