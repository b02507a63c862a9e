"""The one place that talks to a sampler: NUTS by nutpie, and the log densities that checks need."""

from __future__ import annotations

import logging
from collections.abc import Iterator
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

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SamplerSettings", "compile_model", "free_names", "log_densities", "sample", "sample_prior"]


@dataclass(frozen=True)
class SamplerSettings:
    """Settings of one NUTS run; what the sampler reports back is checked against them."""

    draws: int = 1000
    tune: int = 1000
    chains: int = 4
    target_accept: float = 0.9


def _plain_mode() -> Mode:
    # Functions that run a few thousand times: compiling them with Numba takes longer than running them.
    return Mode("py", "fast_compile")


def free_names(model: pm.Model) -> list[str]:
    """Names of the sampled variables."""
    return [variable.name for variable in model.free_RVs]


def compile_model(model: pm.Model) -> Any:
    """Compile log density and gradient with Numba.

    Takes 25 to 50 s the first time on a machine and 10 s once its cache is warm, whatever the number of rows. JAX would
    compile in 2 s, but then takes 0.2 to 0.4 ms a gradient where Numba takes 0.02 (two cores, 17 observations).
    """
    return nutpie.compile_pymc_model(model, backend="numba")


def sample(
    compiled: Any, settings: SamplerSettings, *, seed: int, progress: bool, cores: int | None = None
) -> xr.DataTree:
    """Sample the posterior.

    Parameters
    ----------
    compiled
        From `compile_model`.
    settings
        Draws, tuning and chains.
    seed
        The same seed gives the same draws.
    progress
        Show nutpie's progress bar.
    cores
        Chains that run at a time; all that the process may use, when None.

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
            compiled,
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
    return xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset(), "sample_stats": stats})


def sample_prior(model: pm.Model, *, draws: int, seed: int) -> xr.DataTree:
    """Draw from the prior and the prior predictive: groups ``prior`` and ``prior_predictive``."""
    # PyMC announces every variable that it samples.
    logging.getLogger("pymc.sampling.forward").setLevel(logging.WARNING)
    with model:
        tree = pm.sample_prior_predictive(
            draws=draws, random_seed=np.random.default_rng(seed), compile_kwargs={"mode": _plain_mode()}
        )
    return xr.DataTree.from_dict({name: tree[name].to_dataset() for name in ("prior", "prior_predictive")})


def log_densities(model: pm.Model, tree: xr.DataTree) -> xr.DataTree:
    """Log likelihood by observation, for LOO, and log prior by member, for prior sensitivity.

    All draws are evaluated in one vectorised call; PyMC's own functions evaluate them one by one.

    Returns
    -------
    DataTree
        Groups ``log_likelihood`` and ``log_prior``, one array per variable, (chain, draw, ...).
    """
    plain = remove_value_transforms(model)
    posterior = tree["posterior"].to_dataset()
    batched, values = {}, []
    for variable in plain.value_vars:
        draws = np.asarray(posterior[variable.name].transpose("chain", "draw", ...))
        values.append(draws.reshape(-1, *draws.shape[2:]).astype(variable.dtype))
        batched[variable] = pt.tensor(variable.name, dtype=variable.dtype, shape=(None, *variable.type.shape))
    groups = {"log_likelihood": plain.observed_RVs, "log_prior": plain.free_RVs}
    terms = [plain.logp(vars=variables, sum=False) for variables in groups.values()]
    flat = vectorize_graph([term for group in terms for term in group], replace=batched)
    results = iter(
        pytensor.function(list(batched.values()), flat, mode=_plain_mode(), on_unused_input="ignore")(*values)
    )
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    coords = {dim: posterior[dim].values for dim in ("chain", "draw")}
    return xr.DataTree.from_dict(
        {
            group: _labelled(model, [variable.name for variable in variables], results, shape, coords)
            for group, variables in groups.items()
        }
    )


def _labelled(
    model: pm.Model, names: Sequence[str], results: Iterator[Any], shape: tuple[int, int], coords: dict[str, Any]
) -> xr.Dataset:
    arrays, used = {}, dict(coords)
    for name in names:
        dims = model.named_vars_to_dims.get(name, ())
        values = np.asarray(next(results))
        # A density that does not depend on the draw comes back without its axis.
        member = values.shape[values.ndim - len(dims) :]
        values = np.broadcast_to(values, (shape[0] * shape[1], *member))
        arrays[name] = (("chain", "draw", *dims), values.reshape(*shape, *values.shape[1:]))
        used |= {dim: list(model.coords[dim]) for dim in dims}
    return xr.Dataset(arrays, coords=used)
