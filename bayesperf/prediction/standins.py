"""Which measured operation predicts a kernel whose own family was not measured, and how far that may be off.

Compilers make all kernels of one kind with one generator: a fusion of arithmetic on arrays runs like the probes that
are such fusions, a copy like a copy. Where a target has measurements of the family itself, they are used. Else the
first measured operation of a list stands in: one that runs alike (``near``), or one that only does the same in another
way (``far``): a transposition moves bytes as a copy does, a convolution multiplies as a product does, but nobody
knows how well the library does it. Where nothing stands in, the model draws an operation that it has never seen
(``unknown``). What a kernel costs is then uncertain by a factor, drawn once for all kernels of the family and once for
each configuration:

=========== ====== ====== =======================================================================================
kin         median spread reason
=========== ====== ====== =======================================================================================
``near``    1      0.25   one generator, other instructions: a factor of 1.5 either way (90 %)
``far``     2      0.9    between the rate of vector code and that of scalar code, which is 8 to 32 times slower:
                          0.45 to 9 (90 %)
``unknown`` 4.5    1.5    0.4 to 50 (90 %), on top of the width that the model has for unseen operations:
                          sorts, arg-reductions and depthwise convolutions may be slower by orders of magnitude
=========== ====== ====== =======================================================================================

Assumed, not learned: a suite that measures a family replaces them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["FAR", "NEAR", "Kin", "StandIn", "kin_factors", "stand_in"]

Kin = Literal["measured", "near", "far", "unknown"]

NEAR: dict[str, tuple[str, ...]] = {
    "elementwise": ("fma_chain", "stream_triad", "stream_add", "stream_scale"),
    "matvec": ("stream_read", "matmul"),
    "stream_copy": ("stream_scale", "stream_add", "stream_triad"),
    "reduce": ("stream_read",),
    "reduce_columns": ("reduce", "stream_read"),
    "ppermute": ("send_recv",),
    "send_recv": ("ppermute",),
}
"""Measured operations that run alike, most alike first."""

FAR: dict[str, tuple[str, ...]] = {
    "piecewise": ("fma_chain", "stream_copy"),
    "embedding": ("gather_sequential", "stream_copy"),
    "scatter_rows": ("scatter_sequential", "stream_copy"),
    "transpose": ("strided_read", "stream_copy"),
    "strided_read": ("stream_copy",),
    "layer_norm": ("reduce", "stream_read"),
    "conv2d": ("matmul",),
    "attention": ("matmul",),
}
"""Measured operations that do the same work, in another way."""

FUNCTIONS = ("exp", "tanh", "log", "erf")
"""Measured functions that stand in for others, the first that there is."""

EVALUATING = ("elementwise", "reduce", "reduce_columns")
"""Families whose kernels may evaluate any function, value by value, measured or not."""

DECIDE = 0.05
"""Share of function values (``exp``, ``tanh``, ...) in the flops from which they, and not the arithmetic beside them,
decide how such a kernel runs; assumed: a function takes some twenty times as long as a sum."""

OFFSET: dict[Kin, float] = {"measured": 0.0, "near": 0.0, "far": 0.7, "unknown": 1.5}
SPREAD: dict[Kin, float] = {"measured": 0.0, "near": 0.25, "far": 0.9, "unknown": 1.5}


@dataclass(frozen=True, slots=True)
class StandIn:
    """How a kernel is predicted.

    Parameters
    ----------
    op
        As which operation.
    kin
        How much alike that runs.
    functions
        Whether only its function values count as its flops.
    """

    op: str
    kin: Kin
    functions: bool = False


def stand_in(op: str, share: float, function: str | None, measured: Collection[str]) -> StandIn:
    """The operation to predict `op` as.

    Parameters
    ----------
    op
        Operation family of a kernel.
    share
        Share of function values in its flops.
    function
        The function with most of them, or None.
    measured
        Operations measured on the target.
    """
    evaluates = op in EVALUATING or (op == "softmax" and op not in measured)
    if evaluates and share >= DECIDE and function is not None:
        if function in measured:
            return StandIn(function, "measured", functions=True)
        other = next((name for name in FUNCTIONS if name in measured), None)
        return StandIn(other, "far", functions=True) if other else StandIn(op, "unknown")
    if op in measured:
        return StandIn(op, "measured")
    lists: tuple[tuple[Kin, dict[str, tuple[str, ...]]], ...] = (("near", NEAR), ("far", FAR))
    for kin, table in lists:
        other = next((name for name in table.get(op, ()) if name in measured), None)
        if other is not None:
            return StandIn(other, kin)
    return StandIn(op, "unknown")


def kin_factors(
    families: Sequence[tuple[str, str]], kin: Sequence[Kin], draws: int, seed: int
) -> npt.NDArray[np.float64]:
    """Factors on the times of configurations, (draw, configuration); 1 where the family itself was measured.

    Parameters
    ----------
    families
        Family and stand-in of each configuration: those with the same share half of the variance.
    kin
        How much alike they run.
    draws
        How many draws.
    seed
        The same seed gives the same factors.
    """
    rng = np.random.default_rng((seed, 8))
    common = {family: rng.standard_normal(draws) for family in sorted(set(families))}
    shared = np.stack([common[family] for family in families], axis=1)
    own = rng.standard_normal(shared.shape)
    spread = np.array([SPREAD[each] for each in kin])
    offset = np.array([OFFSET[each] for each in kin])
    return np.asarray(np.exp(offset + spread * (shared + own) * np.sqrt(0.5)))
