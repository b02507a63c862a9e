"""Posteriors that factorise: parts of a model that share no parameter are sampled one by one, until all pass.

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
) -> tuple[xr.DataTree, list[Check], SamplerSettings, int]:
    """Sample every factor, and all of them again and longer where the gate refuses one.

    Returns
    -------
    tree, checks, settings, attempt
        Draws of all, the gate over all, how they were sampled at last, and how often before.
    """
    compiled = [compile_model(model) for model in factors]
    for attempt in range(max(attempts, 1)):
        tree, checks = _sample(factors, compiled, settings, seed + attempt, progress)
        if passed(checks):
            break
        for line in warnings_of(checks):
            log.warning("%s", line)
        if attempt + 1 < attempts:
            settings = _longer(settings, lacking(checks))
    return tree, checks, settings, attempt


def sample_again(
    factors: Sequence[pm.Model], settings: SamplerSettings, seed: int, attempt: int, progress: bool
) -> tuple[xr.DataTree, list[Check]]:
    """Repeat what `sample_until_passed` did at last, with the settings and attempt that it returned and its seed."""
    return _sample(factors, [compile_model(model) for model in factors], settings, seed + attempt, progress)


def _sample(
    factors: Sequence[pm.Model], compiled: Sequence[Any], settings: SamplerSettings, seed: int, progress: bool
) -> tuple[xr.DataTree, list[Check]]:
    trees = []
    for at, (model, ready) in enumerate(zip(factors, compiled, strict=True)):
        if len(factors) > 1:
            log.info("sampling independent part %d of %d", at + 1, len(factors))
        trees.append(sample(model, ready, settings, seed=seed + APART * at, progress=progress))
    joined = _joined(trees)
    return joined, gate(joined, [name for model in factors for name in free_names(model)])


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
    """Draws of all factors side by side; what the sampler says of each on the dim ``factor``."""
    if len(trees) == 1:
        return trees[0]
    posteriors, stats = ([tree[name].to_dataset() for tree in trees] for name in ("posterior", "sample_stats"))
    groups: dict[str, Any] = {
        "posterior": xr.merge(posteriors, compat="identical", join="exact"),
        "sample_stats": xr.concat(stats, dim="factor", join="exact"),
    }
    return xr.DataTree.from_dict(groups)
