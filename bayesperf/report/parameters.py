"""The named parameters of a profile: posterior beside prior, spec sheet, sensitivity and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bayesperf.configurations import records
from bayesperf.report.basis import Bases
from bayesperf.report.document import Interval, Parameter, Sensitivity
from bayesperf.report.sections import TITLES, section_of
from bayesperf.report.sheets import attained

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["INTERVAL", "bar", "headlines", "in_sections", "parameters"]

INTERVAL = 0.9
"""Probability of every interval in a report."""

HEADLINES = 3
"""Parameters of one kind that a target's headline names."""


def parameters(
    profile: Profile, bases: Bases, sensitivities: Mapping[tuple[str, str, str], Sensitivity] | None = None
) -> list[Parameter]:
    """One entry per named parameter, by target in the profile's order, then in the model's."""
    table = profile.parameters(interval=INTERVAL)
    order = {target: at for at, target in enumerate(profile.targets)}
    table = table.sort_values("target", key=lambda names: names.map(order).fillna(len(order)), kind="stable")
    by_id = bases.evidence.table.set_index("measurement_id", drop=False)
    entries = []
    for row in records(table):
        known = [i for i in row["evidence"] if i in by_id.index]
        key = (str(row["parameter"]), str(row["target"]), str(row["label"]))
        entries.append(
            Parameter(
                section=section_of(key[0], str(row["unit"]), profile.model_name),
                parameter=key[0],
                target=key[1],
                label=key[2],
                unit=str(row["unit"]),
                posterior=Interval(median=row["median"], lower=row["lower"], upper=row["upper"]),
                prior=Interval(median=row["prior_median"], lower=row["prior_lower"], upper=row["prior_upper"]),
                contraction=float(row["contraction"]) if math.isfinite(row["contraction"]) else None,
                learned=bool(row["learned"]),
                attained=attained(row, by_id.loc[known], profile.spec_sheets),
                sensitivity=(sensitivities or {}).get(key),
                basis=bases.of(row["evidence"]),
            )
        )
    return entries


def in_sections(entries: Sequence[Parameter]) -> list[dict[str, Any]]:
    """Sections that have parameters, in the order of the page: name, title, their entries by target, ..."""
    found = []
    for name, title in TITLES.items():
        mine = [entry for entry in entries if entry.section == name]
        if mine:
            groups: dict[str, list[Parameter]] = {}
            for entry in mine:
                groups.setdefault(entry.target, []).append(entry)
            has_sheet = any(entry.attained for entry in mine)
            found.append({"name": name, "title": title, "groups": list(groups.items()), "has_sheet": has_sheet})
    return found


def bar(entry: Parameter) -> dict[str, float] | None:
    """Positions, in percent of a common logarithmic scale, of prior and posterior."""
    values = {
        "prior_lower": entry.prior.lower,
        "prior_upper": entry.prior.upper,
        "lower": entry.posterior.lower,
        "median": entry.posterior.median,
        "upper": entry.posterior.upper,
    }
    if not all(math.isfinite(v) and v > 0 for v in values.values()):
        return None
    logs = {name: math.log(v) for name, v in values.items()}
    start = min(logs.values())
    width = max(max(logs.values()) - start, 1e-9)
    # A margin, so that marks at the ends stay visible.
    return {name: 3.0 + 94.0 * (v - start) / width for name, v in logs.items()}


def headlines(entries: Sequence[Parameter]) -> list[dict[str, Any]]:
    """What was learned of each target, in short, in the model's order."""
    kinds: dict[tuple[str, str], list[Parameter]] = {}
    for entry in entries:
        # Rates and times only: spreads and exponents are for the full table.
        if entry.learned and entry.unit != "1":
            kinds.setdefault((entry.target, entry.parameter), []).append(entry)
    found: dict[str, list[Parameter]] = {}
    for (target, _), some in kinds.items():
        found.setdefault(target, []).extend(_telling(some))
    return [{"target": target, "parameters": chosen} for target, chosen in found.items()]


def _telling(some: Sequence[Parameter]) -> list[Parameter]:
    """Of parameters of one kind the few that tell most, in their order: those beside a spec sheet first.

    Of rates the highest; of bandwidths the first, the middle and the last (from cache to main memory, as models order
    them); of the others those that were taught best.
    """
    unit, spread = some[0].unit, [0, len(some) - 1, len(some) // 2, *range(len(some))]

    def rank(at: int) -> float:
        if unit == "FLOP/s":
            return -some[at].posterior.median
        return float(spread.index(at)) if unit == "B/s" else -(some[at].contraction or 0.0)

    order = sorted(range(len(some)), key=lambda at: (some[at].attained is None, rank(at)))
    return [some[at] for at in sorted(order[:HEADLINES])]
