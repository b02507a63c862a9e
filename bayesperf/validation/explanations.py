"""What may have moved where a group fails: the explanations, in words, what to do about each, what tells two apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.model import Floats

__all__ = ["ACTIONS", "SHIFT", "Candidate", "candidates_for", "probes_for", "subsets_of"]

SHIFT = 0.2
"""Standard deviation of a shift, in log time, before anything was seen."""

WIDER = (0.25, 0.5, 1.0)
"""Log factors by which the noise may be wider than predicted, equally probable."""

PRESENT = 0.05
"""Root mean square of a term's sensitivity from which its shift could show in the rows."""

OPERATIONS, SPLITS = 12, 16
"""Operations, the most frequent ones, and cuts of their sizes at which subsets of shapes are tried."""

TERMS = {
    "compute": "compute time",
    "memory": "memory time",
    "overhead": "overhead",
    "communication": "communication time",
    "interference": "interference",
}
"""Words for the shift of each limit."""

ACTIONS = {
    "compute": "check clocks and power caps under load, and the library's version; then fit compute-bound points of "
    "this campaign too",
    "memory": "check the memory's clock and where pages lie, and what else uses the bandwidth; then fit streams of "
    "this campaign too",
    "overhead": "check the driver and the launch path; kernels that are fused are launched less often",
    "communication": "check links, routing and the library's version; then fit collectives of this campaign too",
    "interference": "look for neighbours on the device; measure the same points alone",
    "level": "everything on this target changed by one factor: look for clocks, power caps or a neighbour, and add "
    "this campaign to the fit",
    "noise": "look for what disturbs the machine (`bayesperf doctor`, pinning, an exclusive device): predictions are "
    "right on average, their intervals too narrow. Where a row or two stand out, look at those first, in the report",
    "subset": "another kernel is likely chosen for these shapes: compare the kernels' names (`bayesperf explain`), and "
    "fit some of these shapes",
    "none": "add this campaign to the fit",
    "other": "look at the rows one by one, worst first, in the report: several changes at once, or two modes, look so",
}
"""What someone who can change the machine or the compiler does next, by explanation."""

_SIZES = "the same operation at several sizes, an empty launch among them: overhead does not grow with the work"
_ALONE = "the same points alone and beside a co-runner"
_KERNELS = "aligned against skinny shapes, and the kernels' names: another kernel is chosen for some shapes only"
_REPEATS = "repeats of every configuration in fresh processes: scatter differs between them, a shift does not"
_ROWS = "more held-out rows of all regimes in the same campaign"

_PROBES = (
    ({"compute", "level"}, "short and sustained runs: a clock falls under load, a level does not"),
    ({"memory", "level"}, "a sweep of the working set: what lies in caches shows whether memory alone moved"),
    ({"compute", "memory"}, "an intensity sweep across the ridge"),
    ({"interference"}, _ALONE),
    ({"overhead"}, _SIZES),
    ({"communication"}, "the same message beside and without work, at several sizes"),
    ({"subset"}, _KERNELS),
    ({"noise"}, _REPEATS),
    ({"other"}, _REPEATS),
    ({"none"}, _ROWS),
)
"""Which probe tells two explanations apart: the first whose names are all among the two."""


@dataclass(frozen=True)
class Candidate:
    """One explanation.

    Parameters
    ----------
    kind
        ``none``, a limit's name, ``level``, ``noise``, ``subset`` or ``other``.
    detail
        In words.
    direction
        Shift of the rows' log times per standard deviation of its prior, (row, 0 or 1).
    wider
        Log factor on the scale of the noise.
    own
        Standard deviation of a shift that each row has for itself.
    log_prior
        Log of its weight among the candidates of its kind; every kind weighs the same.
    """

    kind: str
    detail: str
    direction: Floats
    wider: float = 0.0
    own: float = 0.0
    log_prior: float = 0.0


def candidates_for(n: int, shares: Mapping[str, Floats], subsets: Mapping[str, Floats]) -> list[Candidate]:
    """All explanations that `n` rows could show.

    Parameters
    ----------
    n
        Rows.
    shares
        Sensitivity of log time to the log of each term, by limit, (row,) each.
    subsets
        Indicators of subsets of rows, by their description, (row,) each.
    """
    nothing = np.zeros((n, 0))
    found = [Candidate("none", "nothing beyond what campaigns do", nothing)]
    for name, share in shares.items():
        if np.linalg.norm(share) > PRESENT * np.sqrt(n):
            found.append(Candidate(name, TERMS.get(name, name), SHIFT * share[:, None]))
    found.append(Candidate("level", "everything alike", SHIFT * np.ones((n, 1))))
    for wider in WIDER:
        words = f"noise {np.exp(wider):.1f} times as wide"
        found.append(Candidate("noise", words, nothing, wider=wider, log_prior=-np.log(len(WIDER))))
    weight = -np.log(max(len(subsets), 1))
    found += [Candidate("subset", words, SHIFT * rows[:, None], log_prior=weight) for words, rows in subsets.items()]
    # Every row its own shift: a wrong list of explanations must be seen to be wrong.
    found.append(Candidate("other", "no single explanation", nothing, own=SHIFT))
    return found


def subsets_of(table: pd.DataFrame, outside: npt.NDArray[np.bool_] | None = None) -> dict[str, Floats]:
    """Subsets of configurations that a library may serve by another kernel: by operation, by type, by size, by both.

    Parameters
    ----------
    table
        Configurations.
    outside
        Which of them lie outside of what was measured, (row,).
    """
    found: dict[str, npt.NDArray[np.bool_]] = {}
    everything = np.ones(len(table), dtype=bool)
    found |= _cuts("shapes", everything, table)
    ops = table["op"].value_counts(sort=True).index[:OPERATIONS]
    for op in ops if table["op"].nunique() > 1 else ():
        rows = (table["op"] == op).to_numpy()
        found |= {f"{op} only": rows, **_cuts(str(op), rows, table)}
    for dtype in table["dtype"].dropna().unique() if "dtype" in table and table["dtype"].nunique() > 1 else ():
        found[f"{dtype} only"] = (table["dtype"] == dtype).to_numpy()
    if outside is not None:
        found["sizes outside of what was measured"] = outside
    return {words: rows.astype(float) for words, rows in found.items() if 0 < rows.sum() < len(rows)}


def _cuts(words: str, rows: npt.NDArray[np.bool_], table: pd.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
    """Both sides of some cuts of the sizes of `rows`."""
    computes = bool((table["flops"].to_numpy(float)[rows] > 0).all())
    size, unit = table["flops" if computes else "bytes"].to_numpy(float), "FLOP" if computes else "B"
    order = np.unique(size[rows])
    if len(order) < 4:
        return {}
    inner = order[np.unique(np.linspace(0, len(order) - 1, SPLITS + 2).round().astype(int))][1:-1]
    sides = (
        (f"{words} {side} {_amount(cut, unit)}", cut, side == "from") for cut in inner for side in ("from", "below")
    )
    return {name: rows & ((size >= cut) == above) for name, cut, above in sides}


def _amount(value: float, unit: str) -> str:
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def probes_for(kinds: Iterable[str]) -> tuple[str, ...]:
    """Measurements that would tell explanations apart, pair by pair."""
    found: Sequence[str] = [
        next((probe for names, probe in _PROBES if names <= {*pair}), _ROWS)
        for pair in itertools.combinations(kinds, 2)
    ]
    return tuple(dict.fromkeys(found))
