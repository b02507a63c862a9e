"""From a measurement table to coded mixes: every row beside others is set against the same work measured alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.configurations import KEYS, Configurations, configurations, records
from bayesperf.errors import InputError
from bayesperf.model import Floats
from bayesperf.models.common.labels import Index
from bayesperf.models.common.observed import scatter_of
from bayesperf.models.contention.alone import CIRCUMSTANCES, Alone, alone_around, paired
from bayesperf.models.contention.coded import Beside, Encoded
from bayesperf.models.contention.demand import Kernel, rates_of
from bayesperf.models.contention.mixes import Catalogue, Member, Places, code_mixes, cpus_in, members_of, shape_of
from bayesperf.models.roofline import Roofline
from bayesperf.models.roofline.encode import footprint

__all__ = ["encode", "kernel_of", "pair_names", "victim_keys"]

NOT_THE_VICTIM = ("corunners", "corunner_shapes", "role", *CIRCUMSTANCES)


def encode(table: pd.DataFrame, targets: pd.DataFrame | None) -> Encoded:
    """Code a checked measurement table.

    Raises
    ------
    InputError
        Nothing ran beside others, or no victim was also measured alone.
    """
    shared = table["corunners"].notna().to_numpy() if "corunners" in table else np.zeros(len(table), dtype=bool)
    if not shared.any():
        raise InputError("no row ran beside co-runners, which is what contention is learned from; fit model 'roofline'")
    alone = table[~shared].reset_index(drop=True)
    if not len(alone):
        raise InputError("no row ran alone: measure the victims alone too, as slowdowns are relative to that")
    solo = configurations(alone)
    known = Alone(victim_keys(solo.first), solo, _threads(solo.first))
    beside = configurations(table[shared].reset_index(drop=True))
    matched = np.array([known.find(key) is not None for key in victim_keys(beside.first)], dtype=bool)
    if not matched.any():
        raise InputError(
            "no row beside co-runners has the same work measured alone on its target: measure the victims alone too"
        )
    left_out = {"rows beside co-runners of work that was not measured alone": int((~matched[beside.code]).sum())}
    kept = configurations(paired(table[shared][matched[beside.code]].reset_index(drop=True)))
    rates = rates_of(solo.first, solo.log_time, np.log(footprint(solo.first)))
    catalogue = Catalogue(_kernels(solo))
    places = _places(kept.first)
    members, notes = _members(kept.first, catalogue, places)
    names = pair_names(kept.first)
    labels = _Labels(
        targets=list(dict.fromkeys(kept.first["target"])),
        ops=list(dict.fromkeys([*kept.first["op"], *(m.kernel.op for row in members for m in row)])),
        pairs=list(dict.fromkeys(names)),
    )
    coded, placed = _beside(kept, known, members, places, rates, labels, names)
    return Encoded(
        solo=Roofline().encode(alone, targets),
        beside=coded,
        targets=labels.targets,
        ops=labels.ops,
        pairs=labels.pairs,
        rates=rates,
        catalogue=catalogue,
        places=places,
        placed=placed,
        left_out={what: n for what, n in left_out.items() if n},
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True)
class _Labels:
    targets: list[str]
    ops: list[str]
    pairs: list[str]


def victim_keys(first: pd.DataFrame) -> list[tuple[Any, ...]]:
    """What makes two rows the same work, campaign and stack last."""
    names = [name for name in KEYS if name not in NOT_THE_VICTIM]
    columns = [_texts(first, name) for name in (*names, *CIRCUMSTANCES)]
    return list(zip(*columns, strict=True))


def pair_names(first: pd.DataFrame) -> list[str]:
    """One label per victim at one size beside one mix."""
    victims = [" ".join(part for part in key[: -len(CIRCUMSTANCES)] if part) for key in victim_keys(first)]
    labels, shapes = _texts(first, "corunners"), _texts(first, "corunner_shapes")
    return [f"{v} | {label} | {s}" for v, label, s in zip(victims, labels, shapes, strict=True)]


def _texts(table: pd.DataFrame, name: str) -> list[str]:
    if name not in table:
        return [""] * len(table)
    return ["" if missing else _short(v) for v, missing in zip(table[name], table[name].isna(), strict=True)]


def _short(value: Any) -> str:
    return f"{float(value):.12g}" if isinstance(value, int | float | np.number) else str(value)


def kernel_of(row: Mapping[str, Any], working_set: float, log_time: float, threads: float) -> Kernel:
    """Kernel of a row of a table."""
    dtype = row.get("dtype")
    return Kernel(
        str(row["op"]), dtype if isinstance(dtype, str) else "", float(row["flops"]), float(row["bytes"]),
        working_set, log_time, threads,
    )  # fmt: skip


def _threads(first: pd.DataFrame) -> Floats:
    """Processors that each kept busy alone; 1 where the table does not tell."""
    if "cpu_threads" not in first:
        return np.ones(len(first))
    return np.nan_to_num(np.asarray(first["cpu_threads"].to_numpy(float)), nan=1.0)


def _kernels(solo: Configurations) -> list[tuple[str, Any, Kernel]]:
    sizes, threads = footprint(solo.first), _threads(solo.first)
    rows = records(solo.first)
    found: dict[tuple[str, Any], list[Kernel]] = {}
    for at, row in enumerate(rows):
        kernel = kernel_of(row, float(sizes[at]), float(solo.log_time[at]), float(threads[at]))
        found.setdefault((str(row["target"]), shape_of(row)), []).append(kernel)
    # Campaigns are averaged.
    return [
        (
            target,
            shape,
            replace(
                kernels[0],
                log_time=float(np.median([k.log_time for k in kernels])),
                threads=float(np.median([k.threads for k in kernels])),
            ),
        )
        for (target, shape), kernels in found.items()
    ]


def _places(first: pd.DataFrame) -> dict[str, Places]:
    """Where each target runs its processes: as in its row with the most aggressors."""
    if "cpus" not in first or "corunner_cpus" not in first:
        return {}
    found: dict[str, Places] = {}
    for target, own, others in zip(first["target"], first["cpus"], first["corunner_cpus"], strict=True):
        victim = cpus_in(own)
        each = [cpus_in(part) for part in others.split(";")] if isinstance(others, str) else []
        known = tuple(cpus for cpus in each if cpus)
        if victim and len(known) == len(each) and (target not in found or len(known) > len(found[target].others)):
            found[target] = Places(victim, known)
    return found


def _members(
    first: pd.DataFrame, catalogue: Catalogue, places: Mapping[str, Places]
) -> tuple[list[list[Member]], list[str]]:
    found, notes = [], []
    for row in records(first):
        members, said = members_of(str(row["target"]), row, catalogue, places.get(str(row["target"])))
        found.append(members)
        notes += said
    return found, notes


def _beside(
    kept: Configurations,
    known: Alone,
    members: Sequence[Sequence[Member]],
    places: Mapping[str, Places],
    rates: Any,
    labels: _Labels,
    names: Sequence[str],
) -> tuple[Beside, frozenset[str]]:
    first = kept.first
    alone = [entry for key in victim_keys(first) if (entry := known.find(key)) is not None]
    base, within, weight = (np.array([getattr(e, name) for e in alone]) for name in ("log_time", "known", "weight"))
    own = alone_around(first)
    base = np.where(np.isnan(own), base, own)
    within, weight = (np.where(np.isnan(own), each, 0.0) for each in (within, weight))
    rows, targets = records(first), first["target"].tolist()
    sizes = footprint(first)
    victims = [
        (
            kernel_of(row, float(sizes[at]), float(base[at]), alone[at].threads),
            cpus_in(row.get("cpus")) or (places[target].victim if target in places else None),
        )
        for at, (row, target) in enumerate(zip(rows, targets, strict=True))
    ]
    mix = code_mixes(targets, victims, members, rates)
    ops = [[str(row["op"]), *(m.kernel.op for m in others)] for row, others in zip(rows, members, strict=True)]
    coded = Beside(
        mix=mix,
        target=_codes(targets, labels.targets),
        pair=_codes(names, labels.pairs),
        op=np.array([[labels.ops.index(op) for op in row] + [0] * (mix.count.shape[1] - len(row)) for row in ops]),
        log_time=kept.log_time,
        base=base,
        within=within + kept.within * kept.weight,
        repeat_weight=weight + kept.weight,
        scatter=scatter_of(kept, np.arange(len(kept.count))),
        ids=kept.ids,
    )
    known_places = np.isfinite(mix.capacity[:, 0])
    placed = {t for t in labels.targets if known_places[[target == t for target in targets]].all()}
    return coded, frozenset(placed)


def _codes(values: Sequence[str], labels: Sequence[str]) -> Index:
    place = {label: at for at, label in enumerate(labels)}
    return np.array([place[value] for value in values], dtype=np.intp)
