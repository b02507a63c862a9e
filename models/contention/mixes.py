"""Who runs beside a victim: labels, shapes and processors of a table's rows, coded as mixes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayesperf import plugins
from bayesperf.errors import InputError, TableError
from bayesperf.model import Floats
from bayesperf.models.contention.demand import LEAST, Kernel, Rates
from bayesperf.models.contention.physics import RESOURCES, Mix
from bayesperf.schema import SHAPE_COLUMNS

__all__ = ["Catalogue", "Member", "Places", "code_mixes", "corunners_of", "members_of"]

Cpus = frozenset[int]
Shape = frozenset[tuple[str, str]]

MOST = 100_000
"""Aggressors of one kind, at most."""

HALF = 0.5
"""Share of compute and of memory taken of an aggressor that nobody ever measured alone."""


def corunners_of(label: str) -> dict[str, int]:
    """Operations beside a victim and how many of each, from ``op:count`` joined by ``+``; a count may be left out.

    Raises
    ------
    TableError
        It is not of that form.
    """
    found: dict[str, int] = {}
    for part in label.split("+"):
        op, _, count = part.strip().rpartition(":") if ":" in part else (part.strip(), "", "1")
        if not op.strip() or not count.strip().isdecimal() or int(count) < 1:
            raise TableError(f"{label!r} is not of the form op:count+op:count", source="table", column="corunners")
        if int(count) > MOST:
            raise TableError(f"{label!r}: at most {MOST} of a kind can run", source="table", column="corunners")
        op = op.strip()
        found[op] = found.get(op, 0) + int(count)
    return found


def shape_of(row: Mapping[str, Any]) -> Shape:
    """What identifies a kernel: op, dtype and the shape columns that it has, as text."""
    told = {key: _plain(row[key]) for key in ("op", "dtype", *SHAPE_COLUMNS) if key in row}
    return frozenset((key, text) for key, text in told.items() if text is not None)


def _plain(value: Any) -> str | None:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return None
    text = str(value)
    return text.removesuffix(".0")


def _shapes(text: Any) -> list[dict[str, str]]:
    """Configurations named in the column ``corunner_shapes``: ``key=value`` joined by blanks, one each, by ``;``."""
    if not isinstance(text, str):
        return []
    parts = [dict(pair.split("=", 1) for pair in part.split() if "=" in pair) for part in text.split(";")]
    return [part for part in parts if "op" in part]


@dataclass(frozen=True)
class Member:
    """One kind of aggressor: how many, who, and on which processors (None: nobody knows)."""

    count: int
    kernel: Kernel
    cpus: Cpus | None


@dataclass(frozen=True)
class Places:
    """Where a target's processes run, as its own rows have it: the victim's processors, and those of each aggressor in
    turn.
    """

    victim: Cpus
    others: tuple[Cpus, ...]


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

    def find(self, target: str, config: Mapping[str, str]) -> tuple[Kernel | None, str | None]:
        """Kernel of a configuration, and a note on what had to be assumed."""
        shape = shape_of(config)
        here = self._of_target.get((target, shape))
        if here is not None:
            return here, None
        there = self._of_shape.get(shape) or _by_formula(config)
        if there is not None:
            return self._elsewhere(target, there), None
        return self.average(target, config["op"])

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

    def average(self, target: str, op: str) -> tuple[Kernel | None, str | None]:
        """An average kernel of an operation: of this target, else of any."""
        members = self._of_op.get((target, op))
        if members:
            return _mean(members), f"{op} beside: no shapes given, taken as the average of those measured"
        members = self._of_op.get(("", op))
        if members:
            return self._elsewhere(
                target, _mean(members)
            ), f"{op} beside: not measured alone on {target}, taken as the average of other targets"
        return None, f"{op} beside: never measured alone, taken to use half of everything"


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


def members_of(
    target: str, row: Mapping[str, Any], catalogue: Catalogue, places: Places | None
) -> tuple[list[Member], list[str]]:
    """Aggressors of a row, and notes on what had to be assumed.

    Raises
    ------
    TableError
        The row's ``corunners`` is not of the form that the contract asks for.
    """
    kernels: list[Kernel] = []
    notes: list[str] = []
    for op, config, count in _kinds(str(row["corunners"]), _shapes(row.get("corunner_shapes"))):
        kernel, note = catalogue.average(target, op) if config is None else catalogue.find(target, config)
        notes += [note] if note else []
        kernels += [kernel or Kernel(op, "", np.nan, np.nan, np.nan)] * count
    return _grouped(kernels, _cpus_of(row, len(kernels), places)), notes


def _kinds(label: str, configs: Sequence[dict[str, str]]) -> list[tuple[str, dict[str, str] | None, int]]:
    """Operation, configuration and count of each kind: in the order of the shapes, which is that of the processors."""
    counts = corunners_of(label)
    entries = {op: sum(config["op"] == op for config in configs) for op in counts}
    if all(entries[op] and counts[op] % entries[op] == 0 for op in counts):
        # Kinds that share a label run equally often.
        return [(op, c, counts[op] // entries[op]) for c in configs if (op := c["op"]) in counts]
    return [(op, None, count) for op, count in counts.items()]


def _grouped(kernels: list[Kernel], cpus: list[Cpus | None]) -> list[Member]:
    counts: dict[tuple[Kernel, Cpus | None], int] = {}
    for key in zip(kernels, cpus, strict=True):
        counts[key] = counts.get(key, 0) + 1
    return [Member(count, kernel, where) for (kernel, where), count in counts.items()]


def _cpus_of(row: Mapping[str, Any], count: int, places: Places | None) -> list[Cpus | None]:
    stated = row.get("corunner_cpus")
    if isinstance(stated, str):
        each = [cpus_in(part) for part in stated.split(";")]
        if len(each) == count and all(each):
            return list(each)
    if places is None or not places.others:
        return [None] * count
    return [places.others[at % len(places.others)] for at in range(count)]


def cpus_in(text: Any) -> Cpus | None:
    """Processors named by ``0+1``; None where there are none."""
    if not isinstance(text, str):
        return None
    parts = [part.strip() for part in text.split("+")]
    return frozenset(int(part) for part in parts) if parts and all(part.isdecimal() for part in parts) else None


def code_mixes(
    targets: Sequence[str],
    victims: Sequence[tuple[Kernel, Cpus | None]],
    beside: Sequence[Sequence[Member]],
    rates: Rates,
) -> Mix:
    """Code rows as mixes; where anybody's processors are unknown, all of the row's are."""
    rows, most = len(targets), 1 + max((len(members) for members in beside), default=0)
    values = {
        name: np.full((rows, most), fill)
        for name, fill in (("count", 0.0), *((name, LEAST) for name in RESOURCES), ("log_bytes", 0.0), ("load", 1.0))
    }
    capacity, overlap = np.full((rows, most), np.nan), np.ones((rows, most, most))
    pressure = np.zeros((rows, most))
    for at, (target, (victim, cpus), others) in enumerate(zip(targets, victims, beside, strict=True)):
        everybody = [Member(1, victim, cpus), *others]
        for k, member in enumerate(everybody):
            _code_member(values, at, k, target, member, rates)
        sizes = np.exp(values["log_bytes"][at]) * values["count"][at]
        alone = np.exp(values["log_bytes"][at, 0])
        pressure[at, 0] = rates.pressure(target, float(alone), float(sizes.sum() - alone))
        if all(member.cpus for member in everybody):
            _place(everybody, values["load"][at], capacity[at], overlap[at])
    return Mix(**values, capacity=capacity, overlap=overlap, pressure=pressure)


def _code_member(values: dict[str, Floats], at: int, k: int, target: str, member: Member, rates: Rates) -> None:
    kernel = member.kernel
    if np.isnan(kernel.flops):
        shares = HALF, HALF, LEAST
        size = 1e9
    else:
        shares = rates.shares(target, kernel)
        size = max(kernel.working_set, 1.0)
    for name, value in (
        *zip(RESOURCES, shares, strict=True),
        ("count", member.count), ("log_bytes", np.log(size)), ("load", max(kernel.threads, 0.5)),
    ):  # fmt: skip
        values[name][at, k] = value


def _place(everybody: Sequence[Member], load: Floats, capacity: Floats, overlap: Floats) -> None:
    for j, one in enumerate(everybody):
        assert one.cpus
        capacity[j] = len(one.cpus)
        load[j] = min(load[j], capacity[j])
        for k, other in enumerate(everybody):
            assert other.cpus
            overlap[j, k] = len(one.cpus & other.cpus) / len(other.cpus)
