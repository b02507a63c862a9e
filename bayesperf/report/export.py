"""From what was computed to the published document: verdicts, held-out rows, diagnostics, assumptions, evidence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayesperf.columns import SAMPLES
from bayesperf.configurations import records
from bayesperf.inference.infer import effective_numbers
from bayesperf.report import content
from bayesperf.report.basis import Bases
from bayesperf.report.document import (
    Assumptions,
    Capability,
    Check,
    EvidenceSet,
    Heldout,
    Interval,
    Measurement,
    Regime,
)
from bayesperf.report.parameters import INTERVAL
from bayesperf.report.words import configuration

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile
    from bayesperf.validation.result import Validation

__all__ = ["document"]

EXCHANGEABLE = (
    "Targets, operations and campaigns of one profile are treated as exchangeable: as draws from common populations. "
    "Where they are not, the intervals are wrong.",
    "Repeats of a configuration are exchangeable within a campaign; campaigns of a target, and stacks of a target, are "
    "exchangeable with those to come.",
)


def document(
    profile: Profile, validation: Validation | None, bases: Bases, *, title: str, **computed: Any
) -> Capability:
    """Put a document together; `computed` are its fields that the page's own modules computed."""
    regimes, heldout, total = _judged(validation, bases)
    facts = {k: v for k, v in profile.facts.items() if k not in ("caveats", "targets")}
    fields: dict[str, Any] = {
        "title": title,
        "model": profile.model_name,
        "model_version": str(profile.facts.get("model_version", "")),
        "targets": list(profile.targets),
        "converged": profile.converged,
        "interval": INTERVAL,
        "overall": total,
        "regimes": regimes,
        "heldout": heldout,
        "gate": [_check(check) for check in profile.gate],
        "assumptions": _assumptions(profile),
        "caveats": content.stated(profile.facts.get("caveats")),
        "facts": _plain(facts),
        "provenance": _plain(bases.evidence.records),
        **computed,
    }
    # After everything that cites.
    evidence = {"evidence": _sets(bases), "measurements": _measurements(bases)}
    return Capability.model_validate({**fields, **evidence})


def _judged(validation: Validation | None, bases: Bases) -> tuple[list[Regime], list[Heldout], dict[str, Any] | None]:
    if validation is None:
        return [], [], None
    ids = content.ids_by_group(validation.rows)
    regimes = [
        Regime(
            target=str(g["target"]),
            regime=str(g["regime"]),
            verdict=g["verdict"],
            reason=_text(g.get("reason")),
            advice=_text(g.get("advice")),
            shift=Interval(median=g["shift"], lower=g["shift_lower"], upper=g["shift_upper"]),
            p_same=_finite(g["p_same"]),
            p_fresh=_finite(g["p_fresh"]),
            spread_ratio=_finite(g["spread_ratio"]),
            coverage_90=_finite(g["coverage_90"]),
            basis=bases.of(ids.get(g["group"], [])),
        )
        for g in records(validation.groups)
    ]
    heldout = [
        Heldout(
            target=str(row["target"]),
            workload=configuration(row),
            measured_s=row["measured_s"],
            predicted_s=Interval(median=row["median_s"], lower=row["lower_s"], upper=row["upper_s"]),
            inside=bool(row["inside"]),
            pit=_finite(row["pit"]),
            limit=str(row["limit"]),
            supported=bool(row["supported"]),
            evidence=bases.evidence.cite(row["measurement_ids"]),
        )
        for row in records(validation.rows)
    ]
    tally = validation.groups["verdict"].value_counts()
    total = {
        **{name: int(tally.get(name, 0)) for name in ("fails", "undecided", "transfers")},
        "rows": len(validation.rows),
        "inside": int(validation.rows["inside"].astype(bool).sum()),
        "settings": _plain(dict(validation.settings)),
        "notes": [str(note) for note in validation.notes],
    }
    return regimes, heldout, total


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _check(check: Any) -> Check:
    return Check(
        name=check.name,
        value=_finite(check.value),
        limit=_finite(check.limit),
        passed=bool(check.passed),
        where=check.where,
        remedy=check.remedy,
    )


def _assumptions(profile: Profile) -> Assumptions:
    numbers = effective_numbers(profile.table)
    return Assumptions(
        rows=numbers["n_rows"],
        targets=numbers["n_targets"],
        stacks=max(1, numbers["n_stacks"]),
        campaigns=numbers["n_campaigns"],
        statements=list(EXCHANGEABLE),
    )


def _sets(bases: Bases) -> list[EvidenceSet]:
    return [
        EvidenceSet(tag=found["tag"], what=found["what"], measurement_ids=[name for name, _ in found["ids"]])
        for found in bases.evidence.sets()
    ]


def _measurements(bases: Bases) -> list[Measurement]:
    return [
        Measurement(
            measurement_id=str(row["measurement_id"]),
            target=str(row["target"]),
            what=configuration(row),
            role=str(row.get("role") or "fit"),
            time_s=row["time_s"],
            **{name: _label(row.get(name)) for name in ("campaign", "provenance_id", "point_id", "hlo_hash")},
        )
        for row in records(bases.evidence.table.drop(columns=list(SAMPLES), errors="ignore"))
    ]


def _label(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _plain(value: Any) -> Any:
    """Values that JSON can hold; numbers that are none become null."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
