"""Do the diagnostics and the prior of a profile come out again? What is believed of it rests on both."""

from __future__ import annotations

import math
from typing import Any

import xarray as xr

from bayesperf.inference.diagnostics import Check, gate
from bayesperf.inference.infer import PRIOR_DRAWS
from bayesperf.inference.sampling import sample_prior
from bayesperf.prediction.profile import Profile
from bayesperf.verification.criterion import compare_numbers
from bayesperf.verification.result import Finding, judged

__all__ = ["check_gate", "check_prior"]

CLOSE = 0.02
"""Relative difference of a diagnostic that counts as none: other versions of ArviZ estimate it a little otherwise."""


def check_gate(profile: Profile) -> Finding:
    """Diagnose the stored draws again: was a failed gate told as passed?"""
    what = "the diagnostics come out again"
    groups = set(profile.tree.children)
    if profile.facts.get("updates"):
        return Finding(what, "not checked", "an update judged its draws while it made them; a second fit repeats it")
    if not {"sample_stats", "log_prior"} <= groups:
        return Finding(what, "not checked", "the profile holds no sampler statistics")
    # Densities are kept of the sampled variables alone, which are those that the gate judges.
    names = [str(name) for name in profile.tree["log_prior"].data_vars]
    try:
        found = gate(profile.tree, names)
    except (KeyError, ValueError, TypeError) as error:
        return judged(what, [f"{type(error).__name__}: {error}"], "", "the draws cannot be diagnosed")
    stated = {check.name: check for check in profile.gate}
    places = [_difference(stated.get(check.name), check) for check in found]
    return judged(what, [p for p in places if p], f"{len(found)} checks of the stored draws", "they say otherwise")


def _difference(stated: Check | None, found: Check) -> str:
    if stated is None:
        return f"{found.name}: not stated, found {found.value:.5g}"
    told, again = float(stated.value), float(found.value)
    same = told == again or (math.isnan(told) and math.isnan(again))
    if (same or math.isclose(told, again, rel_tol=CLOSE)) and stated.passed == found.passed:
        return ""
    words = {True: "passed", False: "failed"}
    return (
        f"{found.name}: stated {told:.5g} ({words[bool(stated.passed)]}), found {again:.5g} "
        f"({words[found.passed]}, limit {found.limit:.4g})"
    )


def check_prior(profile: Profile) -> Finding:
    """Draw from the prior again: what is called learned is judged against it."""
    what = "the prior comes out again"
    if profile.facts.get("updates"):
        return Finding(what, "not checked", "an update extends the prior of its fit by draws of its own")
    inference = profile.inference
    tree = xr.DataTree.from_dict({"prior": _draw_prior(inference.model, inference.encoded, profile.facts["seed"])})
    again = {str(name): values.to_numpy()[0] for name, values in tree["prior"].data_vars.items()}
    try:
        published = inference.model.quantities(inference.encoded, profile.draws("prior"))
    except (KeyError, ValueError, TypeError, IndexError) as error:
        return judged(what, [f"{type(error).__name__}: {error}"], "", "its draws give no numbers")
    anew = inference.model.quantities(inference.encoded, again)
    chains = int(profile.tree["prior"].sizes["chain"])
    numbers = compare_numbers(published, anew, (chains, 1))
    off = numbers[~numbers["same"]]
    places = [
        f"{row['parameter']} of {row['label']} {row['target']}, {row['level']:.0%} quantile of the prior: stored "
        f"{row['published']:.5g}, drawn again {row['refit']:.5g}"
        for row in off.to_dict(orient="records")
    ]
    largest = f"the largest difference of {len(numbers)} numbers is {numbers['z'].abs().max():.2f} standard errors"
    return judged(what, places, largest, f"{len(places)} of {len(numbers)} numbers differ by more than chance")


def _draw_prior(model: Any, encoded: Any, seed: int) -> xr.Dataset:
    return sample_prior(model.build(encoded), draws=PRIOR_DRAWS, seed=seed)["prior"].to_dataset()
