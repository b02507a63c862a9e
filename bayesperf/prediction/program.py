"""The time of a whole program: its kernels' times added draw by draw.

A program is a table of kernels with counts (`bayesperf.workload` makes one). The kernels are predicted together, from
the same draws of the parameters and with one campaign effect, so that what is wrong for one is wrong for the others
like it: the interval of the sum is not the sum of the intervals. What the model gets wrong about one configuration is
drawn once and holds for each of its repeats; different configurations err independently. A run happens in one process
at one moment: what processes have in common across configurations holds for all of its kernels
(`bayesperf.prediction.runs`).

**Launches.** A program is dispatched once, on every platform: its kernels run chained, and what each costs beside its
work is the model's overhead of a chained kernel, not of a launch. Where the host waits for the result
(``launch="wait"``), the dispatch comes first and is added. Where it issues the next program meanwhile (``"queued"``),
the dispatch overlaps with the kernels, and only the longer of the two counts. The host that waits for a long run falls
asleep: waking up costs more than an empty launch shows, and is told by the intercepts of chained measurements. What a
run allocates is part of its launch, where the target's allocations were measured, less what writing the fresh memory
takes: the kernels do that.

**Families that were not measured** are predicted as a measured one that runs alike, or does the same in another way, by
a factor that is drawn (`bayesperf.prediction.standins`). **Threads**: kernels that the compiler cuts into parts run as
on a target of as many devices (`bayesperf.prediction.arrange`).

Kernels that touch scalars alone (``scalar``: counters of loops) take no time of their own: a chained kernel's overhead
is measured in a loop that has them as well.

Collectives are added to the kernels beside which they may run: with overlap, a program is faster than predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from bayesperf.errors import InputError, check_between
from bayesperf.model import LIMITS
from bayesperf.prediction.arrange import Arranged, arrange, checked
from bayesperf.prediction.options import PredictOptions
from bayesperf.prediction.predictive import Prediction, levels_of
from bayesperf.prediction.runs import Moment, Wake, hand_over, moment_of, wake_of
from bayesperf.prediction.standins import kin_factors

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile

__all__ = ["SUPPORTED", "Launch", "ProgramPrediction", "predict_program"]

Launch = Literal["wait", "queued", "none"]

SUPPORTED = 0.95
"""Share of the predicted time, in kernels inside of what was measured, from which a program counts as supported."""

_OWN = (
    *("count", "ratio", "transcendentals", "function", "function_values", "across", "threads", "footprint_bytes"),
    *("instruction", "within", "source", "flags"),
)
"""Columns that do not tell one configuration from another."""


@dataclass(frozen=True, slots=True)
class Run:
    """What all kernels of one run share (`bayesperf.prediction.runs`)."""

    moment: Moment
    wake: Wake | None
    seed: int

    def shared(self, kernels: Prediction) -> npt.NDArray[np.float64]:
        """Times of one execution, (draw, configuration), s, with the shared part of the scatter drawn once for all."""
        parts, draws = kernels.parts, np.asarray(kernels.draws.values, dtype=np.float64)
        if self.moment.sd <= 0.0:
            return draws
        whole = np.hypot(parts.misfit, parts.repeat)
        own = np.sqrt(parts.misfit**2 + np.maximum(parts.repeat**2 - self.moment.sd**2, 0.0))
        noise = (np.log(draws) - parts.log_time) * np.divide(own, whole, out=np.ones_like(whole), where=whole > 0)
        return np.asarray(np.exp(parts.log_time + noise + self.moment.draws(len(draws), self.seed)[:, None]))

    def waking(self, launch: npt.NDArray[np.float64], busy: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | float:
        """What waiting for the result adds to the launch, (draw,), s."""
        return self.wake.beyond(launch, busy, self.seed) if self.wake is not None else 0.0


class ProgramPrediction:
    """Predictive distribution of the time of one run of a program, in seconds.

    Named dims as in `bayesperf.prediction.predictive.Prediction`: ``draw``, ``quantile``, ``bound``, ``limit``,
    ``kernel`` (position in the table given; the launch, if there is one, is the last).
    """

    def __init__(
        self,
        arranged: Arranged,
        kernels: Prediction,
        configuration: npt.NDArray[np.intp],
        factors: npt.NDArray[np.float64],
        *,
        run: Run,
        queued: bool,
        notes: Sequence[str],
    ):
        self.table, self.kernels, self.notes = arranged.table, kernels, tuple(notes)
        self.target = str(arranged.rows["target"].iloc[-1])
        shown = len(arranged.table)
        self._configuration, self._launched = configuration[:shown], bool(arranged.launch)
        kin = np.array(arranged.kin[:shown])
        # Sizes of an operation that was never measured can be compared, what kind of kernel it is cannot.
        self._unmeasured = (kin == "far") | (kin == "unknown")
        self._inside = kernels.support.inside[self._configuration] & ~self._unmeasured
        times = run.shared(kernels)[:, configuration] * factors
        if self._launched:
            times[:, shown - 1] = _launch_times(times[:, shown - 1 :], arranged)
        if "threads" in arranged.table:
            cut = (arranged.table["threads"] > 1).to_numpy()
            times[:, :shown][:, cut] += hand_over(len(times), run.seed)[:, None]
        self._rows = times[:, :shown] * arranged.table["count"].to_numpy(float)
        if self._launched and not queued:
            self._rows[:, -1] += run.waking(self._rows[:, -1], self._rows[:, :-1].sum(axis=1))
        self._weights = np.ones_like(self._rows)
        if self._launched and queued:
            busy = self._rows[:, :-1].sum(axis=1) >= self._rows[:, -1]
            self._weights[:, :-1], self._weights[:, -1] = busy[:, None], ~busy
        self._draws = (self._rows * self._weights).sum(axis=1)

    @property
    def draws(self) -> xr.DataArray:
        """Times of one run, (draw,), s."""
        return xr.DataArray(self._draws, dims=("draw",), attrs={"units": "s"})

    @property
    def kernel_draws(self) -> xr.DataArray:
        """Time of each kernel, all its executions together, (draw, kernel), s."""
        return xr.DataArray(self._rows, dims=("draw", "kernel"), attrs={"units": "s"})

    def median(self) -> xr.DataArray:
        """Predictive median, a scalar, s."""
        return xr.DataArray(np.median(self._draws), attrs={"units": "s"})

    def quantile(self, q: float | Sequence[float]) -> xr.DataArray:
        """Predictive quantiles, (quantile,), or a scalar for a single one, s."""
        levels = levels_of(q)
        values = np.quantile(self._draws, levels)
        if levels.ndim == 0:
            return xr.DataArray(values, attrs={"units": "s"})
        return xr.DataArray(values, dims=("quantile",), coords={"quantile": levels}, attrs={"units": "s"})

    def interval(self, probability: float = 0.9) -> xr.DataArray:
        """Equal-tailed predictive interval, (bound,) with bounds ``lower`` and ``upper``, s."""
        check_between(0, 1, interval=probability)
        tail = (1.0 - probability) / 2.0
        values = np.quantile(self._draws, [tail, 1.0 - tail])
        attrs = {"units": "s", "probability": probability}
        return xr.DataArray(values, dims=("bound",), coords={"bound": ["lower", "upper"]}, attrs=attrs)

    def cdf(self, time_s: float) -> float:
        """Probability that a run takes at most `time_s`."""
        return float((self._draws <= float(time_s)).mean())

    @property
    def shares(self) -> xr.DataArray:
        """Mean share of each kernel in the time of a run, (kernel,); they sum to 1."""
        return xr.DataArray((self._rows * self._weights / self._draws[:, None]).mean(axis=0), dims=("kernel",))

    @property
    def limits(self) -> xr.DataArray:
        """Share of the run's time that is bound by each limit, (limit,); they sum to 1."""
        names = [name for name in LIMITS if name in self.kernels.parts.terms]
        largest = np.argmax(np.stack([self.kernels.parts.terms[name] for name in names]), axis=0)
        largest = largest[:, self._configuration]
        if self._launched:
            # Whatever a launch waits for, dispatch or fresh pages: it is what a run costs beside its kernels.
            largest[:, -1] = names.index("overhead") if "overhead" in names else largest[:, -1]
        share = self._rows * self._weights / self._draws[:, None]
        values = np.zeros(len(LIMITS))
        for at, name in enumerate(names):
            values[LIMITS.index(name)] = (share * (largest == at)).sum(axis=1).mean()
        return xr.DataArray(values, dims=("limit",), coords={"limit": list(LIMITS)})

    @property
    def supported_share(self) -> float:
        """Share of the predicted time in kernels that lie inside of what was measured of the target.

        Outside are those of an operation that was never measured on it, and has no stand-in, too.
        """
        return float(self.shares.values[self._inside].sum())

    @property
    def supported(self) -> bool:
        """Whether `supported_share` is at least `SUPPORTED`."""
        return self.supported_share >= SUPPORTED

    def by_kernel(self, interval: float = 0.9) -> pd.DataFrame:
        """One row per kernel, and one for the launch.

        Returns
        -------
        DataFrame
            The table's columns; ``predicted_as`` (the measured operation that stands in for it, where its own was not
            measured); the prediction's columns for **one** execution, as `Prediction.to_frame` has them;
            ``total_s`` (median time of all its executions) and ``share`` of the run's time.
        """
        frame = self.kernels.to_frame(interval).iloc[self._configuration].reset_index(drop=True)
        once = self._rows / self.table["count"].to_numpy(float)
        tail = (1.0 - interval) / 2.0
        frame[["lower_s", "median_s", "upper_s"]] = np.quantile(once, [tail, 0.5, 1.0 - tail], axis=0).T
        if self._launched:
            frame.loc[frame.index[-1], [f"p_{name}" for name in LIMITS]] = [float(n == "overhead") for n in LIMITS]
        frame["supported"] = self._inside
        features = frame["unsupported_features"].astype(object)
        frame["unsupported_features"] = features.where(~self._unmeasured, ("op+" + features).str.rstrip("+"))
        new = [name for name in frame.columns if name not in self.table or name == "interval"]
        return self.table.drop(columns="interval", errors="ignore").assign(
            predicted_as=frame["op"].to_numpy(),
            **{name: frame[name].to_numpy() for name in new if name != "statistic"},
            total_s=np.median(self._rows, axis=0),
            share=self.shares.values,
        )

    def to_frame(self, interval: float = 0.9) -> pd.DataFrame:
        """The program in one row: the contract's columns of a prediction, ``supported_share`` and how many kernels."""
        bounds, limits = self.interval(interval).values, self.limits.values
        kernels = self.table.iloc[:-1] if self._launched else self.table
        executed = kernels["count"]
        row: dict[str, Any] = {
            "target": self.target,
            "kernels": len(kernels),
            "executions": float(executed.sum()),
            "flops": float((kernels["flops"] * executed).sum()),
            "bytes": float((kernels["bytes"] * executed).sum()),
            "median_s": float(self.median()),
            "lower_s": float(bounds[0]),
            "upper_s": float(bounds[1]),
            "interval": interval,
            **{f"p_{name}": float(value) for name, value in zip(LIMITS, limits, strict=True)},
            "supported": self.supported,
            "supported_share": self.supported_share,
        }
        return pd.DataFrame([row])


def _launch_times(parts: npt.NDArray[np.float64], arranged: Arranged) -> npt.NDArray[np.float64]:
    """Times of a launch, (draw,), from those of its parts, (draw, part): the first, and what each buffer adds to it."""
    base, written = parts[:, :1], parts[:, 1:]
    if not written.shape[1]:
        return base[:, 0]
    buffers = arranged.rows.iloc[-written.shape[1] :]
    more = (buffers["ratio"].to_numpy(float) - 1.0) * base - written
    return np.asarray(base[:, 0] + (buffers["count"].to_numpy(float) * np.maximum(more, 0.0)).sum(axis=1))


def predict_program(
    profile: Profile,
    workloads: pd.DataFrame,
    target: str | None = None,
    *,
    launch: Launch = "wait",
    **options: Unpack[PredictOptions],
) -> ProgramPrediction:
    """Predict the time of a program; see `bayesperf.Profile.predict_program`."""
    if launch not in get_args(Launch):
        raise InputError(f"launch is one of {', '.join(get_args(Launch))}, not {launch!r}")
    table = checked(workloads)
    target = profile.one_target(table if len(table) else pd.DataFrame({"op": ["dispatch"]}), target)
    arranged = arrange(profile, table, target, launched=launch != "none")
    rows = arranged.rows
    keys = [name for name in rows.columns if name not in _OWN]
    together = rows.assign(kin=arranged.kin, family=[old for old, _ in arranged.families])
    configuration = (
        together.groupby([*keys, "kin", "family"], dropna=False, sort=False).ngroup().to_numpy().astype(np.intp)
    )
    first = np.unique(configuration, return_index=True)[1]
    kernels = profile.predict(rows.iloc[first][keys].reset_index(drop=True), **options)
    families, kin = [arranged.families[at] for at in first], [arranged.kin[at] for at in first]
    seed = int(options.get("seed", 0))
    factors = kin_factors(families, kin, kernels.draws.shape[0], seed)
    run = Run(moment_of(profile.table), wake_of(profile.table, target), seed)
    return ProgramPrediction(
        arranged, kernels, configuration, factors[:, configuration], run=run,
        queued=launch == "queued", notes=[*kernels.notes, *arranged.notes, *_notes(table)],
    )  # fmt: skip


def _notes(table: pd.DataFrame) -> list[str]:
    notes = list(table.attrs.get("notes", []))
    check = table.attrs.get("cross_check", {})
    if check.get("explained") is False:
        notes.append(f"counts differ from XLA's cost analysis (ratio {check['flops_ratio']:.3g}) for no known reason")
    if "message_bytes" in table and table["message_bytes"].notna().any():
        notes.append("collectives are added to the kernels: what runs beside them makes a program faster")
    return notes
