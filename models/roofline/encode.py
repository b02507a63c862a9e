"""From a measurement table to coded observations: labels, indices, features, and what repeats tell.

Repeats of one configuration (fresh processes) become one observation: the median of their log times, with the
scatter kept apart. They share what the model gets wrong about that configuration, so treating them as independent
rows would count the same error several times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.configurations import Configurations, configurations
from bayesperf.model import Floats
from bayesperf.models.common.observed import Scatter, scatter_of
from bayesperf.models.roofline.centring import (
    NEAR,
    Shares,
    any_row,
    contested_cells,
    curve_leaning,
    informed_cells,
    leaning_cells,
    term_shares,
)
from bayesperf.models.roofline.coded import (
    Codes,
    Codes1,
    Contested,
    Encoded,
    Label,
    Labels,
    Observations,
    Sheets,
)
from bayesperf.models.roofline.curve import curves_for
from bayesperf.models.roofline.discrepancy import Basis, basis_of, evaluate, features_of
from bayesperf.models.roofline.priors import PRIORS
from bayesperf.models.roofline.quantise import log_inflation
from bayesperf.models.roofline.units import LAUNCHES, typical_offset, unit_of
from bayesperf.specs import spec_of

__all__ = ["code_rows", "devices_of", "encode", "extend_encoded", "sheets_for", "units_of"]


def encode(table: pd.DataFrame, targets: pd.DataFrame | None) -> Encoded:
    """Code a checked measurement table."""
    kinds, devices = _default_kinds(table), devices_of(table)
    summary = configurations(table)
    labels = Labels()
    units = units_of(table["target"].unique(), devices, targets)
    bases = _bases(summary.first, summary.log_time)
    seen = _observe(summary, code_rows(summary.first, labels, kinds, units, bases))
    codes, shares = seen.codes, term_shares(seen.codes, labels, seen.log_time)
    sheets = sheets_for(labels, targets, devices, _working_sets(codes, labels, shares))
    informed = informed_cells(codes, labels, seen.scatter, shares)
    contested = contested_cells(codes, labels, shares)
    return Encoded(
        **vars(seen),
        labels=labels,
        sheets=sheets,
        shows_bandwidth=any_row(codes.memory, shares.memory > NEAR, len(labels.of("memory"))),
        informed=informed,
        contested=contested,
        leaning={
            **leaning_cells(codes, labels, sheets.curves, shares, contested),
            "curve": curve_leaning(codes, labels, sheets.curves, shares, informed),
        },
        kinds=kinds,
        units=units,
        bases=bases,
        devices=devices,
    )


def extend_encoded(encoded: Encoded, table: pd.DataFrame, targets: pd.DataFrame | None) -> tuple[Encoded, Observations]:
    """Code further rows behind those of `encoded`, whose codes, curves and features stay as they are.

    Returns
    -------
    joined, new
        All observations, and the new ones alone in the labels of all.
    """
    devices = devices_of(table) | encoded.devices
    units = units_of(table["target"].unique(), devices, targets) | encoded.units
    kinds = _default_kinds(table) | encoded.kinds
    summary, labels = configurations(table), Labels(encoded.labels)
    new = _observe(summary, code_rows(summary.first, labels, kinds, units, encoded.bases))
    shares = term_shares(new.codes, labels, new.log_time)
    sheets = sheets_for(labels, targets, devices, _working_sets(new.codes, labels, shares), encoded.sheets)
    shows = any_row(new.codes.memory, shares.memory > NEAR, len(labels.of("memory")))
    shows[: len(encoded.shows_bandwidth)] |= encoded.shows_bandwidth
    codes, scatter = _behind(encoded.codes, new.codes), _behind(encoded.scatter, new.scatter)
    log_time = np.concatenate([encoded.log_time, new.log_time])
    joined = replace(
        encoded,
        codes=codes,
        scatter=scatter,
        log_time=log_time,
        within=np.concatenate([encoded.within, new.within]),
        repeat_weight=np.concatenate([encoded.repeat_weight, new.repeat_weight]),
        ids=encoded.ids + new.ids,
        labels=labels,
        sheets=sheets,
        shows_bandwidth=shows,
        informed=informed_cells(codes, labels, scatter, term_shares(codes, labels, log_time)),
        leaning={},
        contested=Contested(),
        kinds=kinds,
        units=units,
        devices=devices,
    )
    return joined, new


def _behind[T: (Codes, Scatter)](first: T, second: T) -> T:
    return type(first)(
        **{f.name: np.concatenate([getattr(first, f.name), getattr(second, f.name)]) for f in fields(first)}
    )


def _observe(summary: Configurations, codes: Codes) -> Observations:
    return Observations(
        codes=codes,
        scatter=scatter_of(summary, codes.noise),
        log_time=summary.log_time,
        within=summary.within * summary.weight,
        repeat_weight=summary.weight,
        ids=summary.ids,
    )


def _working_sets(codes: Codes, labels: Labels, shares: Shares) -> dict[str, Floats]:
    """Log working sets of each target's rows that show its bandwidth."""
    shows = shares.memory > NEAR
    return {
        target: codes.log_working_set[(codes.target == code) & shows]
        for code, (target,) in enumerate(labels.of("target"))
    }


def devices_of(table: pd.DataFrame) -> dict[str, str]:
    """Spec-sheet key of each target, where the table names one."""
    if "device" not in table:
        return {}
    known = table.dropna(subset=["device"]).drop_duplicates("target")
    return dict(zip(known["target"], known["device"], strict=True))


def units_of(names: Iterable[str], devices: dict[str, str], targets: pd.DataFrame | None) -> dict[str, float]:
    """Parallel units of each target whose spec sheet states them."""
    found = {name: spec_of(targets, devices.get(name, name)).get("parallel_units") for name in names}
    return {name: units for name, units in found.items() if units}


def _bases(table: pd.DataFrame, log_time: Floats) -> dict[str, Basis]:
    """Discrepancy features of every operation that was measured at enough configurations."""
    op, features = _operations(table), features_of(table)
    targets = table["target"].to_numpy()
    shortest = pd.Series(log_time).groupby(targets).transform("min").to_numpy()
    working = 1.0 - np.exp(shortest - log_time)
    found = {
        name: basis_of(features[op == name], working[op == name], common=len(set(targets[op == name])) > 1)
        for name in dict.fromkeys(op)
    }
    return {name: basis for name, basis in found.items() if basis is not None}


def _operations(table: pd.DataFrame) -> npt.NDArray[np.object_]:
    pairs = zip(table["op"], _text(table, "condition"), strict=True)
    return np.array([_with_condition(op, condition) for op, condition in pairs], dtype=object)


def _is_work(table: pd.DataFrame) -> npt.NDArray[np.bool_]:
    return ((table["flops"] > 0) | (table["bytes"] > 0)).to_numpy()


def _default_kinds(table: pd.DataFrame) -> dict[str, str]:
    """How each target's work was timed, chained in a program or launched; "" is the majority over all."""
    if "statistic" not in table:
        return {"": "launched"}
    work = table[_is_work(table)]
    chained = (work["statistic"] == "slope").groupby(work["target"]).mean()
    kinds = {str(target): "chained" if share > 0.5 else "launched" for target, share in chained.items()}
    return {**kinds, "": "chained" if len(work) and (work["statistic"] == "slope").mean() > 0.5 else "launched"}


def code_rows(
    table: pd.DataFrame, labels: Labels, kinds: dict[str, str], units: dict[str, float], bases: dict[str, Basis]
) -> Codes:
    """Code rows against `labels`, extending them.

    Parameters
    ----------
    table
        Checked measurements, or workloads that carry a ``target``.
    labels
        Extended in place.
    kinds
        Default timing of each target, for rows that have no ``statistic``.
    units
        Parallel units by target.
    bases
        Discrepancy features by operation.
    """
    target = table["target"].tolist()
    operations = _operations(table)
    op = operations.tolist()
    dtype = _text(table, "dtype", "unknown")
    work = _is_work(table)
    timed = zip(target, op, work, _text(table, "statistic"), strict=True)
    kind = [_kind(o, w, s, kinds.get(t, kinds.get("", "launched"))) for t, o, w, s in timed]
    flops, moved = table["flops"].to_numpy(float), table["bytes"].to_numpy(float)
    computes = flops > 0
    labels.add("unit", [(t, unit_of(o, h)) for t, o, h, c in zip(target, op, dtype, computes, strict=True) if c])
    labels.add("launch", zip(target, kind, strict=True))
    moves = moved > 0
    shaped = np.array([o in bases for o in op], dtype=bool)
    common = np.array([o in bases and bases[o].common for o in op], dtype=bool)
    labels.add("shaped", [(o,) for o in bases])
    phi, lacking = evaluate(bases, operations, features_of(table))
    # Tiles belong to matrix units; a vector operation of the same shape has none.
    tiled = np.array([unit_of(o, h).startswith("matrix") for o, h in zip(op, dtype, strict=True)], dtype=bool)
    inflation = np.where(tiled, log_inflation(table, np.array([units.get(t, np.nan) for t in target])), 0.0)
    return Codes(
        target=labels.add("target", zip(target)),
        op=labels.add("op", zip(op)),
        rate=_masked(labels, "rate", list(zip(target, op, dtype, strict=True)), computes),
        memory=_masked(labels, "memory", list(zip(target, op, strict=True)), moves),
        overhead=labels.add("overhead", zip(target, op, kind, strict=True)),
        noise=labels.add("noise", zip(target, op, strict=True)),
        campaign=labels.add("campaign", zip(target, _text(table, "campaign"), _text(table, "stack"), strict=True)),
        log_flops=np.where(computes, np.log(np.where(computes, flops, 1.0)) + inflation, 0.0),
        log_bytes=np.log(np.where(moves, moved, 1.0)),
        log_working_set=np.log(footprint(table)),
        shape=_masked(labels, "shape", list(zip(op)), common),
        shape_cell=_masked(labels, "shape_cell", list(zip(target, op, strict=True)), shaped),
        phi=phi,
        lacking=lacking,
    )


def _kind(op: str, works: bool, statistic: str, default: str) -> str:
    """How one execution was timed: as a kernel chained in a program, or launched from the host."""
    if not works or op in LAUNCHES:
        return "launched"
    if not statistic:
        return default
    return "chained" if statistic == "slope" else "launched"


def footprint(table: pd.DataFrame) -> Floats:
    """Working set of each row, (row,), bytes: its compulsory traffic where the table does not say."""
    moved = table["bytes"].to_numpy(float)
    if "working_set_bytes" in table:
        stated = table["working_set_bytes"].to_numpy(float)
        moved = np.where(np.isfinite(stated) & (stated > 0), stated, moved)
    return np.asarray(np.maximum(moved, 1.0), dtype=np.float64)


def _masked(labels: Labels, level: str, pairs: list[Label], mask: npt.NDArray[np.bool_]) -> Codes1:
    """Codes where `mask`, -1 elsewhere: a term that is absent has no parameter."""
    codes = np.full(len(pairs), -1, dtype=np.intp)
    codes[mask] = labels.add(level, [pair for pair, there in zip(pairs, mask, strict=True) if there])
    return codes


def _text(table: pd.DataFrame, name: str, default: str = "") -> list[str]:
    if name not in table:
        return [default] * len(table)
    return [value if isinstance(value, str) else default for value in table[name]]


def _with_condition(op: str, condition: str) -> str:
    """Operation label; conditions other than hot and burst behave like operations of their own."""
    special = sorted(set(condition.split("+")) - {"hot", "burst", ""})
    return f"{op}@{'+'.join(special)}" if special else op


def sheets_for(
    labels: Labels,
    targets: pd.DataFrame | None,
    devices: dict[str, str],
    measured: dict[str, Floats],
    base: Sheets | None = None,
) -> Sheets:
    """Spec-sheet numbers of all labelled units and targets, as priors of the model.

    Parameters
    ----------
    labels
        All levels.
    targets
        Spec sheets, or None.
    devices
        Device of a target, where it is not the target itself.
    measured
        Log working sets measured of a target, for its bandwidth curve.
    base
        Sheets of the leading targets, whose curves stay as they are.
    """
    names = [t for (t,) in labels.of("target")]
    specs = {t: spec_of(targets, devices.get(t, t)) for t in names}
    caches = {t: spec["cache_bytes"] for t, spec in specs.items() if "cache_bytes" in spec}
    log_peak, offset, kinds = [], [], []
    for target, unit in labels.of("unit"):
        kind, _, dtype = unit.partition(":")
        # Sheets give matrix peaks for narrow types; vector units are near the plain float32 peak for all of them.
        peak = specs[target].get(f"peak_flops_{dtype if kind == 'matrix' or dtype == 'float64' else 'float32'}")
        log_peak.append(np.log(peak) if peak and kind != "function" else np.nan)
        offset.append(typical_offset(unit))
        kinds.append(kind)
    scale = [_scale(specs[t]) for t in names]
    bandwidth = [np.log(specs[t].get("bandwidth_bytes_per_s", np.nan)) for t in names]
    return Sheets(
        log_peak=np.array(log_peak, dtype=float),
        offset=np.array(offset, dtype=float),
        is_matrix=np.array([kind == "matrix" for kind in kinds], dtype=bool),
        is_function=np.array([kind == "function" for kind in kinds], dtype=bool),
        unit_target=labels.parents("unit", "target", slice(0, 1)),
        scale=np.array([s[0] for s in scale], dtype=float),
        scale_spread=np.array([s[1] for s in scale], dtype=float),
        log_bandwidth=np.array(bandwidth, dtype=float),
        curves=curves_for(names, measured, caches, None if base is None else base.curves),
    )


def _scale(spec: dict[str, float]) -> tuple[float, float]:
    peaks = {k.removeprefix("peak_flops_"): v for k, v in spec.items() if k.startswith("peak_flops_")}
    if not peaks:
        return PRIORS.scale_flops
    location = np.mean([np.log(v) - typical_offset(f"matrix:{k}") for k, v in peaks.items()])
    return float(location) + PRIORS.efficiency_matrix[0], PRIORS.efficiency_spread * 2
