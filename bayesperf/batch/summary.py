"""The summary of a batch: one row per job, for programs (JSON, CSV) and for people (one HTML file)."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bayesperf import __version__
from bayesperf.batch.job import FAILED, LOG, RECORD
from bayesperf.batch.plan import Job
from bayesperf.report.page import render, write_page
from bayesperf.report.words import count, percent
from bayesperf.schema import canonical
from bayesperf.store import atomic_write

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NOT_RUN", "SUMMARY_VERSION", "document_of", "table_of", "write_summary"]

SUMMARY_VERSION = 1
NOT_RUN = "not run"
"""Status of a job that an interrupted batch did not come to."""

SHIFT = ("shift_lower", "shift", "shift_upper")
VERDICTS = ("fails", "undecided", "transfers")
SYMBOLS = {"fails": "✕", "undecided": "?", "transfers": "✓"}
ORDER = {FAILED: 0, "unconverged": 1, NOT_RUN: 2, "done": 3}

COLUMNS = (
    "job", "status", "reason", "data", "model", "targets", "seed", "rows", "converged", "failed_checks", "transfers",
    "undecided", "fails", "coverage_90", "warnings", "seconds", "kept", "folder",
)  # fmt: skip


def document_of(title: str, jobs: Sequence[Job], records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The summary for programs: what was asked of every job, and its record.

    Parameters
    ----------
    title
        Heads the page.
    jobs
        In the order of the configuration.
    records
        By job id; jobs without one were not run.
    """
    rows = []
    for job in jobs:
        record = records.get(job.id, {"status": NOT_RUN})
        asked = {key: job.task[key] for key in ("data", "model", "targets", "seed")}
        rows.append({"job": job.name, "id": job.id, "folder": f"jobs/{job.id}", **asked, **record, "name": job.name})
    counts = Counter(row["status"] for row in rows)
    verdicts = Counter(v["verdict"] for row in rows for v in _verdicts(row))
    document = {
        "kind": "batch",
        "schema_version": SUMMARY_VERSION,
        "version": __version__,
        "title": title,
        "counts": dict(counts),
        "verdicts": {name: verdicts[name] for name in VERDICTS},
        "jobs": rows,
    }
    plain: dict[str, Any] = json.loads(canonical(document))
    return plain


def _verdicts(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    validation = row.get("validation") or {}
    return list(validation.get("verdicts", []))


def table_of(document: Mapping[str, Any]) -> pd.DataFrame:
    """One row per job: `COLUMNS`."""
    import pandas as pd

    rows = []
    for row in document["jobs"]:
        verdicts = Counter(v["verdict"] for v in _verdicts(row))
        validated = bool(row.get("validation"))
        rows.append(
            {
                "job": row["job"],
                "status": row["status"],
                "reason": row.get("reason"),
                "data": row["data"],
                # What was fitted, where a profile was given.
                "model": row.get("model"),
                "targets": "+".join(row["targets"]) if row.get("targets") else None,
                "seed": row["seed"],
                "rows": row.get("effective", {}).get("n_rows"),
                "converged": row.get("converged"),
                "failed_checks": "+".join(c["name"] for c in row.get("gate", []) if not c["passed"]) or None,
                **{name: verdicts[name] if validated else None for name in VERDICTS},
                "coverage_90": row["validation"].get("coverage_90") if validated else None,
                "warnings": row.get("warnings"),
                "seconds": row.get("seconds", {}).get("total"),
                "kept": row.get("kept", False),
                "folder": row["folder"],
            }
        )
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    whole = ["seed", "rows", *VERDICTS, "warnings"]
    return table.astype(dict.fromkeys(whole, "Int64") | {"converged": "boolean"})


def write_summary(folder: Path, document: Mapping[str, Any]) -> list[Path]:
    """Write ``summary.html``, ``summary.csv`` and ``summary.json``, each atomically."""
    page, table, plain = (folder / f"summary.{ending}" for ending in ("html", "csv", "json"))
    text = io.StringIO()
    table_of(document).to_csv(text, index=False)
    _write(plain, json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True))
    _write(table, text.getvalue())
    write_page(page, summary_page(document))
    return [page, table, plain]


def _write(path: Path, text: str) -> None:
    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    atomic_write(path, write)


def summary_page(document: Mapping[str, Any]) -> str:
    """Render the page: what needs attention first, then every job, then every regime."""
    rows = sorted(document["jobs"], key=lambda row: ORDER.get(row["status"], 9))
    counts, verdicts = Counter(document["counts"]), document["verdicts"]
    regimes = [_regime(row, verdict) for row in document["jobs"] for verdict in _verdicts(row)]
    regimes.sort(key=lambda regime: VERDICTS.index(regime["verdict"]))
    return render(
        "batch.html",
        title=document["title"],
        jobs=[_job(row) for row in document["jobs"]],
        attention=[_job(row) for row in rows if row["status"] != "done"],
        total=count(len(rows), "job"),
        counts={"done": counts["done"], "failed": counts[FAILED], "unconverged": counts["unconverged"]},
        not_run=counts[NOT_RUN],
        kept=sum(bool(row.get("kept")) for row in rows),
        verdicts=verdicts,
        regimes=regimes,
        version=document["version"],
    )


def _link(row: Mapping[str, Any], name: str) -> str:
    return quote(f"{row['folder']}/{name}")


def _job(row: Mapping[str, Any]) -> dict[str, Any]:
    files = row.get("files", {})
    names = {"report.html": "report", "validation.html": "validation", "profile.nc": "profile", LOG: "log"}
    failed = [check for check in row.get("gate", []) if not check["passed"]]
    effective, validation = row.get("effective", {}), row.get("validation") or {}
    tally = Counter(v["verdict"] for v in _verdicts(row))
    campaigns = effective.get("n_campaigns") or {}
    return {
        "name": row["job"],
        "status": row["status"],
        "good": row["status"] == "done",
        "kept": bool(row.get("kept")),
        "what": " · ".join(filter(None, (row["data"], row.get("model"), ", ".join(row.get("targets") or [])))),
        "reason": row.get("reason", ""),
        "checks": [_check(check) for check in failed],
        "gate": "" if "gate" not in row else "failed" if failed else "passed",
        "evidence": [
            count(effective["n_rows"], "row"),
            count(effective["n_targets"], "target"),
            count(max(effective["n_stacks"], 1), "stack"),
            count(sum(campaigns.values()), "campaign"),
        ]
        if effective.get("n_rows") is not None and effective.get("n_targets") is not None
        else [],
        "tally": [f"{SYMBOLS[name]} {tally[name]} {name}" for name in VERDICTS if tally[name]],
        "coverage": percent(validation["coverage_90"]) if "coverage_90" in validation else "",
        "times": [f"{name} {seconds:.1f} s" for name, seconds in sorted(row.get("seconds", {}).items())],
        "warnings": count(row["warnings"], "warning") if row.get("warnings") else "",
        "links": [{"href": _link(row, name), "text": text} for name, text in names.items() if name in files]
        + ([{"href": _link(row, RECORD), "text": "record"}] if files else []),
    }


def _check(check: Mapping[str, Any]) -> str:
    value = f"{check['value']:.4g}" if isinstance(check.get("value"), int | float) else "not a number"
    return f"{check['name']} is {value}, the limit is {check['limit']:g}: {check['remedy']}"


def _regime(row: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    shift = [100 * (exp(verdict[key]) - 1) if key in verdict else float("nan") for key in SHIFT]
    return {
        "verdict": verdict["verdict"],
        "symbol": SYMBOLS[verdict["verdict"]],
        "job": row["job"],
        "href": _link(row, "validation.html"),
        "where": f"{verdict['target']} · {verdict['regime']}",
        "rows": verdict["n_rows"],
        "shift": f"{shift[1]:+.1f} % [{shift[0]:+.1f}, {shift[2]:+.1f}]",
        "coverage": percent(verdict.get("coverage_90", float("nan"))),
        "advice": verdict.get("advice", ""),
    }
