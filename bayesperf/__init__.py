"""bayesperf: capability profiles of accelerators with posterior uncertainty.

The public names load on first use, so that ``import bayesperf`` stays under 0.3 s and a measuring host
never imports PyMC, ArviZ or nutpie.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bayesperf.batch.run import batch as batch
    from bayesperf.measure.run import measure as measure
    from bayesperf.prediction.diff import diff as diff
    from bayesperf.prediction.fit import fit as fit
    from bayesperf.prediction.profile import Profile as Profile
    from bayesperf.prediction.profile import load_profile as load_profile
    from bayesperf.programs.evidence import evidence as evidence
    from bayesperf.specs import read_targets as read_targets
    from bayesperf.store import concat as concat
    from bayesperf.store import read_measurements as read_measurements
    from bayesperf.store import write_measurements as write_measurements
    from bayesperf.verification import verify as verify
    from bayesperf.workloads.trace import workload as workload

# name -> where it lives; sub-packages map to themselves.
_LAZY = {
    "measure": "bayesperf.measure",
    "read_measurements": "bayesperf.store:read_measurements",
    "write_measurements": "bayesperf.store:write_measurements",
    "concat": "bayesperf.store:concat",
    "read_targets": "bayesperf.specs:read_targets",
    "fit": "bayesperf.prediction.fit:fit",
    "batch": "bayesperf.batch",
    "diff": "bayesperf.prediction.diff:diff",
    "Profile": "bayesperf.prediction.profile:Profile",
    "load_profile": "bayesperf.prediction.profile:load_profile",
    "verify": "bayesperf.verification:verify",
    "workload": "bayesperf.workloads.trace:workload",
    "evidence": "bayesperf.programs.evidence:evidence",
    "datasets": "bayesperf.datasets",
    "checks": "bayesperf.checks",
}

__all__ = ["__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    try:
        where = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'bayesperf' has no attribute {name!r}") from None
    module, _, attribute = where.partition(":")
    loaded = importlib.import_module(module)
    value = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
