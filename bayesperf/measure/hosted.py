"""What the host repeats, in the form of a program: transfers, compilation and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesperf.errors import InputError
from bayesperf.probe import Kernel

__all__ = ["HostedProgram"]


class HostedProgram:
    """A routine of the host, run and timed like a compiled `bayesperf.measure.chain.Program`.

    Parameters
    ----------
    kernel
        Its `routine` is made at once.
    devices
        JAX devices of the scope.

    Attributes
    ----------
    text
        Empty: there is no program whose text could be checked or hashed.
    compile_s
        0.
    """

    text = ""
    compile_s = 0.0

    def __init__(self, kernel: Kernel, devices: Sequence[Any]):
        if kernel.routine is None:
            raise InputError("a probe in mode 'hosted' gives its kernel a routine; make it with bayesperf.probe.hosted")
        self.kernel = kernel
        self._routine = kernel.routine(devices, kernel)

    def prepare(self, iterations: int) -> None:
        """Get ready, outside what is timed."""
        self._routine.prepare(iterations)

    def run(self, iterations: int) -> None:
        """Do it `iterations` times and wait."""
        self._routine.run(iterations)

    def carry(self) -> list[np.ndarray]:
        """The routine's result."""
        return self._routine.result()

    def own(self, expected: Sequence[np.ndarray]) -> list[np.ndarray]:
        """All of the reference."""
        return list(expected)

    def release(self) -> None:
        """Give device memory back."""
        self._routine.release()
