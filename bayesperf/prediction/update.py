"""A profile and a few new rows, without fitting everything again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf.errors import InputError, check_counts
from bayesperf.inference.diagnostics import Check, warnings_of
from bayesperf.inference.infer import Inference, choose_rows, effective_numbers, fingerprint
from bayesperf.model import Draws, Updated
from bayesperf.specs import check_targets
from bayesperf.store import concat

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["UpdateOptions", "update"]

log = logging.getLogger("bayesperf.update")

DRAWS = 2000
"""Draws of the fit that an update starts from, where it has as many."""

SURVIVORS = 200.0
"""Effective number of them that must be left: fewer describe what is shared too coarsely."""

ACCEPTED = 0.5
CARRIED = 0.6
"""Limits on the share of moves accepted, and on the rank correlation that they leave."""


class UpdateOptions(TypedDict, total=False):
    """Options of `Profile.update`; see `update`."""

    targets: pd.DataFrame | None
    seed: int
    draws: int
    progress: bool
    allow_unconverged: bool


def update(
    profile: Profile,
    rows: pd.DataFrame,
    *,
    targets: pd.DataFrame | None = None,
    seed: int = 0,
    draws: int = DRAWS,
    progress: bool = False,
    allow_unconverged: bool = False,
) -> Profile:
    """Condition a profile on a few new rows: a new target, a new campaign, a new operation.

    What all targets share stays as the fit drew it, reweighted by the new rows; what the rows bring is inferred. That
    takes seconds. It is an approximation where the rows tell much of what is shared: a gate then demands the full fit.

    Parameters
    ----------
    profile
        The fit. It is left as it is.
    rows
        Measurements that it has not seen; held-out rows are left out.
    targets
        Spec sheets of new targets, beside those of the fit.
    seed
        The same seed gives the same draws.
    draws
        Posterior draws to start from, and to end with.
    progress
        Show a progress bar.
    allow_unconverged
        Start from a fit whose own gate failed.

    Returns
    -------
    Profile
        Of the old rows and the new. Its ``gate`` holds the update's checks behind the fit's, its ``tree`` the groups
        ``posterior``, ``prior`` and ``observed_data``.

    Raises
    ------
    InputError
        No new row to add, a row that was fitted already, or a model that cannot be updated.
    InferenceError
        No draw of the fit explains the rows.
    """
    from bayesperf.prediction.profile import Profile

    check_counts(1, draws=draws)
    profile.refuse_unconverged(allow_unconverged)
    known = profile.sheets_with(None if targets is None else check_targets(targets))
    added, left_out = choose_rows(rows, known)
    twice = sorted(set(added["measurement_id"]) & set(profile.table["measurement_id"]))
    if twice:
        raise InputError(f"{len(twice)} of the rows were fitted already, {twice[0]} among them; give new rows only")
    rng = np.random.default_rng(seed)
    model, encoded = profile.model, profile.inference.encoded
    with _bar(progress) as moved:
        found = model.update(encoded, profile.draws(limit=draws), profile.draws("prior"), added, known, rng, moved)
    checks = _checks(found)
    for line in warnings_of(checks):
        log.warning("%s", line)
    joined = concat([profile.table, added])
    facts = {
        **profile.facts,
        "fingerprint": fingerprint(joined),
        "left_out": left_out,
        "caveats": _caveats(profile, found, len(added)),
        "updates": [*profile.facts.get("updates", []), {"rows": len(added), "seed": seed}],
        **effective_numbers(joined),
    }
    log_time = model.observations(found.encoded)["log_time"].to_numpy(float)
    groups = {
        "posterior": _dataset(profile.tree["posterior"].to_dataset(), found, found.posterior),
        "prior": _dataset(profile.tree["prior"].to_dataset(), found, found.prior),
        "observed_data": xr.Dataset({"log_time": ("observation", log_time)}),
    }
    inference = Inference(
        xr.DataTree.from_dict(groups), model, found.encoded, joined, known, [*profile.gate, *checks], facts
    )
    return Profile(inference)


@contextmanager
def _bar(shown: bool) -> Iterator[Callable[[float], None]]:
    from tqdm import tqdm

    with tqdm(total=100, desc="updating", unit="%", disable=not shown, leave=False) as bar:
        yield lambda share: bar.update(round(100 * share) - bar.n) and None


def _checks(found: Updated) -> list[Check]:
    refit = "fit the old and the new rows together: `bayesperf fit OLD NEW`"
    return [
        Check("update_survivors", found.survivors, SURVIVORS, found.survivors >= SURVIVORS, "draws of the fit", refit),
        Check("update_accepted", found.accepted, ACCEPTED, found.accepted >= ACCEPTED, "last moves", refit),
        Check("update_carried_over", found.carried_over, CARRIED, found.carried_over <= CARRIED, "last moves", refit),
    ]


def _caveats(profile: Profile, found: Updated, n: int) -> list[str]:
    said = profile.model.caveats(found.encoded)
    return [
        *said,
        f"{n} rows were added by an update: what all targets share was reweighted by them, not fitted again.",
    ]


def _dataset(old: xr.Dataset, found: Updated, draws: Draws) -> xr.Dataset:
    """Draws as one chain, with the dims that the fit gave each variable and the labels of all members."""
    arrays: dict[str, Any] = {}
    for name, values in draws.items():
        dims = tuple(d for d in old[name].dims if d not in ("chain", "draw")) if name in old else found.dims[name]
        arrays[name] = (("chain", "draw", *dims), np.asarray(values)[None])
    used = {d for dims, _ in arrays.values() for d in dims}
    return xr.Dataset(arrays, coords={d: list(names) for d, names in found.coords.items() if d in used})
