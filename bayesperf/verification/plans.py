"""Does a measurement table hold all that its plan says was measured? Rows left out on purpose are the oldest trick."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd

from bayesperf.store import provenance_of, read_table
from bayesperf.verification.result import Finding, judged

__all__ = ["check_plan"]


def check_plan(path: Path, table: pd.DataFrame) -> list[Finding]:
    """Check that every point of the plan in a table's file is a row of it, or one of its failures.

    Parameters
    ----------
    path
        The table; points that could not be measured are in ``<name>.failures.parquet`` beside it.
    table
        What was read from it.

    Returns
    -------
    list of Finding
        Empty for a file without a plan: of other tools, merged, or written by hand.
    """
    text = table.attrs.get("facts", {}).get("plan")
    if text is None:
        return []
    what = f"the plan of {path.name}"
    try:
        plan = json.loads(text)
        points = {str(point["id"]): _words(point) for point in plan["points"]}
        identity = _plan_id(plan)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return [judged(what, [f"{type(error).__name__}: {error}"], "", "the plan in the file is damaged")]
    known = {str(record["plan_id"]) for record in provenance_of(table).values() if "plan_id" in record}
    if known and known != {identity}:
        places = [f"the file holds plan {identity}, provenance names {', '.join(sorted(known))}"]
        return [judged(what, places, "", "another plan than the one that was measured")]
    failed, beside = _failed(path)
    found = {str(name) for name in table["point_id"].dropna()} if "point_id" in table else set()
    lost = [f"point {name}: {words}" for name, words in points.items() if name not in found | failed]
    good = f"each of its {len(points)} points is a row, or one of {len(failed)} that could not be measured"
    bad = f"{len(lost)} of {len(points)} points are missing: neither a row nor in {beside}"
    return [judged(what, lost, good, bad)]


def _words(point: dict[str, Any]) -> str:
    config = point["config"]
    parts = (config.get("op"), config.get("dtype"), point.get("role"), f"process {point.get('process')}")
    return " ".join(str(part) for part in parts if part)


def _plan_id(plan: dict[str, Any]) -> str:
    """Content id of a plan, from its text: a plan of an older version has no fields that came later."""
    content = {name: value for name, value in plan.items() if name != "stack"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _failed(path: Path) -> tuple[set[str], str]:
    """Points that could not be measured, and the file that says so, in words."""
    beside = path.with_name(f"{path.stem}.failures.parquet")
    if not beside.is_file():
        return set(), f"{beside.name}, which is not there: put it beside the table if the measuring host wrote one"
    table, _ = read_table(beside)
    return ({str(name) for name in table["point_id"].dropna()} if "point_id" in table else set()), beside.name
