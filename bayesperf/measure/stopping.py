"""When a point has been sampled enough: an interface, and the rule that is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bayesperf.measure.slope import standard_error

__all__ = ["StandardRule", "StoppingRule"]


class StoppingRule(Protocol):
    """Decides after each round whether to stop."""

    def decide(self, slopes: np.ndarray, elapsed_s: float) -> str | None:
        """Reason to stop, or None to go on.

        Parameters
        ----------
        slopes
            Slopes of the rounds so far in s, shape (rounds,).
        elapsed_s
            Seconds since the first round began.
        """
        ...


@dataclass(frozen=True, slots=True)
class StandardRule:
    """Stops at the first of four reasons.

    Parameters
    ----------
    target
        ``target-error``: relative standard error of the slope, default 1 %.
    least
        Rounds before any reason but an overspent budget counts, default 5.
    budget_s
        ``time-budget``: seconds; at twice the budget three rounds are enough.
    most
        ``max-rounds``: rounds, default 200.
    plateau
        ``plateau``: rounds over which the relative error has not shrunk by a tenth, default 12.
    """

    target: float = 0.01
    least: int = 5
    budget_s: float = 0.3
    most: int = 200
    plateau: int = 12

    def decide(self, slopes: np.ndarray, elapsed_s: float) -> str | None:
        """Reason to stop, or None to go on."""
        count = len(slopes)
        if count >= 3 and elapsed_s >= 2 * self.budget_s:
            return "time-budget"
        if count < self.least:
            return None
        error = _relative_error(slopes)
        if error <= self.target:
            return "target-error"
        if elapsed_s >= self.budget_s:
            return "time-budget"
        if count >= self.most:
            return "max-rounds"
        if count >= self.least + self.plateau and error > 0.9 * _relative_error(slopes[: -self.plateau]):
            return "plateau"
        return None


def _relative_error(slopes: np.ndarray) -> float:
    middle = abs(float(np.median(slopes)))
    return standard_error(slopes) / middle if middle > 0 else np.inf
