"""The diagnostics gate: whether draws may be trusted, and what to do when not.

Limits are those of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021): rank-normalised R-hat at most 1.01,
bulk and tail effective sample size at least 400; Betancourt (2016): E-BFMI at least 0.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import arviz_stats as azs
import numpy as np
import xarray as xr

__all__ = ["Check", "gate", "passed", "warnings_of"]

MAX_RHAT = 1.01
MIN_ESS = 400.0
MIN_BFMI = 0.3
MAX_DIVERGENT_SHARE = 1e-3


@dataclass(frozen=True)
class Check:
    """One check of the gate.

    Parameters
    ----------
    name
        What was checked.
    value, limit
        What was found at worst, and the limit.
    passed
        Whether the value is inside.
    where
        The variable and member at which the worst value was found, or "".
    remedy
        What to do next when it failed; a warning when it passed but is not perfect; else "".
    """

    name: str
    value: float
    limit: float
    passed: bool
    where: str = ""
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def gate(tree: xr.DataTree, names: Sequence[str]) -> list[Check]:
    """Check the sampled variables `names` of a posterior.

    Returns
    -------
    list of Check
        R-hat, bulk ESS, tail ESS, E-BFMI, divergences, in this order.
    """
    posterior = tree["posterior"].to_dataset()[list(names)]
    # A parameter that never moved has no R-hat: NaN counts as the worst, so 0 / 0 on the way is no news.
    with np.errstate(invalid="ignore", divide="ignore"):
        rhat, rhat_at = _worst(azs.rhat(posterior), largest=True)
        bulk, bulk_at = _worst(azs.ess(posterior, method="bulk"), largest=False)
        tail, tail_at = _worst(azs.ess(posterior, method="tail"), largest=False)
    bfmi = float(np.min(_values(azs.bfmi(tree))))
    divergent = tree["sample_stats"]["diverging"]
    # Of factors sampled one by one, the worst: the others' draws must not dilute its share.
    of_each = divergent.sum(("chain", "draw"))
    more = "sample longer (draws=, tune=), and look at the named parameter: too few rows or conflicting rows inform it"
    return [
        _check("R-hat", rhat, MAX_RHAT, rhat <= MAX_RHAT, rhat_at, f"chains disagree: {more}"),
        _check("bulk ESS", bulk, MIN_ESS, bulk >= MIN_ESS, bulk_at, f"too few independent draws: {more}"),
        _check("tail ESS", tail, MIN_ESS, tail >= MIN_ESS, tail_at, f"interval ends are uncertain: {more}"),
        _check(
            "E-BFMI",
            bfmi,
            MIN_BFMI,
            bfmi >= MIN_BFMI,
            "",
            "energy is explored badly: the tails of some spread parameter are heavy; add rows to small groups",
        ),
        _divergences(int(of_each.max()), divergent.sizes["chain"] * divergent.sizes["draw"]),
    ]


def _check(name: str, value: float, limit: float, ok: bool, where: str, remedy: str) -> Check:
    return Check(name, value, limit, bool(ok), where, "" if ok else remedy)


def _divergences(count: int, draws: int) -> Check:
    limit = np.floor(MAX_DIVERGENT_SHARE * draws)
    remedy = "raise target_accept towards 0.99, and look for rows that contradict each other (unit errors, bimodality)"
    if 0 < count <= limit:
        remedy = f"{count} of {draws} draws diverged: within the limit, but look at the pair plots of spread parameters"
    return Check("divergences", float(count), float(limit), bool(count <= limit), "", "" if count == 0 else remedy)


def _worst(result: Any, *, largest: bool) -> tuple[float, str]:
    worst, where = (-np.inf if largest else np.inf), ""
    for name, values in result.data_vars.items():
        flat = np.asarray(values, dtype=float).ravel()
        # A NaN diagnostic is the worst of all: chains that never moved.
        at = (
            int(np.argmax(np.isnan(flat))) if np.isnan(flat).any() else int(flat.argmax() if largest else flat.argmin())
        )
        value = flat[at]
        if np.isnan(value) or (value > worst if largest else value < worst):
            worst, where = float(value), _member(name, values, at)
        if np.isnan(value):
            break
    return worst, where


def _member(name: Any, values: xr.DataArray, at: int) -> str:
    if not values.dims:
        return str(name)
    index = np.unravel_index(at, values.shape)
    labels = [str(values[dim].values[i]) for dim, i in zip(values.dims, index, strict=True)]
    return f"{name}[{', '.join(labels)}]"


def _values(result: Any) -> Any:
    if isinstance(result, xr.DataTree):
        result = result.to_dataset()
    return np.asarray(result.to_dataarray() if isinstance(result, xr.Dataset) else result, dtype=float)


def passed(checks: Sequence[Check]) -> bool:
    """Whether every check passed."""
    return all(check.passed for check in checks)


def warnings_of(checks: Sequence[Check]) -> list[str]:
    """One sentence per check that failed or passed with a warning."""
    found = []
    for check in checks:
        if check.remedy:
            place = f" at {check.where}" if check.where else ""
            state = "passed" if check.passed else "FAILED"
            found.append(f"{check.name} {state}: {check.value:.5g} (limit {check.limit:.4g}){place}: {check.remedy}")
    return found
