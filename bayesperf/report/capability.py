"""The capability report of a profile: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayesperf.report import content, figures
from bayesperf.report.canvas import to_uri
from bayesperf.report.evidence import Evidence, flatten
from bayesperf.report.page import render, write_page
from bayesperf.report.words import count
from bayesperf.store import provenance_of, with_provenance

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile
    from bayesperf.validation.result import Validation

__all__ = ["capability_page", "write_report"]

MOST_TARGETS = 12
"""Targets whose figures are drawn; the tables hold all of them."""


def write_report(
    profile: Profile,
    path: str | Path,
    *,
    validation: Validation | None = None,
    measurements: pd.DataFrame | None = None,
    failures: pd.DataFrame | None = None,
    seed: int = 0,
) -> None:
    """Write the report of a profile as one HTML file that needs no network, atomically.

    Parameters
    ----------
    profile
        A fitted profile, converged or not: what is not is marked.
    path
        The file.
    validation
        Its comparison with held-out measurements, if there was one.
    measurements
        All measurements at hand, held-out ones and their provenance included; the fitted rows when absent.
    failures
        Points that could not be measured.
    seed
        Of the predictive draws in the figures.
    """
    page = capability_page(
        profile, validation=validation, measurements=measurements, failures=failures, seed=seed, title=Path(path).stem
    )
    write_page(path, page)


def capability_page(
    profile: Profile,
    *,
    validation: Validation | None = None,
    measurements: pd.DataFrame | None = None,
    failures: pd.DataFrame | None = None,
    seed: int = 0,
    title: str = "report",
) -> str:
    """Render the report; parameters as `write_report`."""
    table = _evidence_table(profile.table, measurements)
    evidence = Evidence(table)
    heldout = _heldout(table)
    # In the order of the page, which is the order of the evidence's tags.
    head = {
        "title": ", ".join(profile.targets[:3]) + (" and others" if len(profile.targets) > 3 else "") or title,
        "profile": profile,
        "measured": measured(profile, table, evidence),
        "banners": content.banners(profile, table, evidence),
        **content.transfer(validation, evidence),
    }
    parameters = content.parameters(profile, evidence)
    sections = {
        "figures": target_figures(profile, heldout, seed),
        "headlines": content.headlines(parameters)[:MOST_TARGETS],
        "parameters": parameters,
        "learned": sum(p["learned"] for p in parameters),
        "gate": content.gate(profile.gate),
        "poor_fits": content.poor_fits(profile),
        "caveats": content.stated(profile.facts.get("caveats")),
        "facts": flatten({k: v for k, v in profile.facts.items() if k not in ("caveats", "targets")}),
        "failures": content.failures(failures),
        **content.heldout(validation, evidence),
    }
    # Last: the appendix holds what everything above cites.
    return render("capability.html", **head, **sections, evidence=evidence)


def _evidence_table(fitted: pd.DataFrame, measurements: pd.DataFrame | None) -> pd.DataFrame:
    """All rows that anything may cite, fitted ones first, with all provenance."""
    if measurements is None:
        return fitted
    further = measurements[~measurements["measurement_id"].isin(fitted["measurement_id"])]
    # The measured file knows more of a row than the profile keeps: samples, provenance.
    known = measurements[measurements["measurement_id"].isin(fitted["measurement_id"])]
    lacking = fitted[~fitted["measurement_id"].isin(known["measurement_id"])]
    parts = []
    for part in (known, lacking, further):
        if len(part):
            plain = part.copy(deep=False)
            plain.attrs = {}
            parts.append(plain)
    joined = pd.concat(parts, ignore_index=True)
    return with_provenance(joined, {**provenance_of(fitted), **provenance_of(measurements)})


def _heldout(table: pd.DataFrame) -> pd.DataFrame | None:
    if "role" not in table:
        return None
    rows = table[table["role"] == "heldout"]
    return rows if len(rows) else None


def measured(profile: Profile, table: pd.DataFrame, evidence: Evidence) -> dict[str, Any]:
    """Counts that say what the report is about."""
    fitted = profile.table["measurement_id"]
    other = table[~table["measurement_id"].isin(fitted)]["measurement_id"]
    return {
        "fitted": count(len(fitted), "measurement"),
        "fitted_cite": evidence.cite(fitted),
        "heldout": count(len(other), "held-out measurement") if len(other) else None,
        "heldout_cite": evidence.cite(other),
        "operations": sorted(set(profile.table["op"])),
        "campaigns": sorted({str(c) for c in table["campaign"].dropna()}) if "campaign" in table else [],
    }


def target_figures(profile: Profile, heldout: pd.DataFrame | None, seed: int) -> list[dict[str, Any]]:
    """Roofline and bandwidth of each target, where its measurements allow them."""
    found = []
    for target in list(profile.targets)[:MOST_TARGETS]:
        roof = figures.roofline(profile, target, heldout, seed=seed)
        memory = figures.bandwidth(profile, target, seed=seed)
        if roof or memory:
            found.append({"target": target, "roofline": roof and to_uri(roof), "bandwidth": memory and to_uri(memory)})
    return found
