"""The one place that talks to a sampler: NUTS by nutpie, and the log densities that checks need."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import nutpie
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr
from pymc.model.transform.conditioning import remove_value_transforms
from pytensor.compile.mode import Mode
from pytensor.graph.replace import vectorize_graph

from bayesperf.errors import InferenceError
from bayesperf.inference.preconditioning import precondition

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "SamplerSettings",
    "compile_model",
    "deriver",
    "free_names",
    "joint_likelihood",
    "log_densities",
    "sample",
    "sample_prior",
]


@dataclass(frozen=True)
class SamplerSettings:
    """Settings of one NUTS run; what the sampler reports back is checked against them.

    Parameters
    ----------
    draws, tune
        Steps after tuning and for it, of each chain.
    chains
        Chains.
    target_accept
        Mean acceptance that the step size is tuned to.
    thin
        Of the draws every so many are kept; statistics of the sampler are of all.
    """

    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    target_accept: float = 0.9
    thin: int = 1


def _plain_mode() -> Mode:
    # Functions that run a few hundred times: compiling them takes longer than running them.
    return Mode("py", "fast_compile")


def _no_compiler() -> Any:
    """Context in which PyTensor builds no C extensions, slow the first time, and needs no compiler."""
    return pytensor.config.change_flags(cxx="")


def free_names(model: pm.Model) -> list[str]:
    """Names of the sampled variables."""
    return [variable.name for variable in model.free_RVs]


def compile_model(model: pm.Model) -> Any:
    """Compile log density and gradient with Numba.

    Takes about half a minute the first time on a machine and ten seconds once its cache is warm, whatever the number of
    rows. JAX would compile in seconds, but a gradient of a small table then takes tens of times longer. What follows
    from the sampled variables is left to `sample`, which computes it for all draws at once.
    """
    with _no_compiler():
        # Imported the first time under a name that is no compiler, it would try to build itself, and say so at length.
        importlib.import_module("pytensor.link.c.cvm")
    # Shapes and starting points need no compiler either; but PyTensor fuses loops for Numba only where it sees a name.
    with pytensor.config.change_flags(mode="FAST_COMPILE", linker="py", cxx="none needed"):
        # Starting values that a model gives are meant: only the others are scattered.
        scattered = {v for v in model.free_RVs if model.rvs_to_initial_values.get(v) is None}
        return nutpie.compile_pymc_model(model, backend="numba", var_names=free_names(model), jitter_rvs=scattered)


def sample(
    model: pm.Model,
    compiled: Any,
    settings: SamplerSettings,
    *,
    seed: int,
    progress: bool,
    cores: int | None = None,
    derive: Callable[[xr.Dataset], xr.Dataset] | None = None,
) -> xr.DataTree:
    """Sample the posterior; a large one in coordinates that a pilot gives, see `preconditioning`.

    Parameters
    ----------
    model, compiled
        The model, and what `compile_model` made of it.
    settings
        Draws, tuning and chains.
    seed
        The same seed gives the same draws.
    progress
        Show nutpie's progress bar.
    cores
        Chains that run at a time; all that the process may use, when None.
    derive
        What `deriver` made of the model, where it is sampled many times; made here when None.

    Returns
    -------
    DataTree
        Groups ``posterior`` and ``sample_stats``, that `to_netcdf` can write.

    Raises
    ------
    InferenceError
        The sampler failed or did not do what it was asked.
    """
    try:
        tree = nutpie.sample(
            precondition(compiled, chains=settings.chains, seed=seed, cores=cores, progress=progress),
            draws=settings.draws,
            tune=settings.tune,
            chains=settings.chains,
            cores=cores,
            seed=seed,
            save_warmup=False,
            progress_bar=progress,
            target_accept=settings.target_accept,
        )
    except (RuntimeError, ValueError) as error:
        raise InferenceError(
            f"the sampler failed: {error}. Look for rows whose times or work are off by orders of magnitude"
        ) from error
    sizes = dict(tree["posterior"].sizes)
    if (sizes.get("chain"), sizes.get("draw")) != (settings.chains, settings.draws):
        raise InferenceError(f"asked for {settings.chains} x {settings.draws} draws, the sampler returned {sizes}")
    stats = tree["sample_stats"].to_dataset()
    # Message objects have no NetCDF type.
    stats = stats.drop_vars([name for name in stats.data_vars if stats[name].dtype == object])
    posterior = tree["posterior"].to_dataset().isel(draw=slice(None, None, settings.thin))
    derived = (derive or deriver(model))(posterior)
    return xr.DataTree.from_dict({"posterior": posterior.merge(derived), "sample_stats": stats})


def deriver(model: pm.Model) -> Callable[[xr.Dataset], xr.Dataset]:
    """Compile what gives the deterministic variables of every draw of the free ones."""
    function = _vectorised(model.free_RVs, model.deterministics)

    def derive(posterior: xr.Dataset) -> xr.Dataset:
        return _labelled(model, model.deterministics, iter(function(posterior)), posterior)

    return derive


def sample_prior(model: pm.Model, *, draws: int, seed: int) -> xr.DataTree:
    """Draw from the prior and the prior predictive: groups ``prior`` and ``prior_predictive``."""
    # PyMC announces every variable that it samples.
    logging.getLogger("pymc.sampling.forward").setLevel(logging.WARNING)
    with model, _no_compiler():
        tree = pm.sample_prior_predictive(
            draws=draws, random_seed=np.random.default_rng(seed), compile_kwargs={"mode": _plain_mode()}
        )
    return xr.DataTree.from_dict({name: tree[name].to_dataset() for name in ("prior", "prior_predictive")})


def log_densities(model: pm.Model, tree: xr.DataTree) -> xr.DataTree:
    """Log likelihood by observation, for LOO, and log prior by member, for prior sensitivity.

    Returns
    -------
    DataTree
        Groups ``log_likelihood`` and ``log_prior``, one array per variable, (chain, draw, ...).
    """
    plain = _without_transforms(model)
    posterior = tree["posterior"].to_dataset()
    groups = {"log_likelihood": plain.observed_RVs, "log_prior": plain.free_RVs}
    terms = [term for variables in groups.values() for term in plain.logp(vars=variables, sum=False)]
    results = iter(_vectorised(plain.value_vars, terms)(posterior))
    return xr.DataTree.from_dict(
        {group: _labelled(model, variables, results, posterior) for group, variables in groups.items()}
    )


def joint_likelihood(model: pm.Model) -> Callable[[xr.Dataset, Mapping[str, Any]], xr.DataArray]:
    """Compile the joint log likelihood of other data, given by the names of the model's `pm.Data`, (chain, draw)."""
    plain = _without_transforms(model)
    function = _vectorised(plain.value_vars, plain.logp(vars=plain.observed_RVs, sum=False))

    def evaluate(posterior: xr.Dataset, data: Mapping[str, Any]) -> xr.DataArray:
        pm.set_data(dict(data), model=plain)
        terms = _labelled(plain, plain.observed_RVs, iter(function(posterior)), posterior)
        return terms.to_stacked_array("term", ["chain", "draw"]).sum("term")

    return evaluate


def _without_transforms(model: pm.Model) -> pm.Model:
    # PyMC copies no model that has starting values, which densities do not depend on.
    values = dict(model.rvs_to_initial_values)
    model.rvs_to_initial_values.update(dict.fromkeys(values))
    try:
        return remove_value_transforms(model)
    finally:
        model.rvs_to_initial_values.update(values)


def _vectorised(variables: Sequence[Any], terms: Sequence[Any]) -> Callable[[xr.Dataset], list[Any]]:
    """Compile `terms` as a function of all draws of `variables` at once: PyMC's own evaluate them one by one."""
    symbols = [pt.tensor(v.name, dtype=v.dtype, shape=(None, *v.type.shape)) for v in variables]
    replaced = vectorize_graph(terms, replace=dict(zip(variables, symbols, strict=True))) if terms else []
    with _no_compiler():
        function = pytensor.function(symbols, replaced, mode=_plain_mode(), on_unused_input="ignore")

    def evaluate(posterior: xr.Dataset) -> list[Any]:
        values = []
        for variable in variables:
            draws = np.asarray(posterior[variable.name].transpose("chain", "draw", ...))
            values.append(draws.reshape(-1, *draws.shape[2:]).astype(variable.dtype))
        return list(function(*values))

    return evaluate


def _labelled(model: pm.Model, variables: Sequence[Any], results: Iterator[Any], posterior: xr.Dataset) -> xr.Dataset:
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    arrays: dict[str, Any] = {}
    used: dict[str, Any] = {dim: posterior[dim].values for dim in ("chain", "draw")}
    for variable in variables:
        name, n_dims = variable.name, variable.ndim
        dims = model.named_vars_to_dims.get(name) or tuple(f"{name}_dim_{axis}" for axis in range(n_dims))
        values = np.asarray(next(results))
        # What does not depend on the draw comes back without its axis.
        member = values.shape[values.ndim - n_dims :]
        values = np.broadcast_to(values, (shape[0] * shape[1], *member))
        arrays[name] = (("chain", "draw", *dims), values.reshape(*shape, *member))
        used |= {dim: list(model.coords[dim]) for dim in dims if dim in model.coords}
    return xr.Dataset(arrays, coords=used)
