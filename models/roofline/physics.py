"""The physics, written once: the sampler calls it with PyTensor, the predictor with NumPy or JAX.

Functions take the array namespace `xp` first (``pytensor.tensor``, ``numpy`` or ``jax.numpy``) and work on any
number of leading batch axes; the last axis is the row, unless said. All times are logs of seconds.

The roofline is Williams, Waterman and Patterson (2009) with a smooth maximum::

    log t = log( t0 + exp(r) ),   r = (1/q) log( exp(q lc) + exp(q lb) )
    lc = log flops - log compute rate,   lb = log bytes - log bandwidth(working set)
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ABSENT", "smooth_roofline", "term_shares", "unit_location"]

ABSENT = -80.0
"""Log time of a term that is not there (no flops, no bytes): 1e-35 s, below everything."""


def smooth_roofline(xp: Any, compute: Any, memory: Any, overhead: Any, sharpness: Any) -> Any:
    """Log time of a kernel.

    Parameters
    ----------
    xp
        Array namespace.
    compute, memory, overhead
        Log time of each term alone, (..., row); `ABSENT` where there is none.
    sharpness
        log(q - 1), broadcastable to the terms.
    """
    q = 1.0 + xp.exp(sharpness)
    return xp.logaddexp(overhead, xp.logaddexp(q * compute, q * memory) / q)


def term_shares(xp: Any, compute: Any, memory: Any, overhead: Any, sharpness: Any) -> tuple[Any, Any, Any]:
    """Sensitivities of log time to the logs of compute, memory and overhead time; they sum to one."""
    q = 1.0 + xp.exp(sharpness)
    busy = xp.logaddexp(q * compute, q * memory) / q
    total = xp.logaddexp(overhead, busy)
    work = xp.exp(busy - total)
    return work * xp.exp(q * (compute - busy)), work * xp.exp(q * (memory - busy)), xp.exp(overhead - total)


def unit_location(xp: Any, expected: Any, efficiency: Any, log_peak: Any) -> Any:
    """Prior location of a unit's log rate: relative to its peak where one is known.

    Parameters
    ----------
    xp
        Array namespace.
    expected, efficiency
        Log rate expected without a peak, and log attained share of one, (..., unit).
    log_peak
        Log peak, (unit,); NaN where unknown.
    """
    known = np.isfinite(log_peak)
    return xp.where(known, np.where(known, log_peak, 0.0) + efficiency, expected)
