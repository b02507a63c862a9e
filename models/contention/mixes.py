"""Who runs beside a victim: labels, shapes and processors of a table's rows, coded as mixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesperf.corunners import counts_of
from bayesperf.errors import TableError
from bayesperf.model import Floats
from bayesperf.models.contention.catalogue import Catalogue
from bayesperf.models.contention.demand import LEAST, Kernel, Rates
from bayesperf.models.contention.physics import RESOURCES, Mix

__all__ = ["Member", "Places", "code_mixes", "corunners_of", "members_of"]

Cpus = frozenset[int]

HALF = 0.5
"""Share of compute and of memory taken of an aggressor that nobody ever measured alone."""


def corunners_of(label: str) -> dict[str, int]:
    """Operations beside a victim and how many of each, from ``op:count`` joined by ``+``; a count may be left out.

    Raises
    ------
    TableError
        It is not of that form.
    """
    try:
        return counts_of(label)
    except ValueError as error:
        raise TableError(str(error), source="table", column="corunners") from error


def _shapes(text: Any, counts: Mapping[str, int]) -> list[dict[str, str]]:
    """Configurations named in the column ``corunner_shapes``: ``key=value`` joined by blanks, one each, by ``;``.

    Raises
    ------
    TableError
        They are not of that form, or not of the operations that ran beside.
    """
    if not isinstance(text, str) or not text.strip():
        return []
    parts = [dict(pair.split("=", 1) for pair in part.split() if "=" in pair) for part in text.split(";")]
    for part in parts:
        if "op" not in part:
            raise _contradiction(
                text, "write op=matmul m=512 n=512 k=512, of several kinds one after the other, with ;"
            )
        if part["op"] not in counts:
            raise _contradiction(text, f"{part['op']} is not in corunners, which has {', '.join(counts)}")
    for op in dict.fromkeys(part["op"] for part in parts):
        kinds = sum(part["op"] == op for part in parts)
        if counts[op] % kinds:
            raise _contradiction(
                text, f"{counts[op]} of {op} are not {kinds} kinds, equally many of each; name each one"
            )
    return parts


def _contradiction(text: str, problem: str) -> TableError:
    return TableError(f"{text!r}: {problem}", source="table", column="corunner_shapes")


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
    counts = corunners_of(str(row["corunners"]))
    for op, config, count in _kinds(counts, _shapes(row.get("corunner_shapes"), counts)):
        kernel, note = catalogue.average(target, op) if config is None else catalogue.find(target, config)
        notes += [note] if note else []
        kernels += [kernel] * count
    return _grouped(kernels, _cpus_of(row, len(kernels), places)), notes


def _kinds(
    counts: Mapping[str, int], configs: Sequence[dict[str, str]]
) -> list[tuple[str, dict[str, str] | None, int]]:
    """Operation, configuration and count of each kind: in the order of the shapes, which is that of the processors.

    Kinds that share a label run equally often. Operations without a shape come last.
    """
    entries = {op: sum(config["op"] == op for config in configs) for op in counts}
    shaped: list[tuple[str, dict[str, str] | None, int]] = [
        (config["op"], config, counts[config["op"]] // entries[config["op"]]) for config in configs
    ]
    return [*shaped, *((op, None, count) for op, count in counts.items() if not entries[op])]


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
    shares = (HALF, HALF, LEAST) if np.isnan(kernel.flops) else rates.shares(target, kernel)
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
