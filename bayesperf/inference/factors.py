"""Posteriors that factorise: parts of a model that share no parameter are sampled one by one, each until it passes.

Nothing is approximated: what is independent given the data has no business in one trajectory, where the part that is
slow to evaluate would be evaluated as often as the part that is slow to mix asks for.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bayesperf.inference.diagnostics import Check, gate, passed, warnings_of
from bayesperf.inference.sampling import SamplerSettings, compile_model, free_names, sample

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["LONGEST", "lacking", "sample_again", "sample_until_passed"]

log = logging.getLogger("bayesperf.fit")

LONGEST = 6
"""A second attempt at sampling takes this many times the draws at most."""

APART = 7919
"""Between the seeds of two factors, which must not move by the same random numbers."""


def sample_until_passed(
    factors: Sequence[pm.Model], settings: SamplerSettings, seed: int, progress: bool, attempts: int
) -> tuple[xr.DataTree, list[Check], list[SamplerSettings]]:
    """Sample every factor, again and longer where the gate refuses it.

    Returns
    -------
    tree, checks, settings
        Draws of all, the gate over all, and how each factor was sampled at last.
    """
    trees, used = [], []
    for at, model in enumerate(factors):
        if len(factors) > 1:
            log.info("sampling independent part %d of %d", at + 1, len(factors))
        compiled, last = compile_model(model), settings
        for attempt in range(max(attempts, 1)):
            tree = sample(model, compiled, last, seed=_seed(seed, at, attempt), progress=progress)
            checks = gate(tree, free_names(model))
            if passed(checks):
                break
            for line in warnings_of(checks):
                log.warning("%s", line)
            if attempt + 1 < attempts:
                last = _longer(last, lacking(checks))
        trees.append(tree)
        used.append(last)
    joined = _joined(trees)
    return joined, gate(joined, [name for model in factors for name in free_names(model)]), used


def sample_again(
    factors: Sequence[pm.Model], settings: Sequence[SamplerSettings], seed: int, progress: bool
) -> tuple[xr.DataTree, list[Check]]:
    """Repeat what `sample_until_passed` did at last, with the settings that it returned and the same seed."""
    trees = []
    for at, (model, each) in enumerate(zip(factors, settings, strict=True)):
        # What was sampled a second time took the next seed, and is told by its setting.
        attempt = int(each.target_accept != SamplerSettings().target_accept)
        trees.append(sample(model, compile_model(model), each, seed=_seed(seed, at, attempt), progress=progress))
    joined = _joined(trees)
    return joined, gate(joined, [name for model in factors for name in free_names(model)])


def _seed(seed: int, factor: int, attempt: int) -> int:
    return seed + attempt + APART * factor


def _longer(settings: SamplerSettings, times: int) -> SamplerSettings:
    log.warning("sampling again, %d times as long", times)
    return dataclasses.replace(
        settings,
        draws=times * settings.draws,
        tune=2 * settings.tune,
        target_accept=0.95,
        thin=settings.thin * max(times // 2, 1),
    )


def lacking(checks: list[Check]) -> int:
    """How many times as many draws would pass, by what was lacking; no more than `LONGEST`, as chains may disagree for
    other reasons than their length.
    """
    found = {check.name: check for check in checks}
    times = [found[name].limit / max(found[name].value, 1.0) for name in ("bulk ESS", "tail ESS")]
    # R-hat's excess falls with the number of draws.
    times.append((found["R-hat"].value - 1.0) / (found["R-hat"].limit - 1.0))
    return int(np.clip(np.ceil(np.max(np.nan_to_num(times, nan=LONGEST))), 2, LONGEST))


def _joined(trees: Sequence[xr.DataTree]) -> xr.DataTree:
    """Draws of all factors side by side, as many as the one with the fewest has; statistics on the dim ``factor``."""
    if len(trees) == 1:
        return trees[0]
    groups: dict[str, Any] = {}
    for name in ("posterior", "sample_stats"):
        parts = [tree[name].to_dataset() for tree in trees]
        fewest = min(part.sizes["draw"] for part in parts)
        kept = [np.linspace(0, part.sizes["draw"] - 1, fewest).round().astype(int) for part in parts]
        parts = [part.isel(draw=at).assign_coords(draw=np.arange(fewest)) for part, at in zip(parts, kept, strict=True)]
        if name == "posterior":
            groups[name] = xr.merge(parts, compat="identical", join="exact")
        else:
            groups[name] = xr.concat(parts, dim="factor", join="exact")
    return xr.DataTree.from_dict(groups)
