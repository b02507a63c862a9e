"""Does a profile's file hold what was written, and does what it holds agree with itself?"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import xarray as xr

from bayesperf.inference.infer import fingerprint
from bayesperf.prediction.digests import ATTRIBUTE, changed
from bayesperf.prediction.files import miscoded
from bayesperf.prediction.profile import Profile
from bayesperf.store import provenance_id, provenance_of
from bayesperf.verification.result import Finding, judged

__all__ = ["CODING", "check_contents", "check_provenance"]

CODING = "the rows make the observations that were fitted"
"""A profile of which this failed has no numbers to compare: its draws stand at other cells' places."""


def check_contents(path: Path, profile: Profile) -> list[Finding]:
    """Check the digests in a profile's file, its data fingerprint and its provenance records."""
    with xr.open_datatree(path, engine="h5netcdf") as opened:
        tree = opened.load()
    return [
        _digests(tree, profile),
        _fingerprint(tree, profile),
        _coding(profile),
        check_provenance(profile.table, "the profile"),
    ]


def _coding(profile: Profile) -> Finding:
    coded = profile.model.observations(profile.inference.encoded)
    fitted = profile.tree["observed_data"].to_dataset() if "observed_data" in profile.tree.children else None
    reason = miscoded(fitted, coded)
    bad = "rows were changed, or the installed model codes them in another way than the one that was fitted"
    return judged(CODING, [reason] if reason else [], f"{len(coded)} observations, in the same order", bad)


def _digests(tree: xr.DataTree, profile: Profile) -> Finding:
    what = "the profile holds what was written"
    try:
        places = changed(tree)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return judged(what, [f"attribute {ATTRIBUTE}: {type(error).__name__}: {error}"], "", "its digests are damaged")
    if places is None:
        # Every version writes them. Who changes a file must not pass by leaving them out.
        return judged(what, [f"attribute {ATTRIBUTE}: absent"], "", "the file holds no digests: they were taken out")
    good = f"{len(profile.table)} rows, every variable and every attribute have the digests written with them"
    return judged(what, places, good, "changed since it was written")


def _fingerprint(tree: xr.DataTree, profile: Profile) -> Finding:
    found, told = fingerprint(profile.table), profile.facts.get("fingerprint")
    ids = list(profile.table["measurement_id"])
    try:
        listed = [str(name) for name in json.loads(tree.attrs["evidence_ids"])]
    except (ValueError, KeyError, TypeError):
        listed = []
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
    what = f"provenance of {where}"
    if not records:
        return Finding(what, "not checked", "there are no provenance records: the rows came without them")
    places = [f"record {key} in {where}" for key, record in records.items() if provenance_id(record) != key]
    named = table["provenance_id"].dropna() if "provenance_id" in table else pd.Series(dtype=object)
    absent = named[~named.isin(list(records))].value_counts()
    places += [f"record {key} of {n} rows is not in {where}" for key, n in absent.items()]
    good = f"{len(records)} record{'' if len(records) == 1 else 's'} have the content their ids were made of"
    return judged(what, places, good, "records were changed or taken out")
