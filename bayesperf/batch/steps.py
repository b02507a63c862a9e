"""The steps of one job: read, fit (or load a profile), validate, report; and the facts that its record keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from bayesperf.errors import InputError
from bayesperf.prediction.fit import fit
from bayesperf.prediction.profile import Profile, load_profile
from bayesperf.report.capability import write_report
from bayesperf.report.validation import write_validation
from bayesperf.schema import rows_for
from bayesperf.specs import read_targets, refuse_above_ceiling
from bayesperf.store import concat, read_measurements
from bayesperf.validation.result import Validation

__all__ = ["DONE", "PROFILE", "REPORT", "UNCONVERGED", "facts_of", "steps"]

DONE, UNCONVERGED = "done", "unconverged"
PROFILE, REPORT = "profile.nc", "report.html"

VERDICT_KEYS = ("target", "regime", "verdict", "n_rows", "shift", "shift_lower", "shift_upper", "coverage_90", "advice")


def steps(task: Mapping[str, Any], at: Mapping[str, Path], folder: Path, seconds: dict[str, float]) -> dict[str, Any]:
    """Do a job's work and return what its record says of it.

    Parameters
    ----------
    task
        From the plan.
    at
        Where each input lies on this machine, by its path on the sender's.
    folder
        Where the outputs go.
    seconds
        Filled with the time of each step.

    Raises
    ------
    BayesperfError
        Whatever a step raises; outputs of the steps before it stay.
    """
    fitted_elsewhere = task["profile"] is not None
    specs = read_targets(at[task["specs"]["path"]]) if task["specs"] is not None else None
    table = _joined(task, task["tables"], at, specs)
    with _timed(seconds, "load" if fitted_elsewhere else "fit"):
        if fitted_elsewhere:
            profile = load_profile(at[task["profile"]["path"]])
        else:
            profile = fit(table, targets=specs, model=task["model"], seed=task["seed"], **task["sampling"])
            profile.save(folder / PROFILE)
    heldout = _heldout(task, table, at)
    validation: Validation | None = None
    if heldout is not None:
        with _timed(seconds, "validate"):
            validation = profile.validate(heldout, **task["judging"], seed=task["seed"])
            write_validation(profile, validation, folder, heldout=heldout)
    if task["report"]:
        with _timed(seconds, "report"):
            # Rows held out in the table itself are in it already.
            shown = concat([table, heldout]) if heldout is not None and task["heldout"] else table
            write_report(profile, folder / REPORT, validation=validation, measurements=shown, seed=task["seed"])
    return {"status": DONE if profile.converged else UNCONVERGED, **facts_of(profile, validation)}


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.monotonic()
    try:
        yield
    finally:
        seconds[name] = time.monotonic() - started


def _joined(
    task: Mapping[str, Any], files: Sequence[Mapping[str, str]], at: Mapping[str, Path], specs: pd.DataFrame | None
) -> pd.DataFrame:
    """Rows of a job's targets, of all its files."""
    parts = [read_measurements(at[file["path"]]) for file in files]
    if task["targets"] is None and specs is not None:
        for file, part in zip(files, parts, strict=True):
            # Here, where a row's file is known; of a subset of the targets, the fit judges its own rows.
            first_row = 2 if Path(file["name"]).suffix == ".csv" else 0
            refuse_above_ceiling(part, specs, source=file["name"], first_row=first_row)
    table = parts[0] if len(parts) == 1 else concat(parts)
    return table if task["targets"] is None else _of_targets(table, task["targets"])


def _of_targets(table: pd.DataFrame, targets: Sequence[str]) -> pd.DataFrame:
    chosen = table[table["target"].isin(list(targets))].reset_index(drop=True)
    chosen.attrs = table.attrs
    if not len(chosen):
        raise InputError(f"no rows of {', '.join(targets)} are in its tables")
    return chosen


def _heldout(task: Mapping[str, Any], table: pd.DataFrame, at: Mapping[str, Path]) -> pd.DataFrame | None:
    """Rows to validate against, or None where there are none or the job wants none."""
    if task["validate"] is False:
        return None
    if task["profile"] is not None:
        return table
    if task["heldout"]:
        return _joined(task, task["heldout"], at, None)
    rows = rows_for(table, "heldout")
    if not len(rows) and task["validate"]:
        raise InputError(
            "validate = true, but no row has the role heldout and no held-out tables are named; add heldout = [...] "
            "or leave validate out"
        )
    return rows if len(rows) else None


def facts_of(profile: Profile, validation: Validation | None) -> dict[str, Any]:
    """What a record keeps of a fit and its validation: enough for a summary, and to find the rest."""
    facts = profile.facts
    found: dict[str, Any] = {
        "converged": profile.converged,
        "gate": [check.to_dict() for check in profile.gate],
        "model": profile.model_name,
        "model_version": facts.get("model_version"),
        "versions": facts.get("versions", {}),
        "sampler": facts.get("sampler", {}),
        "fingerprint": facts.get("fingerprint"),
        "effective": {key: facts.get(key) for key in ("n_rows", "n_targets", "n_stacks", "n_campaigns")},
        "left_out": facts.get("left_out", {}),
        "caveats": list(facts.get("caveats", [])),
        "validation": None,
    }
    if validation is not None:
        groups = validation.groups.to_dict(orient="records")
        found["validation"] = {
            "settings": dict(validation.settings),
            "verdicts": [{key: group[key] for key in VERDICT_KEYS} for group in groups],
            "coverage_90": validation.coverage,
            "n_rows": len(validation.rows),
            "notes": list(validation.notes),
        }
    return found
