"""What a report says, as plain data: conclusions, parameters, verdicts, diagnostics, caveats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.configurations import records
from bayesperf.report import heldout_figures
from bayesperf.report.basis import Bases, basis_words
from bayesperf.report.canvas import to_uri
from bayesperf.report.evidence import Evidence
from bayesperf.report.parameters import INTERVAL
from bayesperf.report.words import configuration, count, interval, number, percent, quantity

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile
    from bayesperf.validation.moved import Moved
    from bayesperf.validation.result import Validation

__all__ = [
    "INTERVAL",
    "banners",
    "failures",
    "gate",
    "heldout",
    "ids_by_group",
    "poor_fits",
    "stated",
    "transfer",
]

NOISE_FLAGS = ("disturbed", "noisy", "unstable", "drift", "nonlinear", "bimodal")
TOO_NOISY = 0.1
"""Share of flagged measurements from which the report says at its top that the machine was too noisy."""

SYMBOLS = {"fails": "✕", "undecided": "?", "transfers": "✓"}
WORDS = {
    "fails": "fails to transfer",
    "undecided": "undecided",
    "transfers": "transfers",
}


def banners(profile: Profile, table: pd.DataFrame, evidence: Evidence) -> list[dict[str, Any]]:
    """What must be read before anything else: an unconverged posterior, a machine too noisy to measure."""
    found = []
    if not profile.converged:
        failed = [f"{c.name} {number(c.value)} (limit {number(c.limit)})" for c in profile.gate if not c.passed]
        found.append(
            {
                "title": "The posterior did not converge",
                "text": "Do not use the numbers below. Failed: " + "; ".join(failed) + ".",
                "cite": None,
            }
        )
    noisy = _flagged(table)
    if len(noisy):
        share = len(noisy) / len(table)
        labels = sorted({label for flags in noisy["flags"] for label in flags.split("+") if label in NOISE_FLAGS})
        title = "The machine was too noisy to measure well" if share >= TOO_NOISY else "Some points were disturbed"
        found.append(
            {
                "title": title,
                "text": f"{len(noisy)} of {count(len(table), 'measurement')} ({percent(share)}) carry a flag "
                f"({', '.join(labels)}). Their spread widens the intervals; bayesperf doctor says what to change.",
                "cite": evidence.cite(noisy["measurement_id"]),
            }
        )
    return found


def _flagged(table: pd.DataFrame) -> pd.DataFrame:
    if "flags" not in table:
        return table.iloc[:0]
    is_noisy = [isinstance(f, str) and not {*f.split("+")}.isdisjoint(NOISE_FLAGS) for f in table["flags"]]
    return table[np.array(is_noisy, dtype=bool)]


# Verdicts.


def transfer(validation: Validation | None, bases: Bases) -> dict[str, Any]:
    """What the top of a page says of transfer: ``overall`` and ``verdicts``; None and empty without a validation."""
    if validation is None:
        return {"overall": None, "verdicts": []}
    return {"overall": overall(validation, bases), "verdicts": verdicts(validation, bases)}


def heldout(validation: Validation | None, evidence: Evidence) -> dict[str, Any]:
    """What a page shows of held-out workloads: ``predictions``, ``scores``, and figures with their evidence."""
    names = ("heldout_figure", "coverage_figure", "pit_figure")
    if validation is None or not len(validation.rows):
        return {"predictions": [], "scores": [], "heldout_cite": None, "heldout_listed": True, **dict.fromkeys(names)}
    regimes = dict(zip(validation.groups["group"], validation.groups["regime"], strict=True))
    # By their short names, which a figure has room for.
    rows = validation.rows.assign(regime=validation.rows["group"].map(regimes).astype(str))
    drawn = (
        heldout_figures.heldout(rows),
        heldout_figures.coverage(rows),
        heldout_figures.pit(rows),
    )
    return {
        "predictions": heldout_rows(validation, evidence),
        "scores": scores(validation.scores),
        "heldout_cite": evidence.cite(_all_ids(rows)),
        "heldout_listed": heldout_figures.is_listed(rows),
        **{name: figure and to_uri(figure) for name, figure in zip(names, drawn, strict=True)},
    }


def verdicts(validation: Validation, bases: Bases) -> list[dict[str, Any]]:
    """One entry per regime, failures first."""
    order = {"fails": 0, "undecided": 1, "transfers": 2}
    groups = records(validation.groups)
    groups.sort(key=lambda g: (order.get(g["verdict"], 3), str(g["target"]), str(g["regime"])))
    ids = ids_by_group(validation.rows)
    return [
        {
            "verdict": g["verdict"],
            "symbol": SYMBOLS.get(g["verdict"], "?"),
            "words": WORDS.get(g["verdict"], str(g["verdict"])),
            "target": g["target"],
            "regime": regime(str(g["regime"])),
            "rows": basis_words(bases.of(ids.get(g["group"], []))),
            "shift": _shift(g),
            "coverage": percent(g["coverage_90"]),
            "spread": number(g["spread_ratio"], 2),
            "p_same": number(g["p_same"], 2),
            "p_fresh": number(g["p_fresh"], 2),
            "text": [str(g[k]) for k in ("reason", "advice") if isinstance(g.get(k), str) and g[k]],
            "moved": moved(validation.moved[g["group"]]) if g["group"] in validation.moved else None,
            "cite": bases.evidence.cite(ids.get(g["group"], [])),
        }
        for g in groups
    ]


def moved(found: Moved) -> dict[str, Any]:
    """What moved in a group that fails: in words, what to do next, and every explanation with its probability."""
    return {
        "words": found.words,
        "advice": found.advice,
        "explanations": [
            {
                "detail": row["detail"],
                "probability": percent(row["probability"], 1),
                "shift": _change(*(row[name] for name in ("shift", "shift_lower", "shift_upper"))),
            }
            for row in records(found.table)
        ],
    }


def regime(name: str) -> str:
    """Spell out a regime: ``memory, outside`` is memory-bound and outside of what was measured."""
    limit, separator, place = name.partition(", ")
    words = {"inside": "sizes inside what was measured", "outside": "sizes outside of what was measured"}
    return f"{limit}-bound, {words[place]}" if separator and place in words else name


def _shift(group: Mapping[str, Any]) -> str:
    """Shift of the measured time against the prediction; the table holds logs of the ratio."""
    return _change(*(math.expm1(float(group[k])) for k in ("shift", "shift_lower", "shift_upper")))


def _change(middle: float, low: float, high: float) -> str:
    """A change with its interval, in percent."""
    return f"{percent(middle, 1, signed=True)} [{100 * low:+.1f}, {100 * high:+.1f}]" if math.isfinite(middle) else "-"


def ids_by_group(rows: pd.DataFrame) -> dict[Any, list[str]]:
    """Measurement ids of each group of held-out configurations."""
    if "group" not in rows:
        return {}
    return {key: _all_ids(part) for key, part in rows.groupby("group", sort=False)}


def _all_ids(rows: pd.DataFrame) -> list[str]:
    return [str(i) for ids in rows["measurement_ids"] for i in ([ids] if isinstance(ids, str) else ids)]


def overall(validation: Validation, bases: Bases) -> dict[str, Any]:
    """Counts of verdicts and the coverage over all held-out configurations."""
    rows, groups = validation.rows, validation.groups
    inside = int(rows["inside"].astype(bool).sum())
    tally = groups["verdict"].value_counts()
    error = np.abs(np.log(rows["measured_s"].to_numpy(float) / rows["median_s"].to_numpy(float)))
    return {
        "regimes": len(groups),
        "tally": {name: int(tally.get(name, 0)) for name in ("fails", "undecided", "transfers")},
        "inside": inside,
        "rows": len(rows),
        "share": percent(inside / len(rows)) if len(rows) else "-",
        "error": percent(float(np.expm1(np.median(error))), 1) if len(rows) else "-",
        "unsupported": int((~rows["supported"].astype(bool)).sum()),
        "tolerance": percent(float(validation.settings["tolerance"])),
        "alpha": percent(float(validation.settings["alpha"])),
        "estimand": str(validation.settings["estimand"]),
        "cite": bases.evidence.cite(_all_ids(rows)),
    }


def heldout_rows(validation: Validation, evidence: Evidence) -> list[dict[str, Any]]:
    """Predicted beside measured time of every held-out configuration, worst first."""
    rows = validation.rows.assign(
        miss=np.abs(np.log(validation.rows["measured_s"].to_numpy(float) / validation.rows["median_s"].to_numpy(float)))
    )
    entries = []
    for row in records(rows.sort_values(["inside", "miss"], ascending=[True, False])):
        ids = row["measurement_ids"]
        entries.append(
            {
                "what": configuration(row),
                "target": row["target"],
                "measured": quantity(row["measured_s"], "s"),
                "predicted": interval(row["median_s"], row["lower_s"], row["upper_s"], "s"),
                "inside": bool(row["inside"]),
                "limit": row["limit"],
                "supported": bool(row["supported"]),
                "cite": evidence.cite([ids] if isinstance(ids, str) else ids),
            }
        )
    return entries


# Diagnostics.


def gate(checks: Sequence[Any]) -> list[dict[str, Any]]:
    """Diagnostics, failures first."""
    entries = [
        {
            "name": c.name,
            "where": c.where,
            "value": number(c.value),
            "limit": number(c.limit),
            "passed": bool(c.passed),
            "remedy": c.remedy,
        }
        for c in checks
    ]
    return sorted(entries, key=lambda entry: entry["passed"])


def poor_fits(profile: Profile) -> list[str]:
    """Fitted operations that the model does not describe, a sentence each."""
    # The checks bring the libraries of inference, which a page alone does not need.
    from bayesperf import checks

    return checks.poor_fits(profile)


# Failures and caveats.


def failures(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """Points that could not be measured, by reason; None where that is not known."""
    if table is None:
        return None
    entries = []
    for row in records(table):
        facts = {k: str(v) for k, v in row.items() if not pd.isna(v)}
        told = ("op", "dtype", "shape", "target", "reason", "detail")
        entries.append(
            {
                "what": " · ".join(facts[k] for k in told[:3] if k in facts),
                "target": facts.get("target", ""),
                "reason": facts.get("reason", ""),
                "detail": facts.get("detail", ""),
                "further": [(k, v) for k, v in facts.items() if k not in told],
            }
        )
    return sorted(entries, key=lambda entry: (entry["reason"], entry["what"]))


def stated(notes: str | Sequence[str] | None) -> list[str]:
    """Caveats as a list, each once."""
    return list(dict.fromkeys([notes] if isinstance(notes, str) else [str(n) for n in notes or []]))


def scores(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Proper scores of the model beside its baseline, over all and by group."""
    entries = []
    for row in records(table):
        target, separator, name = str(row["group"]).rpartition(": ")
        entries.append(
            {
                "group": f"{target}{separator}{regime(name)}",
                "rows": f"{int(row['n_rows']):,}",
                "crps": f"{number(row['crps'])} / {number(row['crps_baseline'])}",
                "interval": f"{number(row['interval_score'])} / {number(row['interval_score_baseline'])}",
                "better": bool(row["crps"] < row["crps_baseline"]),
            }
        )
    return entries
