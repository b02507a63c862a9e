"""Cold points: what one iteration costs when its data are in no cache.

The caches are flushed before each sample, outside of what is timed, and one round times the same executable twice: with
one iteration, and with none at all. The first run after a flush is an untimed one without iterations, so that the
launch itself is warm in both; their difference is the slope between 0 and 1 iterations after a flush.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from bayesperf.errors import MeasurementError
from bayesperf.measure.sampling import Samples, Timer
from bayesperf.measure.slope import Round, SlopeFit, robust_spread, round_slopes, standard_error
from bayesperf.measure.stopping import StoppingRule

__all__ = ["Flush", "fit_cold", "take_cold_samples"]

RESOLVED = 2.0
"""Standard errors by which a cold time must exceed zero."""


class Flush:
    """Empties the caches of devices by writing more than they hold.

    Parameters
    ----------
    devices
        Each writes its share.
    total_bytes
        Over all devices.
    """

    def __init__(self, devices: Sequence[jax.Device], total_bytes: float):
        elements = max(1, round(total_bytes / len(devices) / 4))
        ones = np.ones(elements, dtype=np.float32)
        self._buffers = [jax.block_until_ready(jax.device_put(ones, device, may_alias=False)) for device in devices]
        # In place: a buffer that is written to a fresh one each time would measure the allocator's caches too.
        self._write = jax.jit(lambda buffer: buffer * np.float32(1.0000001), donate_argnums=0)

    def __call__(self) -> None:
        """Flush, and wait for it."""
        self._buffers = [self._write(buffer) for buffer in self._buffers]
        jax.block_until_ready(self._buffers)

    def release(self) -> None:
        """Give its memory back."""
        for buffer in self._buffers:
            buffer.delete()


def take_cold_samples(
    timer: Timer, flush: Callable[[], Any], rule: StoppingRule, clock: Callable[[], float], *, too_slow_s: float
) -> Samples:
    """Time rounds of 1 and 0 iterations after a flush until `rule` stops.

    Parameters
    ----------
    timer
        Runs and times one count, of none or one.
    flush
        Empties the caches.
    rule, clock
        As for `bayesperf.measure.sampling.take_samples`.
    too_slow_s
        An iteration that takes longer is refused.

    Raises
    ------
    MeasurementError
        ``too-slow``.
    """
    warmup = [(count, timer(count)) for count in (1, 0, 1, 0)]
    if warmup[2][1] > too_slow_s:
        raise MeasurementError(
            "too-slow", f"one iteration takes {warmup[2][1]:.3g} s, the suite allows {too_slow_s:.3g} s"
        )
    rounds: list[Round] = []
    started = clock()
    while True:
        flush()
        timer(0)
        rounds.append(Round((1, 0), (timer(1), timer(0))))
        reason = rule.decide(round_slopes(rounds)[0], clock() - started)
        if reason is not None:
            return Samples(tuple(warmup), tuple(rounds), reason)


def fit_cold(rounds: Sequence[Round]) -> SlopeFit:
    """Time of one cold iteration, and of a launch.

    Raises
    ------
    MeasurementError
        ``unresolved``: the iteration costs no more than launches scatter by.
    """
    slopes, intercepts = round_slopes(rounds)
    slope, error = float(np.median(slopes)), standard_error(slopes)
    if not slope > RESOLVED * error:
        raise MeasurementError(
            "unresolved",
            f"one cold iteration takes {slope:.3g} +- {error:.2g} s, no more than launches scatter by; make it larger",
        )
    spread = robust_spread(slopes)
    outliers = int(np.sum(np.abs(slopes - slope) > 5 * spread)) if spread > 0 else 0
    return SlopeFit(slope, error, float(np.median(intercepts)), standard_error(intercepts), len(rounds), outliers)
