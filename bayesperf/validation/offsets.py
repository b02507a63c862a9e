"""What a stream teaches of the profile's standing errors: parameters, campaign, and the misfit of each configuration.

They do not change along the stream, so a watcher for changes must learn them: a configuration that always takes 8 %
longer than predicted is no change. The state is linear and Gaussian. Shared errors are coordinates on the posterior
draws: with centred draws D (draw, configuration), errors D' theta / sqrt(S - 1), theta ~ N(0, I), have exactly the
draws' covariance. The misfit of each configuration comes beside them. Noise is Student-t: a row far out counts less,
by the weight (nu + 1) / (nu + e^2) of its standardised error e.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from bayesperf.model import Floats

__all__ = ["Offsets"]

MOST = 256
"""Configurations whose own misfit is remembered; the one seen longest ago is forgotten first."""


class Offsets:
    """Filter of the standing errors of log time.

    Parameters
    ----------
    draws
        Posterior draws S of every configuration that will be added.
    """

    def __init__(self, draws: int):
        self._draws = draws
        self._mean, self._covariance = np.zeros(draws), np.eye(draws)
        self._shared: dict[Hashable, Floats] = {}
        self._own: dict[Hashable, None] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._shared

    def add(self, key: Hashable, signal: Floats, misfit: float) -> None:
        """Add a configuration.

        Parameters
        ----------
        key
            Its name.
        signal
            Draws of its log time without noise, (draw,).
        misfit
            Scale of its own misfit.
        """
        self._shared[key] = (signal - signal.mean()) / np.sqrt(max(self._draws - 1, 1))
        if len(self._own) >= MOST:
            self._forget(next(iter(self._own)))
        self._own[key] = None
        self._mean = np.append(self._mean, 0.0)
        self._covariance = np.pad(self._covariance, (0, 1))
        self._covariance[-1, -1] = misfit**2

    def _forget(self, key: Hashable) -> None:
        at = self._draws + list(self._own).index(key)
        self._mean = np.delete(self._mean, at)
        self._covariance = np.delete(np.delete(self._covariance, at, axis=0), at, axis=1)
        del self._own[key], self._shared[key]

    def _row(self, key: Hashable) -> Floats:
        row = np.zeros(len(self._mean))
        row[: self._draws] = self._shared[key]
        row[self._draws + list(self._own).index(key)] = 1.0
        return row

    def predict(self, key: Hashable) -> tuple[float, float]:
        """Mean and variance of a configuration's standing error, given the rows so far."""
        row = self._row(key)
        return float(row @ self._mean), float(row @ self._covariance @ row)

    def learn(self, key: Hashable, error: float, scale: float, tail: float) -> None:
        """Take a row.

        Parameters
        ----------
        key
            Its configuration.
        error
            Log of measured over predicted, less the stream's level.
        scale, tail
            Scale of the row's own noise and its degrees of freedom.
        """
        row = self._row(key)
        toward = self._covariance @ row
        known, surprise = float(row @ toward), error - float(row @ self._mean)
        weight = (tail + 1.0) / (tail + surprise**2 / (known + scale**2))
        gain = toward / (known + scale**2 / weight)
        self._mean = self._mean + gain * surprise
        self._covariance = self._covariance - np.outer(gain, toward)
