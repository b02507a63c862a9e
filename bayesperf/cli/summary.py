"""Summaries that several verbs print: a posterior and its gate, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesperf.cli.output import Output
from bayesperf.errors import InputError

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile
    from bayesperf.validation.result import Validation

__all__ = ["gate_facts", "load", "profile_facts", "show_gate", "show_parameters", "show_verdicts", "validation_facts"]

INTERVAL = 0.9
"""Probability of the intervals in summaries; the report says the same."""


def load(path: Path) -> Profile:
    """Load a profile; a path that holds no file is refused before any library is loaded."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    from bayesperf.prediction.profile import load_profile

    return load_profile(path)


def gate_facts(profile: Profile) -> list[dict[str, Any]]:
    """Diagnostics as records."""
    return [
        {"name": c.name, "value": c.value, "limit": c.limit, "passed": c.passed, "where": c.where, "remedy": c.remedy}
        for c in profile.gate
    ]


def profile_facts(profile: Profile) -> dict[str, Any]:
    """What programs read of a profile."""
    return {
        "model": profile.model_name,
        "targets": list(profile.targets),
        "converged": profile.converged,
        "gate": gate_facts(profile),
        "interval": INTERVAL,
        "parameters": profile.parameters(interval=INTERVAL),
    }


def show_gate(profile: Profile, output: Output) -> None:
    """Name every check that failed, and its remedy, on standard error."""
    for check in profile.gate:
        if not check.passed:
            output.note(f"diagnostics: {check.name} is {check.value:.4g}, the limit is {check.limit:g}: {check.remedy}")
    if not profile.converged:
        output.note("the posterior is marked unconverged: do not use its numbers")


def show_parameters(profile: Profile, output: Output) -> None:
    """Print the parameters in human units, and whether the table taught them."""
    if output.json or output.quiet:
        return
    table = profile.parameters(interval=INTERVAL)
    rows = [
        (
            row["target"],
            row["label"],
            row["median"],
            row["lower"],
            row["upper"],
            row["unit"],
            "learned" if row["learned"] else "prior",
        )
        for row in table.to_dict(orient="records")
    ]
    columns = ["target", "parameter", "median", f"{INTERVAL:.0%} from", "to", "unit", "from"]
    output.table(columns, rows)


def validation_facts(validation: Validation) -> dict[str, Any]:
    """What programs read of a validation."""
    return {
        "settings": dict(validation.settings),
        "any_fails": validation.any_fails,
        "groups": validation.groups,
        "moved": {group: found.facts() for group, found in validation.moved.items()},
        "rows": validation.rows,
        "scores": validation.scores,
        "notes": list(validation.notes),
    }


def show_verdicts(validation: Validation, output: Output) -> None:
    """Print one line per regime, failures first."""
    order = {"fails": 0, "undecided": 1, "transfers": 2}
    groups = validation.groups.to_dict(orient="records")
    groups.sort(key=lambda g: order.get(g["verdict"], 3))
    rows = [
        (g["verdict"], g["target"], g["regime"], g["n_rows"], shift(g), g["coverage_90"], g["advice"]) for g in groups
    ]
    output.table(["verdict", "target", "regime", "rows", "time against prediction", "covered of 90%", "advice"], rows)
    for group, moved in validation.moved.items():
        output.say(f"{group}: what moved: {moved.words}")
        if moved.advice:
            output.say(f"    {moved.advice}")


def shift(group: Mapping[Any, Any]) -> str:
    """Realised shift in time with its interval, in percent; the table holds logarithms."""
    from math import exp

    low, mid, high = (100 * (exp(group[k]) - 1) for k in ("shift_lower", "shift", "shift_upper"))
    return f"{mid:+.1f}% [{low:+.1f}, {high:+.1f}]"
