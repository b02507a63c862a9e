"""Does a report say what its profile says? Its JSON document is computed again, and compared value by value."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.store import concat, read_measurements
from bayesperf.verification.result import Finding, judged

if TYPE_CHECKING:
    import pandas as pd

    from bayesperf.prediction.profile import Profile

__all__ = ["check_report", "different"]

CLOSE = 1e-6
"""Relative difference of numbers that other versions of libraries may make of the same draws."""


def check_report(profile: Profile, report: Path, tables: Sequence[Path]) -> Finding:
    """Compute a report's document again from a profile and the tables it was read beside, and compare.

    Parameters
    ----------
    profile
        The profile it was written of.
    report
        The document, as ``bayesperf report --out FILE.json`` writes it.
    tables
        Measurement tables; those given to ``--heldout``, where the report holds verdicts.

    Raises
    ------
    InputError
        The report does not exist, or is no such document.
    """
    what = f"{report.name} says what the profile says"
    told = _read(report)
    if told.get("seed") is None:
        return Finding(what, "not checked", "it does not say with which seed it was written: write it again")
    beside = _beside(profile, told, tables)
    if isinstance(beside, str):
        return Finding(what, "not checked", beside)
    from bayesperf.report.capability import gather

    seed, overall = int(told["seed"]), told.get("overall")
    validation = None
    if overall is not None:
        if beside is None:
            return Finding(what, "not checked", "it rests on held-out measurements: name their table")
        settings = overall.get("settings", {})
        kept = {name: settings[name] for name in ("tolerance", "alpha") if name in settings}
        validation = profile.validate(beside, seed=int(settings.get("seed", seed)), **kept)
    title = str(told.get("title", ""))
    again = gather(profile, validation=validation, measurements=beside, seed=seed, title=title).document
    places = list(different(told, json.loads(again.model_dump_json()), ""))
    good = (
        f"{len(again.parameters)} parameters, {len(again.heldout)} held-out configurations and the rest come out again"
    )
    return judged(what, places, good, f"{len(places)} values are not those that the profile gives")


def _read(report: Path) -> dict[str, Any]:
    if not report.is_file():
        raise InputError(f"{report}: no such file")
    try:
        told = json.loads(report.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise UnsupportedFileError(f"{report}: not a JSON document ({error}); `bayesperf report` writes one") from error
    if not isinstance(told, dict) or told.get("kind") != "bayesperf-capability":
        raise UnsupportedFileError(f"{report}: not a report; `bayesperf report --out FILE.json` writes one")
    return told


def _beside(profile: Profile, told: dict[str, Any], tables: Sequence[Path]) -> pd.DataFrame | str | None:
    """What the report was read beside: the tables, nothing but the profile, or why that cannot be told."""
    fitted = set(profile.table["measurement_id"])
    further = {str(row.get("measurement_id")) for row in told.get("measurements", []) if isinstance(row, dict)} - fitted
    if told.get("overall") is None and not further:
        return None
    if not tables:
        return f"it rests on {len(further)} further measurements: name their table"
    read = [read_measurements(path) for path in tables]
    return read[0] if len(read) == 1 else concat(read)


def different(told: Any, found: Any, where: str) -> Iterator[str]:
    """Yield where two JSON values differ: what the report says, and what was computed."""
    if isinstance(told, dict) and isinstance(found, dict):
        for name in dict.fromkeys([*told, *found]):
            at = f"{where}.{name}" if where else str(name)
            if name not in told or name not in found:
                yield f"{at}: {'added to' if name in told else 'missing in'} the report"
            else:
                yield from different(told[name], found[name], at)
    elif isinstance(told, list) and isinstance(found, list):
        if len(told) != len(found):
            yield f"{where}: {len(told)} entries, computed {len(found)}"
        for index, (one, other) in enumerate(zip(told, found, strict=False)):
            yield from different(one, other, f"{where}[{index}]")
    elif not _same(told, found):
        yield f"{where}: {told!r}, computed {found!r}"


def _same(told: Any, found: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (told, found)]
    if all(numbers):
        return math.isclose(told, found, rel_tol=CLOSE, abs_tol=1e-300)
    return type(told) is type(found) and bool(told == found)
