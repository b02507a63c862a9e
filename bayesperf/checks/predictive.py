"""Prior and posterior predictive checks: trees that ArviZ's plots take, and how much of the prior is impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf.checks.observed import LOG_TIME, fitted_blocks, fitted_configurations
from bayesperf.errors import InputError, check_counts
from bayesperf.model import Floats, Quantity
from bayesperf.specs import spec_of

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["observations", "posterior_predictive", "prior_above_peak", "prior_predictive"]


def posterior_predictive(profile: Profile, draws: int | None = 1000, seed: int = 0) -> xr.DataTree:
    """Replicate every fitted configuration from the posterior, in the campaign it was measured in.

    Parameters
    ----------
    profile
        A fit.
    draws
        At most so many, evenly spaced and as many from each chain; all when None.
    seed
        Of the replicated noise.

    Returns
    -------
    DataTree
        Groups ``observed_data`` and ``posterior_predictive`` with the variable ``log_time``, log seconds, dims
        ``(chain, draw, observation)``; ``target`` and ``op`` are coordinates of ``observation``. What is replicated is
        the median over a configuration's repeats, as it was fitted. ``arviz_plots.plot_ppc_dist``, ``plot_ppc_pit``,
        ``plot_ppc_interval`` and ``arviz_stats.metrics`` take it.
    """
    check_counts(0, seed=seed)
    posterior = profile.tree["posterior"].to_dataset()
    chosen = _evenly(posterior.sizes["draw"], posterior.sizes["chain"], draws)
    values = _replicate(profile, np.asarray(chosen), np.random.default_rng(seed))
    coords = {"chain": posterior["chain"].values, "draw": posterior["draw"].values[chosen], **observations(profile)}
    replicated = xr.Dataset({LOG_TIME: (("chain", "draw", "observation"), values)}, coords=coords)
    return xr.DataTree.from_dict({"observed_data": _observed(profile), "posterior_predictive": replicated})


def _evenly(draws: int, chains: int, limit: int | None) -> list[int]:
    if limit is None:
        return list(range(draws))
    check_counts(1, draws=limit)
    each = min(draws, max(1, limit // chains))
    return [int(at) for at in np.unique(np.linspace(0, draws - 1, each).round())]


def _replicate(profile: Profile, chosen: np.ndarray, rng: np.random.Generator) -> Floats:
    """Replicates of the chosen draws of every chain, (chain, draw, observation)."""
    posterior = profile.tree["posterior"].to_dataset()
    chains, length = posterior.sizes["chain"], posterior.sizes["draw"]
    rows = (np.arange(chains)[:, None] * length + chosen).ravel()
    draws = {name: values[rows] for name, values in profile.draws().items()}
    summary = fitted_configurations(profile)
    found = np.empty((len(rows), len(summary.ids)))
    for at, predictive in fitted_blocks(profile, summary, draws):
        found[:, at] = predictive.draw(rng)
    return found.reshape(chains, len(chosen), -1)


def observations(profile: Profile) -> dict[str, object]:
    """Coordinates of the observations: their labels in the model, and their target and operation."""
    seen = profile.model.observations(profile.inference.encoded)
    labels = profile.tree["observed_data"]["observation"].values
    along = {name: ("observation", seen[name].to_numpy(dtype=str)) for name in ("target", "op")}
    return {"observation": labels, **along}


def _observed(profile: Profile) -> xr.Dataset:
    seen = profile.model.observations(profile.inference.encoded)
    values = {LOG_TIME: ("observation", seen["log_time"].to_numpy(float))}
    return xr.Dataset(values, coords=observations(profile))


def prior_predictive(profile: Profile) -> xr.DataTree:
    """Give the prior predictive distribution of every fitted configuration, as it was drawn for the fit.

    Returns
    -------
    DataTree
        Groups ``observed_data`` and ``prior_predictive`` as of `posterior_predictive`, and ``prior``.

    Raises
    ------
    InputError
        The model has no observed variable along ``observation``.
    """
    name = observed_name(profile)
    drawn = profile.tree["prior_predictive"].to_dataset()[[name]].rename({name: LOG_TIME})
    groups = {
        "observed_data": _observed(profile),
        "prior": profile.tree["prior"].to_dataset(),
        "prior_predictive": drawn.assign_coords(observations(profile)),
    }
    return xr.DataTree.from_dict(groups)


def observed_name(profile: Profile) -> str:
    """Name of the model's observed variable whose dim is ``observation``."""
    data = profile.tree["observed_data"].to_dataset()
    names = [str(name) for name, values in data.data_vars.items() if values.dims == ("observation",)]
    if len(names) != 1:
        raise InputError(
            f"model {profile.model_name!r} has {len(names)} observed variables along 'observation' alone; it needs one"
        )
    return names[0]


def prior_above_peak(profile: Profile) -> pd.DataFrame:
    """How much of the prior lies above what spec sheets call possible, before any measurement.

    A prior that calls impossible rates likely pulls every device with few rows; one that excludes them leaves no room
    for a wrong sheet. A few per cent are room; a third is a wrong prior or a wrong sheet.

    Returns
    -------
    DataFrame
        One row per named rate or bandwidth of a target whose sheet states its limit: target, parameter, label, unit,
        peak (times ``n_devices``), prior_median, above (probability that the prior exceeds the peak). Bandwidths of
        working sets that may lie in a cache have no limit and are left out.
    """
    encoded = profile.inference.encoded
    seen = profile.model.observations(encoded)["measurement_ids"]
    first = profile.table.set_index("measurement_id")
    rows = []
    for quantity in profile.model.quantities(encoded, profile.draws("prior")):
        if quantity.unit not in ("FLOP/s", "B/s") or not len(quantity.rows):
            continue
        peak = _peak(quantity, first.loc[[ids[0] for ids in seen.iloc[quantity.rows]]], profile.spec_sheets)
        if np.isfinite(peak):
            rows.append(
                {
                    "target": quantity.target,
                    "parameter": quantity.name,
                    "label": quantity.label,
                    "unit": quantity.unit,
                    "peak": peak,
                    "prior_median": float(np.median(quantity.draws)),
                    "above": float(np.mean(quantity.draws > peak)),
                }
            )
    return pd.DataFrame(rows, columns=["target", "parameter", "label", "unit", "peak", "prior_median", "above"])


def _peak(quantity: Quantity, rows: pd.DataFrame, targets: pd.DataFrame | None) -> float:
    """Spec-sheet limit of a rate or bandwidth from the rows it rests on; infinite where nothing is stated."""
    device = rows["device"].iloc[0] if "device" in rows and isinstance(rows["device"].iloc[0], str) else quantity.target
    spec = spec_of(targets, device)
    together = rows["message_bytes"].isna().all() if "message_bytes" in rows else True
    count = float(rows["n_devices"].fillna(1).max()) if "n_devices" in rows and together else 1.0
    if quantity.unit == "FLOP/s":
        peaks = {spec.get(f"peak_flops_{d}", np.inf) for d in (rows["dtype"].dropna() if "dtype" in rows else ())}
        return count * max(peaks, default=np.inf)
    footprint = rows["working_set_bytes"].fillna(rows["bytes"]) if "working_set_bytes" in rows else rows["bytes"]
    beyond = footprint.min() > count * spec.get("cache_bytes", np.inf)
    return count * spec.get("bandwidth_bytes_per_s", np.inf) if beyond else np.inf
