"""From a measurement table to a posterior: rows chosen, model built, sampled, checked."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf import plugins
from bayesperf.columns import SAMPLES
from bayesperf.errors import InputError, check_counts
from bayesperf.inference.diagnostics import Check
from bayesperf.inference.factors import sample_until_passed
from bayesperf.inference.sampling import SamplerSettings, log_densities, sample_prior
from bayesperf.model import PerformanceModel
from bayesperf.schema import is_excluded, rows_for, validate, with_ids
from bayesperf.specs import check_targets, refuse_above_ceiling

__all__ = ["Inference", "choose_rows", "effective_numbers", "fingerprint", "infer"]

log = logging.getLogger("bayesperf.fit")

PRIOR_DRAWS = 500


@dataclasses.dataclass(frozen=True)
class Inference:
    """What a fit yields.

    Parameters
    ----------
    tree
        Groups ``posterior``, ``sample_stats``, ``prior``, ``prior_predictive``, ``log_likelihood``, ``log_prior``,
        ``observed_data``.
    model, encoded
        The model and its coding of `rows`.
    rows
        The fitted rows.
    targets
        Spec sheets, or None.
    checks
        The diagnostics gate.
    facts
        Versions, seed, settings, fingerprint, effective numbers, caveats; JSON-able.
    """

    tree: xr.DataTree
    model: PerformanceModel
    encoded: Any
    rows: pd.DataFrame
    targets: pd.DataFrame | None
    checks: list[Check]
    facts: dict[str, Any]


def infer(
    table: pd.DataFrame | Sequence[pd.DataFrame],
    targets: pd.DataFrame | None = None,
    model: str | PerformanceModel = "roofline",
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    seed: int | None = None,
    progress: bool = False,
    attempts: int = 2,
) -> Inference:
    """Infer a model's parameters from measurements; parameters as `bayesperf.fit`, which wraps this."""
    check_counts(1, draws=draws, tune=tune, chains=chains, attempts=attempts)
    check_counts(0, **({} if seed is None else {"seed": seed}))
    chosen: PerformanceModel = plugins.load("model", model)() if isinstance(model, str) else model
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    targets = None if targets is None else check_targets(targets)
    rows, left_out = choose_rows(table, targets)
    encoded = chosen.encode(rows, targets)
    built = chosen.build(encoded)
    prior = sample_prior(built, draws=PRIOR_DRAWS, seed=seed)
    observations = len(chosen.observations(encoded))
    log.info("fitting %d rows (%d observations) with %s", len(rows), observations, chosen.name)
    asked = SamplerSettings(draws=draws, tune=tune, chains=chains)
    factors = chosen.factors(encoded, built)
    tree, checks, settings, attempt = sample_until_passed(factors, asked, seed, progress, attempts)
    densities = log_densities(built, tree)
    groups = {name: node.to_dataset() for source in (tree, prior, densities) for name, node in source.children.items()}
    groups["observed_data"] = _observed(built)
    facts = {
        "model": chosen.name,
        "model_version": chosen.version,
        "seed": seed,
        "sampler": dataclasses.asdict(settings),
        "attempt": attempt,
        "versions": {name: version(name) for name in ("bayesperf", "pymc", "nutpie", "arviz", "numpy", "xarray")},
        "fingerprint": fingerprint(rows),
        "left_out": left_out,
        "caveats": chosen.caveats(encoded),
        **effective_numbers(rows),
    }
    return Inference(xr.DataTree.from_dict(groups), chosen, encoded, rows, targets, checks, facts)


def choose_rows(
    table: pd.DataFrame | Sequence[pd.DataFrame], targets: pd.DataFrame | None
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Rows to fit, and how many were left out by which recorded rule."""
    if not isinstance(table, pd.DataFrame):
        if not isinstance(table, Sequence) or not all(isinstance(part, pd.DataFrame) for part in table):
            raise InputError(f"fit takes a DataFrame of measurements or a list of them, not {type(table).__name__}")
        from bayesperf.store import concat

        table = concat(table)
    table = with_ids(validate(table), source="table")
    rows = rows_for(table, "fit")
    excluded = is_excluded(rows)
    left_out = {"heldout": len(table) - len(rows), "excluded by a recorded rule": int(excluded.sum())}
    # Raw samples stay with the measurements; a profile refers to them by id.
    rows = rows[~excluded].drop(columns=list(SAMPLES), errors="ignore").reset_index(drop=True)
    if not len(rows):
        raise InputError(f"no rows to fit: of {len(table)}, {left_out} were left out")
    refuse_above_ceiling(table, targets)
    for rule, count in left_out.items():
        if count:
            log.info("left out: %d rows, %s", count, rule)
    return rows, left_out


def _observed(built: Any) -> xr.Dataset:
    values = {}
    for variable in built.observed_RVs:
        dims = built.named_vars_to_dims[variable.name]
        values[variable.name] = (dims, np.asarray(built.rvs_to_values[variable].eval()))
    names = {dim for dims, _ in values.values() for dim in dims}
    return xr.Dataset(values, coords={dim: list(built.coords[dim]) for dim in names})


def fingerprint(rows: pd.DataFrame) -> str:
    """Hash of the ids of the fitted rows, whatever their order."""
    return hashlib.sha256("\n".join(sorted(rows["measurement_id"])).encode()).hexdigest()[:16]


def effective_numbers(rows: pd.DataFrame) -> dict[str, Any]:
    """How many targets, stacks and campaigns stand behind every interval."""
    by = rows.groupby("target")
    campaigns = by["campaign"].nunique() if "campaign" in rows else by.size() * 0
    return {
        "n_rows": len(rows),
        "n_targets": int(rows["target"].nunique()),
        "n_stacks": int(rows["stack"].nunique()) if "stack" in rows else 0,
        "n_campaigns": {str(target): max(int(count), 1) for target, count in campaigns.items()},
    }
