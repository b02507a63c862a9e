"""Which devices a scope holds, how a worker must be started to see them, and what the target is called."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import psutil

from bayesperf.specs import slug

__all__ = ["Machine", "cpu_devices", "deal_processors", "scope_environment"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What planning needs to know of a host.

    Attributes
    ----------
    platform
        ``cpu``, ``gpu`` or ``tpu``.
    device
        Slug of make, model and, for processors, cores: the key into spec sheets.
    devices
        Devices that the scope ``all`` uses.
    memory_bytes
        Memory of one device, or None; on CPU the host's, shared by all.
    stack
        Versions of JAX and jaxlib.
    cache_bytes
        Largest caches of the host as reported, added up, or None: used to extend a sweep, never as a result.
    """

    platform: str
    device: str
    devices: int
    memory_bytes: float | None
    stack: str
    cache_bytes: float | None = None

    def count(self, scope: str) -> int:
        """Devices of a scope."""
        return 1 if scope == "one" else self.devices

    def main_memory_bytes(self, count: int) -> float:
        """A working set over `count` devices that no cache holds.

        512 MiB per accelerator; on CPU, whose devices share cache and memory, 512 MiB in all or two and a half times
        the caches that are reported, whichever is more.
        """
        if self.platform != "cpu":
            return 2.0**29 * count
        return max(2.0**29, 2.5 * (self.cache_bytes or 0.0))

    def target(self, count: int, mode: str = "plain") -> str:
        """Target name of a number of these devices, and of how their worker is started where that is not as always."""
        return f"{self.device}-x{count}" + ("" if mode == "plain" else f"-{mode}")

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Machine:
        """From what a worker reports of JAX (`bayesperf.measure.environment.of_jax`) and the host's own facts."""
        from bayesperf.measure.environment import cpu_model, last_level_cache_bytes

        platform, kind = description["platform"], description["device_kind"]
        memory, cache = description.get("memory_bytes"), None
        if platform == "cpu":
            count = cpu_devices()
            name = slug(f"{cpu_model() or kind} {count}-core")
            memory, cache = memory_limit_bytes(), last_level_cache_bytes()
        else:
            count, name = int(description["local_devices"]), slug(kind)
        stack = f"jax-{description['jax']}+jaxlib-{description['jaxlib']}"
        return cls(platform, name, count, memory, stack, cache)


def cpu_devices() -> int:
    """Cores this process may use: one XLA device each in the scope ``all``.

    The least of physical cores, the affinity mask and the cgroup's quota (in whole cores, at least one).
    """
    from bayesperf.measure.environment import cgroup_quota_cores

    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    quota = cgroup_quota_cores()
    return max(1, min(cores, allowed, int(quota) if quota else cores))


def memory_limit_bytes() -> float:
    """Memory this process may use: the host's available, or the cgroup's limit where that is less."""
    from bayesperf.measure.environment import cgroup_memory_bytes

    available = float(psutil.virtual_memory().available)
    limit = cgroup_memory_bytes()
    return min(available, limit) if limit else available


def deal_processors(count: int) -> tuple[list[int], list[int]] | None:
    """Processors of a pinned worker of `count` devices, and those of its aggressors, one each in turn.

    Cores come before their second threads. Where none is left over, aggressors share all of them with the worker.
    None where the system cannot pin.
    """
    from bayesperf.measure.environment import affinity, second_threads

    allowed = affinity()
    if allowed is None or not hasattr(os, "sched_setaffinity"):
        return None
    order = sorted(allowed, key=lambda cpu: (cpu in second_threads(), cpu))
    return order[:count], order[count:] or order


def scope_environment(platform: str, count: int) -> dict[str, str]:
    """Environment variables of a worker that measures `count` devices, set before JAX starts.

    On CPU one XLA device uses anything from one thread to all of them inside a loop, by operation and size (the
    column ``cpu_threads`` tells): to use all cores whatever the operation, each takes one device. A flag the user has
    set stays, unless it is the one that is needed. Compiled programs are not taken from a cache: what the compiler
    chooses varies between processes, and that belongs to what is measured.
    """
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }
    if platform == "cpu":
        flag = "--xla_force_host_platform_device_count"
        kept = [f for f in os.environ.get("XLA_FLAGS", "").split() if not f.startswith(flag)]
        environment["XLA_FLAGS"] = " ".join([*kept, f"{flag}={count}"])
    else:
        # Data of several sizes come and go: a pool that grows on demand leaves room for other users of the device.
        environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    return environment
