"""Runs a compiled program, without and with the profiler, the host waiting for each result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bayesperf.programs.events import MARK, Run, read_runs

__all__ = ["Prepare", "arguments", "prepared", "timed", "traced"]

Prepare = Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]
"""Gives the arguments of the next run."""


def arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with data in them: where one is only a shape, values uniform in [0.5, 1.5), ones where they are whole.

    Data are never zeros: values can change the rate.
    """
    import jax

    rng = np.random.default_rng(0)

    def real(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.key(0) if not leaf.shape else jax.random.split(jax.random.key(0), leaf.shape)
        floating = jax.numpy.issubdtype(leaf.dtype, np.inexact)
        values = rng.random(leaf.shape) + 0.5 if floating else np.ones(leaf.shape)
        return jax.device_put(np.asarray(values).astype(leaf.dtype), leaf.sharding)

    filled = jax.tree.map(
        real, (tuple(args), dict(kwargs)), is_leaf=lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)
    )
    return filled[0], filled[1]


def prepared(args: Sequence[Any], kwargs: Mapping[str, Any], donates: bool) -> Prepare:
    """Arguments on the device, where the program overwrites them (`donates`) fresh copies for every run."""
    import jax

    given = jax.tree.map(_placed, arguments(args, kwargs))
    if not donates:
        return lambda: given

    def copies() -> Any:
        copied = jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, given)
        return jax.block_until_ready(copied)

    return copies


def _placed(leaf: Any) -> Any:
    import jax

    # What is no array may be a static argument.
    return jax.device_put(leaf) if isinstance(leaf, np.ndarray) else leaf


def timed(call: Callable[..., Any], prepare: Prepare, runs: int) -> list[float]:
    """Seconds of each of `runs` calls, after one that is not timed."""
    import jax

    args, kwargs = prepare()
    jax.block_until_ready(call(*args, **kwargs))
    seconds = []
    for _ in range(runs):
        args, kwargs = prepare()
        start = time.perf_counter()
        jax.block_until_ready(call(*args, **kwargs))
        seconds.append(time.perf_counter() - start)
    return seconds


def traced(call: Callable[..., Any], prepare: Prepare, runs: int, module: str) -> tuple[list[float], list[Run]]:
    """The same under the profiler: seconds by the host's clock, and what the trace says of each run.

    Raises
    ------
    MeasurementError
        The trace holds nothing of the program.
    """
    import jax

    options = jax.profiler.ProfileOptions()
    # Python's frames are many, and none of them is asked for.
    options.python_tracer_level = 0
    seconds = []
    with TemporaryDirectory(prefix="bayesperf-trace-") as name:
        folder = Path(name)
        with jax.profiler.trace(folder, profiler_options=options):
            for _ in range(runs):
                args, kwargs = prepare()
                start = time.perf_counter()
                with jax.profiler.TraceAnnotation(MARK):
                    jax.block_until_ready(call(*args, **kwargs))
                seconds.append(time.perf_counter() - start)
        return seconds, read_runs(folder, module)
