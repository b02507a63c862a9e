"""Does a second fit of the embedded rows, with the stored seed and settings, give the published numbers again?"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf.inference.diagnostics import Check, warnings_of
from bayesperf.inference.factors import sample_again
from bayesperf.inference.infer import Inference
from bayesperf.inference.sampling import SamplerSettings
from bayesperf.prediction.profile import Profile
from bayesperf.verification.criterion import bound, compare_numbers, words
from bayesperf.verification.result import Finding, judged

__all__ = ["check_numbers", "fit_again"]

log = logging.getLogger("bayesperf.verify")

WHAT = "the published numbers come out again"

GROSS = 3.0
"""Multiple of the bound from which numbers differ although a fit did not converge."""


def check_numbers(profile: Profile, *, progress: bool = False) -> tuple[Finding, pd.DataFrame | None, str]:
    """Fit again and compare every published number.

    Returns
    -------
    tuple
        The finding, the numbers (None where there was nothing to compare), the criterion in words.
    """
    try:
        published = profile.model.quantities(profile.inference.encoded, profile.draws())
    except (KeyError, ValueError, TypeError, IndexError) as error:
        # Before minutes are spent on a second fit.
        return judged(WHAT, [f"{type(error).__name__}: {error}"], "", "its draws give no numbers"), None, ""
    again = fit_again(profile, progress=progress)
    anew = again.model.quantities(again.inference.encoded, again.draws())
    one, other = ([(q.name, q.target, q.label) for q in some] for some in (published, anew))
    if one != other:
        lost = sorted({" ".join(name) for name in set(one) ^ set(other)})
        return judged(WHAT, lost, "", "the two fits do not name the same parameters"), None, ""
    survivors = [check.value for p in (profile, again) for check in p.gate if check.name == "update_survivors"]
    numbers = compare_numbers(
        published, anew, (_chains(profile), _chains(again)), survivors=min(survivors) if survivors else None
    )
    return _judge(profile, again, numbers), numbers, words(len(numbers))


def _judge(profile: Profile, again: Profile, numbers: pd.DataFrame) -> Finding:
    unsure = not again.converged
    # Monte-Carlo errors of chains that disagree are themselves rough: only what lies far outside is said of them.
    off = numbers[numbers["z"].abs() > GROSS * bound(len(numbers))] if unsure else numbers[~numbers["same"]]
    places = [_place(row) for row in off.sort_values("z", key=np.abs, ascending=False).to_dict(orient="records")]
    if unsure and not places:
        failed = "; ".join(warnings_of([check for check in again.gate if not check.passed]))
        same = "though the profile is marked converged" if profile.converged else "as the profile itself is marked"
        return Finding(WHAT, "not checked", f"the second fit did not converge, {same}: {failed}")
    largest = f"the largest difference is {numbers['z'].abs().max():.2f} standard errors"
    good = "draw for draw" if _identical(profile, again) else largest
    return judged(WHAT, places, good, f"{len(places)} of {len(numbers)} numbers differ by more than Monte-Carlo error")


def _place(row: Mapping[Any, Any]) -> str:
    whose = f" on {row['target']}" if row["target"] else ""
    return (
        f"{row['parameter']} of {row['label']}{whose}, {row['level']:.0%} quantile: published {row['published']:.5g} "
        f"{row['unit']}, again {row['refit']:.5g} ({abs(row['z']):.1f} standard errors)"
    )


def fit_again(profile: Profile, *, progress: bool = False) -> Profile:
    """Fit the rows of a profile again, with its seed and settings; updates are repeated one by one."""
    inference = profile.inference
    updates = list(profile.facts.get("updates", []))
    rows = inference.rows
    ends = np.cumsum([len(rows) - sum(update["rows"] for update in updates), *(u["rows"] for u in updates)])
    first = rows.iloc[: ends[0]].reset_index(drop=True)
    encoded = inference.model.encode(first, inference.targets) if updates else inference.encoded
    log.info("fitting %d rows again with %s", len(first), inference.model.name)
    tree, checks = _sample(inference, encoded, progress)
    tree["prior"] = profile.tree["prior"]
    facts = {name: value for name, value in inference.facts.items() if name != "updates"}
    again = Profile(dataclasses.replace(inference, tree=tree, encoded=encoded, rows=first, checks=checks, facts=facts))
    for number, update in enumerate(updates):
        added = rows.iloc[ends[number] : ends[number + 1]].reset_index(drop=True)
        again = again.update(added, targets=inference.targets, seed=update["seed"], allow_unconverged=True)
    return again


def _sample(inference: Inference, encoded: Any, progress: bool) -> tuple[xr.DataTree, list[Check]]:
    built = inference.model.build(encoded)
    facts = inference.facts
    settings = SamplerSettings(**facts["sampler"])
    # Older profiles do not say it; what was sampled a second time is told by its setting.
    attempt = facts.get("attempt", int(settings.target_accept != SamplerSettings().target_accept))
    return sample_again(inference.model.factors(encoded, built), settings, facts["seed"], attempt, progress)


def _chains(profile: Profile) -> int:
    return int(profile.tree["posterior"].sizes["chain"])


def _identical(one: Profile, other: Profile) -> bool:
    mine, theirs = (p.tree["posterior"].to_dataset() for p in (one, other))
    return set(mine.data_vars) == set(theirs.data_vars) and all(
        np.array_equal(mine[name].values, theirs[name].values) for name in mine.data_vars
    )
