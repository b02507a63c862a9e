"""Does a profile's file hold what was written, and does what it holds agree with itself?"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import xarray as xr

from bayesperf.inference.infer import fingerprint
from bayesperf.prediction.digests import changed
from bayesperf.prediction.profile import Profile
from bayesperf.store import provenance_id, provenance_of
from bayesperf.verification.result import Finding, judged

__all__ = ["check_contents", "check_provenance"]


def check_contents(path: Path, profile: Profile) -> list[Finding]:
    """Check the digests in a profile's file, its data fingerprint and its provenance records."""
    with xr.open_datatree(path, engine="h5netcdf") as opened:
        tree = opened.load()
    what = "the profile holds what was written"
    places = changed(tree)
    if places is None:
        reason = "the file holds no digests: a version before they existed wrote it; load and save it to add them"
        contents = Finding(what, "not checked", reason)
    else:
        n = len(profile.table)
        good = f"{n} rows, every variable and every attribute have the digests written with them"
        contents = judged(what, places, good, "changed since it was written")
    return [contents, _fingerprint(tree, profile), check_provenance(profile.table, "the profile")]


def _fingerprint(tree: xr.DataTree, profile: Profile) -> Finding:
    found, told = fingerprint(profile.table), profile.facts.get("fingerprint")
    listed, ids = json.loads(tree.attrs["evidence_ids"]), list(profile.table["measurement_id"])
    places = [] if found == told else [f"data fingerprint: stated {told}, that of the embedded rows {found}"]
    places += [f"row {at}: the list of evidence says {old}, the row {new}" for at, old, new in _unequal(listed, ids)]
    good = f"fingerprint {found} is that of the {len(ids)} embedded rows"
    return judged("the embedded rows are those that were fitted", places, good, "other rows than those fitted")


def _unequal(one: list[str], other: list[str]) -> list[tuple[int, str, str]]:
    n = max(len(one), len(other))
    padded = zip(range(n), one + ["nothing"] * (n - len(one)), other + ["nothing"] * (n - len(other)), strict=True)
    return [(at, old, new) for at, old, new in padded if old != new]


def check_provenance(table: pd.DataFrame, where: str) -> Finding:
    """Check that every provenance record of a table has the content its id was made of."""
    records = provenance_of(table)
    places = [f"record {key} in {where}" for key, record in records.items() if provenance_id(record) != key]
    good = f"{len(records)} record{'' if len(records) == 1 else 's'} have the content their ids were made of"
    what = f"provenance of {where}"
    if not records:
        return Finding(what, "not checked", "there are no provenance records: the rows came without them")
    return judged(what, places, good, "records were changed")
