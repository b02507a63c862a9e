"""Several processes that measure one point together: who they are, and how they keep step.

A kernel that spans the devices of several processes runs only if all of them launch it, with the same number of
iterations. The first process, the leader, decides and times; it announces every number of iterations, and the others
follow. An announcement is itself a collective, so that everybody leaves it at about the same time; what is left of the
delay is the same for every number of iterations and ends in the intercept, not in the slope.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesperf.errors import MeasurementError

if TYPE_CHECKING:
    from bayesperf.measure.chain import AnyProgram

__all__ = ["Cluster", "jobs_of"]

LOOPBACK = "127.0.0.1"
END = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """This process among those that measure together.

    Attributes
    ----------
    process, processes
        Its number, and how many there are.
    devices_each
        Devices that each of them has.
    """

    process: int
    processes: int
    devices_each: int

    @classmethod
    def join(cls, job: Mapping[str, Any], platform: str) -> Cluster:
        """Meet the others, before JAX starts its backend; on accelerators each process takes its share of the devices.

        Parameters
        ----------
        job
            Of `jobs_of`.
        platform
            Of the devices.
        """
        import jax

        cluster = cls(job["process"], job["processes"], job["devices_each"])
        first = cluster.process * cluster.devices_each
        local = None if platform == "cpu" else list(range(first, first + cluster.devices_each))
        jax.distributed.initialize(
            coordinator_address=job["address"],
            coordinator_bind_address=job["address"],
            num_processes=cluster.processes,
            process_id=cluster.process,
            local_device_ids=local,
            initialization_timeout=60,
        )
        return cluster

    @property
    def leads(self) -> bool:
        """Whether it decides."""
        return self.process == 0

    def devices(self, count: int) -> list[Any]:
        """`count` devices, as many of each process, those of a process together."""
        import jax

        each = count // self.processes
        own = [[d for d in jax.devices() if d.process_index == k][:each] for k in range(self.processes)]
        return [device for devices in own for device in devices]

    def agree(self, act: Callable[[], Any]) -> Any:
        """What `act` returns, if it succeeds in every process.

        Raises
        ------
        MeasurementError
            ``process-failed``: it failed in another process; ``crashed``: one was lost. What it raises here is raised
            here.
        """
        from jax.experimental import multihost_utils

        error: Exception | None = None
        result = None
        try:
            result = act()
        # Whatever it is, the others wait to hear of it.
        except Exception as caught:  # noqa: BLE001
            error = caught
        with _peers():
            fine = multihost_utils.process_allgather(np.int32(error is None))
        if error is not None:
            raise error
        if not np.all(fine):
            raise MeasurementError("process-failed", "another process of the group could not do its part of the point")
        return result

    def announce(self, iterations: int) -> int:
        """The leader's number of iterations, in every process; `END` ends a point."""
        from jax.experimental import multihost_utils

        with _peers():
            return int(multihost_utils.broadcast_one_to_all(np.int32(iterations)))

    @contextmanager
    def leading(self) -> Iterator[None]:
        """The leader's part of a point: whatever becomes of it, the others are released in the end."""
        try:
            yield
        finally:
            self.announce(END)

    def follow(self, program: AnyProgram) -> None:
        """Run what the leader announces until it ends the point."""
        while (iterations := self.announce(END)) != END:
            program.run(iterations)


@contextmanager
def _peers() -> Iterator[None]:
    """Talking to the other processes: what goes wrong here is that one of them is no longer there."""
    try:
        yield
    except Exception as error:
        raise MeasurementError("crashed", f"a process of the group was lost: {error}") from error


def jobs_of(processes: int, devices: int) -> list[dict[str, Any]]:
    """What each process of a group on this host needs to join: a free port on loopback, its number, its share."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        address = f"{LOOPBACK}:{probe.getsockname()[1]}"
    return [
        {"address": address, "process": k, "processes": processes, "devices_each": devices // processes}
        for k in range(processes)
    ]
