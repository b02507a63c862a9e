"""The capability profile: one self-contained HTML file, and the same as a JSON document."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayesperf.model import LIMITS
from bayesperf.report import company, company_figures, content, figures
from bayesperf.report.basis import Bases
from bayesperf.report.bottlenecks import bottlenecks
from bayesperf.report.canvas import to_uri
from bayesperf.report.document import Capability, Sensitivity
from bayesperf.report.evidence import Evidence, flatten
from bayesperf.report.export import document
from bayesperf.report.forest import forests
from bayesperf.report.hierarchy import Sweep, plateaus, sweep
from bayesperf.report.page import render, write_page
from bayesperf.report.parameters import headlines, in_sections, parameters
from bayesperf.report.scatter import sensitivities, spreads
from bayesperf.report.words import count
from bayesperf.store import provenance_of, with_provenance

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile
    from bayesperf.validation.result import Validation

__all__ = ["Report", "capability_document", "capability_page", "gather", "page_of", "write_report"]

MOST_TARGETS = 12
"""Targets whose figures are drawn; the tables hold all of them."""

LEAST_LIMIT = 0.005
"""Probability from which the page shows a limit: less rounds to nothing."""

MOST_LINES = 400
"""Lines of a table of co-runners or collectives on the page; the JSON document holds all."""


def write_report(
    profile: Profile,
    path: str | Path,
    *,
    validation: Validation | None = None,
    measurements: pd.DataFrame | None = None,
    failures: pd.DataFrame | None = None,
    seed: int = 0,
) -> None:
    """Write the capability profile as one HTML file that needs no network, atomically.

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
    report = gather(
        profile, validation=validation, measurements=measurements, failures=failures, seed=seed, title=Path(path).stem
    )
    write_page(path, page_of(report))


@dataclass(frozen=True)
class Report:
    """What a report is made of, computed once for page and document.

    Parameters
    ----------
    profile, validation, failures
        As given.
    table
        All measurements at hand, fitted ones first.
    bases
        Effective numbers and evidence of everything below.
    top
        What the page says first: counts, banners, transfer.
    document
        What the page says, for programs; its evidence is that cited so far.
    sweeps
        Predicted curves of bandwidth, by target.
    seed
        Of predictive draws.
    """

    profile: Profile
    validation: Validation | None
    failures: pd.DataFrame | None
    table: pd.DataFrame
    bases: Bases
    top: dict[str, Any]
    document: Capability
    sweeps: dict[str, Sweep]
    seed: int


def gather(
    profile: Profile,
    *,
    validation: Validation | None = None,
    measurements: pd.DataFrame | None = None,
    failures: pd.DataFrame | None = None,
    seed: int = 0,
    title: str = "report",
) -> Report:
    """Compute what a report says; parameters as `write_report`."""
    bases = Bases(Evidence(_evidence_table(profile.table, measurements)))
    table = bases.evidence.table
    shown = list(profile.targets)[:MOST_TARGETS]
    sensed, sense_note = sensitivities(profile)
    swept = {name: sweep(profile, name, seed=seed, most=figures.MOST_CURVES) for name in shown}
    sweeps = {name: found for name, found in swept.items() if found is not None}
    # In the order of the page, which is the order of the evidence's tags.
    top = {
        "measured": measured(profile, table, bases.evidence),
        "banners": content.banners(profile, table, bases.evidence),
        **content.transfer(validation, bases),
    }
    found = document(
        profile,
        validation,
        bases,
        title=", ".join(profile.targets[:3]) + (" and others" if len(profile.targets) > 3 else "") or title,
        seed=seed,
        sensitivity=sense_note,
        parameters=parameters(profile, bases, sensed),
        bottlenecks=bottlenecks(profile, table, bases, list(profile.targets), seed=seed),
        plateaus=[p for name, found in sweeps.items() for p in plateaus(name, found, bases)],
        slowdowns=company.slowdowns(profile, table, bases, seed=seed),
        collectives=company.collectives(table, bases),
        unmodelled=company.unmodelled(profile, table, bases),
        spreads=spreads(table),
        poor_fits=content.poor_fits(profile),
    )
    return Report(profile, validation, failures, table, bases, top, found, sweeps, seed)


def capability_document(
    profile: Profile,
    *,
    validation: Validation | None = None,
    measurements: pd.DataFrame | None = None,
    seed: int = 0,
) -> Capability:
    """Return the report as a document whose schema is published; parameters as `write_report`."""
    return gather(profile, validation=validation, measurements=measurements, seed=seed).document


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
    report = gather(
        profile, validation=validation, measurements=measurements, failures=failures, seed=seed, title=title
    )
    return page_of(report)


def page_of(report: Report) -> str:
    """Render what `gather` found."""
    profile, found, evidence = report.profile, report.document, report.bases.evidence
    entries = found.parameters
    page = {
        "title": found.title,
        "profile": profile,
        "doc": found,
        **report.top,
        "headlines": headlines(entries)[:MOST_TARGETS],
        "sections": in_sections(entries),
        "learned": sum(p.learned for p in entries),
        "priors": _resting_on_priors(entries),
        "figures": _target_figures(report),
        "forests": [(title, to_uri(figure), tags, unit) for title, figure, tags, unit in forests(entries)],
        **_limits_seen(found),
        "matrices": _matrices(report),
        "collective_figures": _collective_figures(report),
        "most": MOST_LINES,
        "gate": content.gate(profile.gate),
        "facts": flatten({k: v for k, v in profile.facts.items() if k not in ("caveats", "targets")}),
        "failures": content.failures(report.failures),
        **content.heldout(report.validation, evidence),
    }
    # Last: the appendix holds what everything above cites.
    return render("capability.html", **page, evidence=evidence)


def _evidence_table(fitted: pd.DataFrame, measurements: pd.DataFrame | None) -> pd.DataFrame:
    """All rows that anything may cite, fitted ones first, with all provenance."""
    if measurements is None:
        return fitted.reset_index(drop=True)
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


def measured(profile: Profile, table: pd.DataFrame, evidence: Evidence) -> dict[str, Any]:
    """Counts that say what the report is about."""
    fitted = profile.table["measurement_id"]
    other = table[~table["measurement_id"].isin(fitted)]["measurement_id"]
    return {
        "fitted": count(len(fitted), "measurement"),
        "fitted_cite": evidence.cite(fitted),
        "heldout": count(len(other), "further measurement") if len(other) else None,
        "heldout_cite": evidence.cite(other),
        "campaigns": sorted({str(c) for c in table["campaign"].dropna()}) if "campaign" in table else [],
    }


def _limits_seen(found: Capability) -> dict[str, list[str]]:
    """Limits that bound anything, which get a column each, and those that bound nothing."""
    seen = [name for name in LIMITS if any(b.limits[name] >= LEAST_LIMIT for b in found.bottlenecks)]
    return {"seen_limits": seen, "unseen_limits": [name for name in LIMITS if name not in seen]}


def _resting_on_priors(entries: Any) -> list[Any]:
    """Parameters that move with their prior, those that moved most first."""
    sensed: list[tuple[float, Any]] = []
    for entry in entries:
        sense: Sensitivity | None = entry.sensitivity
        if sense is not None and sense.diagnosis.startswith("prior"):
            sensed.append((sense.prior or 0.0, entry))
    return [entry for _, entry in sorted(sensed, key=lambda pair: -pair[0])]


def _target_figures(report: Report) -> list[dict[str, Any]]:
    """Roofline and bandwidth of each target, where its measurements allow them, and what they show."""
    table, evidence = report.table, report.bases.evidence
    heldout = table[table["role"] == "heldout"] if "role" in table else None
    found = []
    for target in list(report.profile.targets)[:MOST_TARGETS]:
        roof = figures.roofline(report.profile, target, heldout, seed=report.seed)
        flat = [plateau for plateau in report.document.plateaus if plateau.target == target]
        swept = report.sweeps.get(target)
        rows = table[table["target"] == target]
        if roof or swept:
            found.append(
                {
                    "target": target,
                    "roofline": roof and to_uri(roof),
                    "roofline_heldout": heldout is not None and bool((heldout["target"] == target).any()),
                    "roofline_cite": evidence.cite(
                        rows.loc[(rows["flops"] > 0) & (rows["bytes"] > 0), "measurement_id"]
                    ),
                    "bandwidth": to_uri(figures.bandwidth(swept, flat)) if swept else None,
                    "bandwidth_cite": evidence.cite(swept.rows["measurement_id"]) if swept else None,
                    "plateaus": flat,
                }
            )
    return found


def _matrices(report: Report) -> list[dict[str, Any]]:
    """The contention matrix of every target that was measured beside others."""
    entries = report.document.slowdowns
    found: list[dict[str, Any]] = []
    for target in dict.fromkeys(entry.target for entry in entries):
        mine = [entry for entry in entries if entry.target == target]
        drawn = company_figures.contention(mine)
        if drawn is not None and len(found) < MOST_TARGETS:
            tags = list(dict.fromkeys(e.basis.evidence for e in mine if e.basis.evidence))
            found.append({"target": target, "image": to_uri(drawn), "tags": tags})
    return found


def _collective_figures(report: Report) -> list[dict[str, Any]]:
    entries = report.document.collectives
    found: list[dict[str, Any]] = []
    for target in dict.fromkeys(entry.target for entry in entries):
        mine = [entry for entry in entries if entry.target == target]
        drawn = company_figures.collectives(mine)
        if drawn is not None and len(found) < MOST_TARGETS:
            ids = report.table.loc[
                (report.table["target"] == target) & (report.table["message_bytes"] > 0), "measurement_id"
            ]
            found.append({"target": target, "image": to_uri(drawn), "cite": report.bases.evidence.cite(ids)})
    return found
