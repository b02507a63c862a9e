"""Kernels that were measured alone: what is known of an aggressor, and what must be assumed of one that was not."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayesperf import plugins
from bayesperf.errors import InputError
from bayesperf.models.contention.demand import Kernel
from bayesperf.schema import SHAPE_COLUMNS

__all__ = ["Catalogue", "shape_of"]

Shape = frozenset[tuple[str, str]]


def shape_of(row: Mapping[str, Any]) -> Shape:
    """What identifies a kernel: op, dtype and the shape columns that it has, as text."""
    told = {key: _plain(row[key]) for key in ("op", "dtype", *SHAPE_COLUMNS) if key in row}
    return frozenset((key, text) for key, text in told.items() if text is not None)


def _plain(value: Any) -> str | None:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    text = str(value)
    return text.removesuffix(".0")


class Catalogue:
    """Kernels that were measured alone, by target and by shape.

    Parameters
    ----------
    known
        Target, shape and kernel of every configuration measured alone.
    """

    def __init__(self, known: Sequence[tuple[str, Shape, Kernel]]):
        self._of_target = {(target, shape): kernel for target, shape, kernel in known}
        self._of_shape = {shape: kernel for _, shape, kernel in known}
        self._of_op: dict[tuple[str, str], list[Kernel]] = {}
        self._at: dict[str, list[Kernel]] = {}
        for target, _, kernel in known:
            self._at.setdefault(target, []).append(kernel)
            for key in ((target, kernel.op), ("", kernel.op)):
                self._of_op.setdefault(key, []).append(kernel)

    def exact(self, target: str, shape: Shape) -> Kernel | None:
        """A kernel as the target itself ran it alone."""
        return self._of_target.get((target, shape))

    def find(self, target: str, config: Mapping[str, str]) -> tuple[Kernel, str | None]:
        """Kernel of a configuration, and a note on what had to be assumed."""
        shape = shape_of(config)
        here = self._of_target.get((target, shape))
        if here is not None:
            return here, None
        there = self._of_shape.get(shape) or _by_formula(config)
        if there is not None:
            # An installed probe's work follows from its shape, whoever runs it.
            known = f"{config['op']} beside: not measured alone on {target}, work and shape as on other targets"
            return self._elsewhere(target, there), known if shape in self._of_shape else None
        kernel, note = self.average(target, config["op"])
        return kernel, note and note.replace("no shapes given", "its shape was not measured alone")

    def threads(self, target: str, op: str, flops: float, moved: float) -> float:
        """Processors that a kernel keeps busy which was never measured on a target: as others of about as much work.

        Those of its own operation where there are some; 1 where nothing was measured.
        """
        known = self._of_op.get((target, op)) or self._at.get(target, [])
        if not known or not np.isfinite(flops + moved):
            return 1.0
        away = np.array([_work(kernel.flops, kernel.bytes) for kernel in known]) - _work(flops, moved)
        weights = np.exp(-0.5 * (away**2 - np.min(away**2)))
        return float(np.average([kernel.threads for kernel in known], weights=weights))

    def _elsewhere(self, target: str, kernel: Kernel) -> Kernel:
        """A kernel of another target, whose time says nothing of this one's."""
        threads = self.threads(target, kernel.op, kernel.flops, kernel.bytes)
        return replace(kernel, log_time=float("nan"), threads=threads)

    def average(self, target: str, op: str) -> tuple[Kernel, str | None]:
        """An average kernel of an operation: of this target, else of any; else one whose work is NaN."""
        members = self._of_op.get((target, op))
        if members:
            return _mean(members), f"{op} beside: no shapes given, taken as the average of those measured"
        members = self._of_op.get(("", op))
        if members:
            return self._elsewhere(
                target, _mean(members)
            ), f"{op} beside: not measured alone on {target}, taken as the average of other targets"
        known = self._at.get(target) or [kernel for some in self._at.values() for kernel in some]
        size = _mean(known).working_set if known else 1.0
        assumed = f"half of compute and of memory bandwidth, and {size:.3g} bytes, typical of what was measured alone"
        return Kernel(op, "", np.nan, np.nan, size), f"{op} beside: never measured alone, taken to use {assumed}"


def _work(flops: float, moved: float) -> float:
    """Log of how long work takes, up to a constant: some ten FLOP in the time of a byte."""
    return float(np.log(flops + 10.0 * moved + 1.0))


def _mean(kernels: Sequence[Kernel]) -> Kernel:
    def log_mean(name: str) -> float:
        values = np.array([getattr(kernel, name) for kernel in kernels], dtype=float)
        return float(np.exp(np.mean(np.log(values[values > 0])))) if (values > 0).any() else 0.0

    times = np.array([kernel.log_time for kernel in kernels])
    time = float(np.nanmean(times)) if np.isfinite(times).any() else float("nan")
    work = [log_mean(name) for name in ("flops", "bytes", "working_set", "threads")]
    return Kernel(kernels[0].op, kernels[0].dtype, work[0], work[1], work[2], time, work[3])


def _by_formula(config: Mapping[str, str]) -> Kernel | None:
    """Work of a configuration of one of the installed probes."""
    numbers = {key: int(value) if value.isdecimal() else value for key, value in config.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # A broken plug-in is told of where it is used.
        probes = plugins.load_all("probe").values()
    for probe in probes:
        if config["op"] in probe.ops:
            try:
                work = probe.work(numbers)
            except (KeyError, TypeError, ValueError, InputError):
                return None
            dtype = config.get("dtype", "")
            return Kernel(config["op"], dtype, work.flops, work.bytes, work.working_set_bytes)
    return None
