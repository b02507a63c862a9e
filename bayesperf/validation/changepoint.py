"""A sequential test for a change of level in a stream of residuals: the core of the watcher, for many streams at once.

A residual is the log of measured over predicted time. Under the null, with a level x that starts at zero::

    residual_t = x_t + scale_t * t_nu,      x_t = x_(t-1) + N(0, drift^2)

Under the alternative the level jumps once, before row k: to a place drawn around the level reached so far (Laplace,
beyond the tolerance), and goes on drifting from there. Jumps have weights w_k that sum to one over all rows to come,
so the mixture needs no horizon. Its likelihood over the null's is an e-process: under the null it exceeds 1 / alpha at
*any* time with probability at most alpha (Ville 1939; Ramdas, Gruenwald, Vovk and Shafer 2023). Both likelihoods are
integrated over the level on a grid, with the Student-t as it is: a Gaussian filter on Student-t noise raises in every
long run.

A tolerance puts single jumps of up to that size into the null: the null's likelihood is then replaced by an upper
bound of the largest over all such jumps (universal inference: Wasserman, Ramdas and Balakrishnan 2020), which keeps
the promise.

The grid is fine around zero, where drift is followed, and coarsens outward to a factor of twelve; the drift is a
birth-and-death chain on it with the variance of the random walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayesperf.model import Floats

__all__ = ["ChangePoints", "Grid", "Jump", "log_remaining", "make_grid"]

STEP = 0.002
"""Spacing of the grid around zero, in log time: a fifth of a percent."""

CORE, REACH, GROWTH = 0.08, 2.5, 0.08
"""The spacing is `STEP` up to CORE and grows by this share of the distance beyond, up to REACH."""

FLOOR = 2.5
"""Smallest noise scale, in spacings of the core: narrower noise would fall between the nodes of the grid."""

JUMP = 0.2
"""Mean size of a jump beyond the tolerance, in log time."""

ONSET = 20.0
"""Rows over which the weights of jumps start to fall; see `log_remaining`."""

SCALE_START, SCALE_ROWS, SCALE_MEMORY = 2.0, 20.0, 1000.0
"""The noise is rescaled by what is seen. At first its variance is taken this many times as large as predicted (a
profile that promises half the noise would raise otherwise: 8 % of streams against 0.5 %); that counts as so many rows,
and the last so many rows are remembered."""


@dataclass(frozen=True)
class Grid:
    """Levels and how drift moves between them, (node,) each.

    Parameters
    ----------
    nodes, width
        Log levels and the width of each one's cell.
    up, down
        Probability that a step of the random walk leads to the next, and to the previous, node.
    """

    nodes: Floats
    width: Floats
    up: Floats
    down: Floats

    def drifted(self, mass: Floats) -> Floats:
        """One step of drift, (..., node)."""
        moved = mass * self._stay
        moved[..., 1:] += mass[..., :-1] * self.up[:-1]
        moved[..., :-1] += mass[..., 1:] * self.down[1:]
        return moved

    @cached_property
    def _stay(self) -> Floats:
        return np.asarray(1.0 - self.up - self.down)


def make_grid(drift: float) -> Grid:
    """Make the grid for a drift, the standard deviation of one step in log time."""
    # A step of the chain may not be shorter than that of the walk.
    step = max(STEP, drift)
    outer = [CORE]
    while outer[-1] < REACH:
        outer.append(outer[-1] + step + GROWTH * (outer[-1] - CORE))
    inner = np.linspace(0.0, CORE, int(np.ceil(CORE / step)) + 1)
    half = np.concatenate([inner, outer[1:]])
    nodes = np.concatenate([-half[:0:-1], half])
    gap = np.diff(nodes)
    below, above = np.append(np.inf, gap), np.append(gap, np.inf)
    width = np.convolve(np.pad(gap, 1, mode="edge"), [0.5, 0.5], mode="valid")
    up, down = drift**2 / (above * (above + below)), drift**2 / (below * (above + below))
    return Grid(nodes, width, up, down)


def log_remaining(rows: int) -> float:
    """Log of the weight of all jumps after so many rows; the weights are its differences and fall like 1/(k log^2 k).

    They sum to one over all k, and fall as slowly as that allows: a change after a million rows still has 2e-8.
    """
    return float(np.log(np.log(ONSET) / np.log(ONSET + rows)))


def log_weight(row: int) -> float:
    """Log weight of a jump before row `row`, counted from 1."""
    before, after = log_remaining(row - 1), log_remaining(row)
    return before + float(np.log(-np.expm1(after - before)))


@dataclass(frozen=True)
class Jump:
    """Posterior of the jump of one stream, given that there was one.

    Parameters
    ----------
    since
        Row before which the level jumped, counted from 1: 5 %, 50 % and 95 % points.
    size
        Log of the level after over before: the same points.
    """

    since: tuple[int, int, int]
    size: tuple[float, float, float]


class ChangePoints:
    """The test for `runs` streams that advance together.

    Parameters
    ----------
    runs
        How many streams.
    tolerance
        Log size of single jumps that count as nothing.
    drift
        Standard deviation of the level's random walk per row, in log time.
    tail
        Degrees of freedom of the noise.
    blocks
        How many jump times are told apart (they merge beyond); 1 is enough for the e-value, `jump` needs more.
    """

    def __init__(
        self, runs: int = 1, *, tolerance: float = 0.0, drift: float = 3e-4, tail: float = 5.0, blocks: int = 1
    ):
        self.grid, self.tolerance, self.tail = make_grid(drift), tolerance, tail
        self.rows, self.blocks = 0, blocks
        n = len(self.grid.nodes)
        self.floor = FLOOR * float(self.grid.width.min())
        self._null = np.zeros((runs, n))
        self._null[:, n // 2] = 1.0
        self._changed, self._log_changed = np.zeros((runs, 0, n)), np.full(runs, -np.inf)
        self._granted, self._log_granted = np.zeros((runs, n)), np.full(runs, -np.inf)
        self._births: list[tuple[int, int]] = []
        self._before = np.zeros((runs, 0, 2))
        self._square = np.full(runs, SCALE_START)
        nodes, width = self.grid.nodes, self.grid.width
        self._landing = (width * np.exp(-nodes / JUMP), width * np.exp(nodes / JUMP))
        self._windows = _Windows(self.grid, tolerance) if tolerance > 0 else None

    @property
    def log_e(self) -> Floats:
        """Log e-value of every stream, (run,)."""
        numerator = np.logaddexp(self._log_changed, log_remaining(self.rows))
        return np.asarray(numerator - np.maximum(self._log_granted, 0.0))

    @property
    def factor(self) -> Floats:
        """Noise seen over noise predicted, (run,)."""
        return np.asarray(np.sqrt(self._square))

    @property
    def level(self) -> Floats:
        """Posterior mean of the level, jumps included, (run,)."""
        nodes = self.grid.nodes
        steady = self._null @ nodes
        if not self._births:
            return np.asarray(steady)
        share = 1.0 / (1.0 + np.exp(np.clip(log_remaining(self.rows) - self._log_changed, -500, 500)))
        jumped = self._changed.sum(axis=1) @ nodes
        return np.asarray(steady + share * (jumped - steady))

    def step(self, residual: Floats, scale: Floats) -> None:
        """Take one row of every stream.

        Parameters
        ----------
        residual
            Log of measured over predicted time, (run,).
        scale
            Scale of its noise, (run,).
        """
        seen = np.maximum(scale * self.factor, self.floor)
        self._rescale((residual - self.level) / np.maximum(scale, self.floor))
        distance = np.subtract.outer(residual, self.grid.nodes)
        distance *= distance
        distance *= (1.0 / (self.tail * seen**2))[:, None]
        distance += 1.0
        likelihood = _power(distance, 0.5 * (self.tail + 1.0))
        before = self.grid.drifted(self._null)
        null = before * likelihood
        total = null.sum(axis=1)
        self.rows += 1
        self._grant(before, likelihood, total)
        self._jump(before, likelihood, total)
        null /= total[:, None]
        self._null = null

    def _rescale(self, standard: Floats) -> None:
        """Follow the noise's scale by one step of stochastic expectation-maximisation for the Student-t."""
        square = standard**2
        weighted = (self.tail + 1.0) / (self.tail + square / self._square) * square
        memory = SCALE_ROWS + min(self.rows + 1.0, SCALE_MEMORY)
        self._square = np.clip(self._square + (weighted - self._square) / memory, 0.05, 100.0)

    def _jump(self, before: Floats, likelihood: Floats, total: Floats) -> None:
        """Advance the streams that have jumped, and let a share jump before this row."""
        nodes = self.grid.nodes
        centre = before @ nodes
        variance = np.maximum(before @ nodes**2 - centre**2, 0.0)
        landed = self._landed(centre)
        born = log_weight(self.rows)
        top = np.maximum(self._log_changed, born)
        landed *= (np.exp(born - top) / landed.sum(axis=1))[:, None]
        changed = self.grid.drifted(self._changed)
        changed *= np.exp(self._log_changed - top)[:, None, None]
        if self.blocks == 1 and self._births:
            # Nobody asks one block when the jump was.
            changed[:, 0] += landed
        else:
            changed = np.concatenate([changed, landed[:, None]], axis=1)
            self._before = np.concatenate([self._before, np.stack([centre, variance], axis=1)[:, None]], axis=1)
            self._births.append((self.rows, self.rows))
        if len(self._births) > self.blocks:
            changed = self._merged(changed)
        changed *= likelihood[:, None]
        mass = changed.sum(axis=(1, 2))
        changed /= mass[:, None, None]
        self._changed, self._log_changed = changed, top + np.log(mass / total)

    def _landed(self, centre: Floats) -> Floats:
        """Where jumps from `centre` land, (run, node), not normalised: exponential beyond the tolerance, either way."""
        up, down = self._landing
        # exp(-|jump| / JUMP) is the smaller of the two.
        landed = np.minimum(
            np.multiply.outer(np.exp(centre / JUMP), up), np.multiply.outer(np.exp(-centre / JUMP), down)
        )
        if self.tolerance > 0:
            landed *= np.abs(np.subtract.outer(centre, self.grid.nodes)) >= self.tolerance
        return np.asarray(landed)

    def _merged(self, changed: Floats) -> Floats:
        """Join the two neighbouring blocks of jump times that hold least, the latest ones left out.

        Those hold little because few rows have spoken for them yet.
        """
        held = changed.sum(axis=2)
        pair = held[:, :-1] + held[:, 1:]
        at = int(np.argmin(pair[:, : max(1, len(self._births) - 1 - self.blocks // 2)].max(axis=0)))
        share = held[:, at : at + 2] / np.maximum(pair[:, at : at + 1], 1e-300)
        mean, variance = self._before[:, at : at + 2, 0], self._before[:, at : at + 2, 1]
        centre = (share * mean).sum(axis=1)
        spread = (share * (variance + (mean - centre[:, None]) ** 2)).sum(axis=1)
        self._before[:, at] = np.stack([centre, spread], axis=1)
        self._before = np.delete(self._before, at + 1, axis=1)
        self._births[at : at + 2] = [(self._births[at][0], self._births[at + 1][1])]
        changed[:, at] += changed[:, at + 1]
        return np.delete(changed, at + 1, axis=1)

    def _grant(self, before: Floats, likelihood: Floats, total: Floats) -> None:
        """Advance the upper bound of the null's likelihood over jumps up to the tolerance, before any row so far.

        The largest of integrals is at most the integral of the largest: node by node, the larger of having jumped
        earlier and of jumping now from the best node within the tolerance.
        """
        if self._windows is None:
            return
        top = np.maximum(self._log_granted, 0.0)
        earlier = self.grid.drifted(self._granted) * np.exp(self._log_granted - top)[:, None]
        granted = np.maximum(earlier, self._windows.largest(before) * np.exp(-top)[:, None]) * likelihood
        mass = granted.sum(axis=1)
        self._granted, self._log_granted = granted / mass[:, None], top + np.log(mass / total)

    def jump(self, run: int = 0) -> Jump:
        """Posterior of the jump of one stream: when, and by how much."""
        held = self._changed[run]
        by_block = np.cumsum(held.sum(axis=1))
        since = [self._births[min(int(np.searchsorted(by_block, q)), len(by_block) - 1)] for q in (0.05, 0.5, 0.95)]
        mean, spread = self._before[run, :, 0], np.sqrt(self._before[run, :, 1])
        # The level before the jump is normal: three points of Gauss and Hermite carry its spread.
        points = mean[:, None] + spread[:, None] * np.sqrt(3.0) * np.array([-1.0, 0.0, 1.0])
        size = (self.grid.nodes[None, :, None] - points[:, None, :]).ravel()
        weight = (held[:, :, None] * np.array([1.0, 4.0, 1.0]) / 6.0).ravel()
        order = np.argsort(size)
        total = np.cumsum(weight[order])
        low, middle, high = np.interp([0.05, 0.5, 0.95], total, size[order])
        return Jump((since[0][0], since[1][0], since[2][1]), (float(low), float(middle), float(high)))


def _power(base: Floats, exponent: float) -> Floats:
    """base ** -exponent; for small whole exponents, as of five degrees of freedom, without a logarithm."""
    if not (exponent.is_integer() and exponent <= 8):
        return np.asarray(base**-exponent)
    product = base.copy()
    for _ in range(int(exponent) - 1):
        product *= base
    return np.reciprocal(product, out=product)


class _Windows:
    """Largest density within a distance of every node, as mass: a sparse table of maxima over powers of two."""

    def __init__(self, grid: Grid, distance: float):
        self._width = grid.width
        self._low = np.searchsorted(grid.nodes, grid.nodes - distance - 1e-12)
        count = np.searchsorted(grid.nodes, grid.nodes + distance + 1e-12, side="right") - self._low
        self._power = np.frexp(count)[1] - 1
        self._last = self._low + count - 2**self._power

    def largest(self, mass: Floats) -> Floats:
        """Largest density in every node's window times the node's width, (..., node)."""
        # Nodes first: windows then are whole rows of all streams.
        density = np.ascontiguousarray(np.moveaxis(mass / self._width, -1, 0))
        result = np.empty_like(density)
        for power in range(int(self._power.max()) + 1):
            at = np.flatnonzero(self._power == power)
            result[at] = np.maximum(density[self._low[at]], density[self._last[at]])
            step = 2**power
            np.maximum(density[:-step], density[step:], out=density[:-step])
        return np.ascontiguousarray(np.moveaxis(result, 0, -1)) * self._width
