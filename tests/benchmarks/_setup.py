"""What must be set before JAX or NumPy are imported."""

from __future__ import annotations

import os

from bayesperf.measure.machine import cpu_devices, scope_environment

__all__ = ["use_all_cores", "use_one_device"]


def use_all_cores() -> int:
    """One JAX CPU device per core, as in the scope ``all``; returns their number."""
    count = cpu_devices()
    os.environ.update(scope_environment("cpu", count), JAX_PLATFORMS="cpu")
    return count


def use_one_device() -> None:
    """One JAX CPU device, and NumPy's BLAS free to choose the kernels of this processor."""
    os.environ.update(scope_environment("cpu", 1), JAX_PLATFORMS="cpu")
    os.environ.pop("OPENBLAS_CORETYPE", None)
