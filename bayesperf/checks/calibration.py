"""Simulation-based calibration (Talts et al. 2018): is the posterior of simulated data where it should be?

Parameters are drawn from the prior, data from the likelihood, and the posterior by the shipped sampler; over many
simulations the rank of the truth among the draws is uniform, whatever the prior. simuk runs the loop and ranks; the
model is compiled once and given other data, a second a fit where compiling takes half a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import scipy.special
import simuk
import xarray as xr

from bayesperf import plugins
from bayesperf.checks.adjust import holm
from bayesperf.errors import InferenceError, InputError, UnknownNameError, check_counts
from bayesperf.inference.sampling import (
    SamplerSettings,
    compile_model,
    deriver,
    joint_likelihood,
    sample,
    sample_prior,
)
from bayesperf.model import Floats, PerformanceModel
from bayesperf.specs import check_targets

__all__ = ["LIKELIHOOD", "Calibration", "band_p", "sbc"]

LIKELIHOOD = "log_likelihood"
"""Name of the joint log likelihood among the test quantities (Modrak et al. 2023): it sees errors that parameters one
by one do not, such as a posterior that ignores the data."""

REPLICATES = 20_000
"""Uniform samples behind a band's p-value, whose error is then below 0.002 at 5 %."""


@dataclass(frozen=True)
class Calibration:
    """Ranks of simulated truths among posterior draws.

    Parameters
    ----------
    tree
        simuk's group ``prior_sbc`` with the truths' PIT, (chain, draw, ...) with one draw per simulation:
        ``arviz_plots.plot_ecdf_pit`` takes it.
    table
        One row per scalar parameter, and one of the joint log likelihood: parameter, member, p (of the simultaneous
        band of the empirical distribution), p_adjusted (Holm over all rows), mean_pit (0.5), spread_pit (over that of a
        uniform: above 1 the posterior is too narrow).
    simulations, divergent
        How many were run, and in how many some draw diverged.
    """

    tree: xr.DataTree
    table: pd.DataFrame
    simulations: int
    divergent: int

    def failed(self, alpha: float = 0.01) -> list[str]:
        """Parameters whose ranks leave the simultaneous bands; any does with a chance of `alpha` if all is well."""
        rows = self.table[self.table["p_adjusted"] < alpha]
        return [
            f"{name}[{member}]" if member else name for name, member in zip(rows.parameter, rows.member, strict=True)
        ]


def sbc(
    model: str | PerformanceModel | pm.Model,
    table: Any = None,
    targets: pd.DataFrame | None = None,
    *,
    simulations: int = 200,
    draws: int = 250,
    tune: int = 500,
    chains: int = 2,
    keep: int = 100,
    names: Sequence[str] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Calibration:
    """Check that a model, with the shipped sampler, recovers what was simulated from its own prior.

    Parameters
    ----------
    model
        Name of an installed model, a model, or a PyMC model whose observations are `pm.Data`.
    table
        What the model is built for: a measurement table, of which only the design counts, as its times are replaced; or
        what `encode` made of one. None for a PyMC model.
    targets
        Spec sheets.
    simulations
        How many; 200 find a posterior half as wide as it should be, not one that is 10 % off.
    draws, tune, chains
        Of each fit.
    keep
        Draws kept of each fit, evenly spaced: neighbours depend on each other, and ranks must not.
    names
        Variables to rank; every scalar and member that is not a standardised stand-in (``*_raw``) when None.
    seed
        The same seed gives the same result.
    progress
        Show a progress bar.

    Raises
    ------
    InputError
        Observations that cannot be replaced.
    InferenceError
        A simulation failed.
    """
    check_counts(8, simulations=simulations, keep=keep)
    check_counts(1, draws=draws, chains=chains, tune=tune)
    built = _built(model, table, targets)
    run = _Sbc(built, names, SamplerSettings(draws, tune, chains), simulations, keep, seed, progress)
    run.run_simulations()
    if run._simulations_complete < simulations:
        raise InferenceError(f"simulation {run._simulations_complete} failed; the reason is in the log above")
    return _calibration(run, keep, seed)


def _built(model: str | PerformanceModel | pm.Model, table: Any, targets: pd.DataFrame | None) -> pm.Model:
    if isinstance(model, pm.Model):
        return model
    chosen = plugins.load("model", model)() if isinstance(model, str) else model
    if isinstance(table, pd.DataFrame):
        table = chosen.encode(table, None if targets is None else check_targets(targets.reset_index()))
    if table is None:
        raise InputError(f"model {chosen.name!r} is built for a table: give measurements of the design to simulate")
    return chosen.build(table)


class _Sbc(simuk.SBC):  # type: ignore[misc]  # simuk has no types.
    """simuk's loop with our sampler: compiled once, data swapped."""

    def __init__(
        self,
        model: pm.Model,
        names: Sequence[str] | None,
        settings: SamplerSettings,
        simulations: int,
        keep: int,
        seed: int,
        progress: bool,
    ):
        super().__init__(model, num_simulations=simulations, seed=seed, keep_fits=False, progress_bar=progress)
        lacking = [name for name, data in self.observed_rvs_to_pm_data.items() if data is None]
        if lacking:
            raise InputError(
                f"observations of {', '.join(lacking)} cannot be replaced by simulated ones: pass them to the model as "
                "pm.Data"
            )
        known = [v.name for v in (*model.free_RVs, *model.deterministics)]
        for name in names or ():
            if name not in known:
                raise UnknownNameError("variable", name, known)
        self.var_names = [*(names or [n for n in known if not n.endswith("_raw")]), LIKELIHOOD]
        self.settings, self.keep, self.divergent = settings, keep, 0
        self.compiled, self.derive, self.likelihood = compile_model(model), deriver(model), joint_likelihood(model)

    def _get_prior_predictive_samples(self) -> tuple[xr.Dataset, xr.Dataset]:
        tree = sample_prior(self.model, draws=self.num_simulations, seed=int(self._seeds[0]))
        prior, predictive = (_joined(tree[group].to_dataset()) for group in ("prior", "prior_predictive"))
        # Filled simulation by simulation: it needs the data.
        prior[LIKELIHOOD] = ("sample", np.zeros(prior.sizes["sample"]))
        # A deterministic that depends on nothing sampled is a constant, which has no rank.
        constant = [n for n in self.var_names if bool((prior[n] == prior[n].isel(sample=0)).all()) and n != LIKELIHOOD]
        self.var_names = [name for name in self.var_names if name not in constant]
        self.simulations: Any = {name: [] for name in self.var_names}
        return prior, predictive

    def _get_posterior_samples(self, replicated_data: dict[str, Any]) -> xr.Dataset:
        at = self._simulations_complete
        data = {self.observed_rvs_to_pm_data[name]: values for name, values in replicated_data.items()}
        tree = sample(
            self.model,
            self.compiled.with_data(**data),
            self.settings,
            seed=int(self._seeds[at]),
            progress=False,
            derive=self.derive,
        )
        self.divergent += bool(tree["sample_stats"]["diverging"].any())
        posterior = tree["posterior"].to_dataset()
        posterior[LIKELIHOOD] = self.likelihood(posterior, data)
        free = [v.name for v in self.model.free_RVs]
        truth = self.ref_params.isel(sample=at)[free].reset_coords(drop=True).expand_dims(["chain", "draw"])
        self.ref_params[LIKELIHOOD].values[at] = float(
            self.likelihood(truth.assign_coords(chain=[0], draw=[0]), data).squeeze()
        )
        joined = _joined(posterior)
        kept = np.linspace(0, joined.sizes["sample"] - 1, self.keep).round().astype(int)
        return joined.isel(sample=np.unique(kept))


def _joined(draws: xr.Dataset) -> xr.Dataset:
    return draws.stack(sample=("chain", "draw"), create_index=False)


def _calibration(run: _Sbc, keep: int, seed: int) -> Calibration:
    ranks: xr.Dataset = run.simulations["prior_sbc"].to_dataset()
    rng = np.random.default_rng([seed, 1])
    kept = min(keep, run.settings.draws * run.settings.chains)
    # A rank among L draws has L + 1 values; spread evenly inside its step, it is uniform exactly.
    pit = {
        name: (values.dims, (values.values + rng.uniform(size=values.shape)) / (kept + 1))
        for name, values in ranks.data_vars.items()
    }
    reference = _smallest_tails(rng.uniform(size=(REPLICATES, run.num_simulations)))
    rows = []
    for name, (_, values) in pit.items():
        flat = values.reshape(run.num_simulations, -1)
        labels = _members(run.model, str(name), flat.shape[1])
        truth = run.ref_params[name].transpose("sample", ...).to_numpy().reshape(run.num_simulations, -1)
        for member, column, true in zip(labels, flat.T, truth.T, strict=True):
            # A member that is always the same, such as the only one of a group that is centred, has no rank.
            if np.ptp(true) == 0.0:
                continue
            rows.append(
                {
                    "parameter": str(name),
                    "member": member,
                    "p": band_p(column, reference),
                    "mean_pit": float(column.mean()),
                    "spread_pit": float(column.std() * np.sqrt(12)),
                }
            )
    table = pd.DataFrame(rows)
    table.insert(3, "p_adjusted", holm(table["p"]))
    tree = xr.DataTree.from_dict({"prior_sbc": ranks.assign(pit)})
    return Calibration(tree, table, run.num_simulations, run.divergent)


def _members(model: pm.Model, name: str, count: int) -> list[str]:
    dims = model.named_vars_to_dims.get(name, ())
    axes = [[str(v) for v in model.coords[dim]] for dim in dims if model.coords.get(dim) is not None]
    labels = (
        [", ".join(parts) for parts in np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))]
        if axes
        else []
    )
    return labels if len(labels) == count else [str(at) if count > 1 else "" for at in range(count)]


def band_p(pit: Floats, reference: Floats) -> float:
    """P-value of the simultaneous band of an empirical distribution (Saeilynoja, Buerkner and Vehtari 2022).

    The level of the widest band, of the family of pointwise binomial bands that ArviZ draws, which the distribution
    still leaves.

    Parameters
    ----------
    pit
        Values that should be uniform, (simulation,).
    reference
        `_smallest_tails` of uniform samples of the same size.
    """
    observed = _smallest_tails(np.asarray(pit, dtype=float)[None, :])[0]
    return float((1 + np.sum(reference <= observed)) / (1 + len(reference)))


def _smallest_tails(pit: Floats) -> Floats:
    """Smallest pointwise tail probability of the empirical distribution of each sample (sample, value), (sample,)."""
    n = pit.shape[1]
    points = np.arange(1, n) / n
    found = np.empty(len(pit))
    for start in range(0, len(pit), 1000):
        ordered = np.sort(pit[start : start + 1000], axis=1)
        counts = np.stack([np.searchsorted(row, points, side="right") for row in ordered])
        low = scipy.special.bdtr(counts, n, points)
        high = 1.0 - scipy.special.bdtr(counts - 1.0, n, points)
        found[start : start + 1000] = np.minimum(low, np.where(counts == 0, 1.0, high)).min(axis=1)
    return found
