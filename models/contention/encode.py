"""From a measurement table to coded mixes: every row beside others is set against the same work measured alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayesperf.configurations import KEYS, Configurations, configurations, records
from bayesperf.corunners import canonical
from bayesperf.errors import InputError
from bayesperf.model import Floats
from bayesperf.models.common.labels import Index
from bayesperf.models.common.observed import scatter_of
from bayesperf.models.contention.alone import CIRCUMSTANCES, Alone, Solo, alone_around, check_around, paired
from bayesperf.models.contention.catalogue import Catalogue, shape_of
from bayesperf.models.contention.coded import Beside, Encoded
from bayesperf.models.contention.demand import Kernel, rates_of
from bayesperf.models.contention.mixes import Member, Places, code_mixes, cpus_in, members_of
from bayesperf.models.roofline import Roofline
from bayesperf.models.roofline.encode import footprint

__all__ = ["encode", "kernel_of", "pair_names", "victim_keys"]

HALF = 0.5
"""Share of a target's mixes that were measured around, from which noise there is that of slowdowns."""

NOT_THE_VICTIM = ("corunners", "corunner_shapes", "role", *CIRCUMSTANCES)


def encode(table: pd.DataFrame, targets: pd.DataFrame | None) -> Encoded:
    """Code a checked measurement table.

    Raises
    ------
    InputError
        Nothing ran beside others, or nobody was measured alone.
    TableError
        Co-runners contradict their shapes, or times alone around mixes those of rows alone.
    """
    shared = table["corunners"].notna().to_numpy() if "corunners" in table else np.zeros(len(table), dtype=bool)
    if not shared.any():
        raise InputError("no row ran beside co-runners, which is what contention is learned from; fit model 'roofline'")
    alone = table[~shared].reset_index(drop=True)
    if not len(alone):
        raise InputError(
            "no row ran alone: measure the victims alone too, as slowdowns are relative to that; where alone_s tells, "
            "fit bp.concat([table, bayesperf.models.contention.alone_rows(table)])"
        )
    solo = configurations(alone)
    known = Alone(victim_keys(solo.first), solo, _threads(solo.first))
    kept, doubts, left_out = _comparable(table[shared].reset_index(drop=True), known)
    extra = _only_around(kept, known)
    first = pd.concat([solo.first, extra.first], ignore_index=True) if len(extra.first) else solo.first
    log_time = np.concatenate([solo.log_time, extra.log_time])
    rates = rates_of(first, log_time, np.log(footprint(first)))
    catalogue = Catalogue(_kernels(first, log_time))
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
        paired=_paired(coded, labels.targets),
        left_out=left_out,
        notes=tuple(dict.fromkeys([*doubts, *notes])),
    )


def _comparable(rows: pd.DataFrame, known: Alone) -> tuple[Configurations, list[str], dict[str, int]]:
    """Configurations of rows beside others of which the same work alone is known, what is doubtful about that, and how
    many rows were left out, by reason.
    """
    code = configurations(rows).code
    told = "alone_s" in rows and rows["alone_s"].notna().any()
    rows = paired(rows, code)
    kept = configurations(rows, code)
    around, solo = alone_around(kept.first), [known.find(key) for key in victim_keys(kept.first)]
    measured = np.array([found is not None for found in solo], dtype=bool)
    notes = check_around(np.array([found.log_time if found else np.nan for found in solo]), around)
    if told and not np.isfinite(around).all():
        notes.append(
            f"{int(np.isnan(around).sum())} of {len(around)} mixes lack alone_s in some row: compared with rows alone, "
            "from which machines drift"
        )
    matched = measured | np.isfinite(around)
    if not matched.any():
        raise InputError(
            "no row beside co-runners has the same work measured alone on its target: measure the victims alone too"
        )
    if matched.all():
        return kept, notes, {}
    chosen = matched[code]
    reason = "rows beside co-runners of work that was not measured alone"
    some = np.unique(code[chosen], return_inverse=True)[1]
    return configurations(rows[chosen].reset_index(drop=True), some), notes, {reason: int((~chosen).sum())}


def _only_around(kept: Configurations, known: Alone) -> Configurations:
    """Victims that were measured alone only around their mixes, as configurations that ran alone."""
    around = alone_around(kept.first)
    only = np.array([known.find(key) is None for key in victim_keys(kept.first)], dtype=bool) & np.isfinite(around)
    return replace(kept, first=kept.first[only].reset_index(drop=True), log_time=around[only])


def _paired(beside: Beside, targets: Sequence[str]) -> frozenset[str]:
    apart = beside.alone_known + beside.alone_weight > 0
    return frozenset(name for at, name in enumerate(targets) if apart[beside.target == at].mean() < HALF)


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
    labels = [canonical(label) if label else "" for label in _texts(first, "corunners")]
    shapes = ["; ".join(sorted(shape.split("; "))) for shape in _texts(first, "corunner_shapes")]
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


def _kernels(first: pd.DataFrame, log_time: Floats) -> list[tuple[str, Any, Kernel]]:
    sizes, threads = footprint(first), _threads(first)
    found: dict[tuple[str, Any], list[Kernel]] = {}
    for at, row in enumerate(records(first)):
        kernel = kernel_of(row, float(sizes[at]), float(log_time[at]), float(threads[at]))
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
    own = alone_around(first)
    keys = victim_keys(first)
    alone = [known.find(key) or Solo(at, 0.0, 0.0, 1.0) for key, at in zip(keys, own, strict=True)]
    base, within, weight = (np.array([getattr(e, name) for e in alone]) for name in ("log_time", "known", "weight"))
    base = np.where(np.isnan(own), base, own)
    within, weight = (np.where(np.isnan(own), each, 0.0) for each in (within, weight))
    shared = [key if apart else None for key, apart in zip(keys, np.isnan(own), strict=True)]
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
        within=kept.within * kept.weight,
        repeat_weight=kept.weight,
        alone=_codes(shared, list(dict.fromkeys(key for key in shared if key)) or [None]),
        alone_known=within,
        alone_weight=weight,
        scatter=scatter_of(kept, np.arange(len(kept.count))),
        ids=kept.ids,
    )
    known_places = np.isfinite(mix.capacity[:, 0])
    placed = {t for t in labels.targets if known_places[[target == t for target in targets]].all()}
    return coded, frozenset(placed)


def _codes(values: Sequence[Any], labels: Sequence[Any]) -> Index:
    """Position of each value among the labels; 0 of what has none (None)."""
    place = {None: 0} | {label: at for at, label in enumerate(labels)}
    return np.array([place[value] for value in values], dtype=np.intp)
