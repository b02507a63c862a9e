"""`bayesperf.evidence`: runs a JAX function under the profiler, and sets measured beside predicted, by kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesperf.errors import InputError, check_counts
from bayesperf.model import LIMITS
from bayesperf.programs.events import Run
from bayesperf.programs.parts import PARTS, by_name, parts_of
from bayesperf.programs.running import prepared, timed, traced
from bayesperf.workloads.trace import compiled_program, counted

if TYPE_CHECKING:
    from bayesperf.prediction.profile import Profile
    from bayesperf.prediction.program import ProgramPrediction

__all__ = ["Evidence", "attributed", "evidence", "whole_pieces"]

LAUNCH = "launch"
"""Name of the row that holds what a launch costs: dispatch and return."""


@dataclass(frozen=True)
class Evidence:
    """What a profiler saw of a program, beside what was predicted.

    Parameters
    ----------
    workloads
        Its kernels, as `bayesperf.workload` counts them.
    parts
        One row per run, s: `bayesperf.programs.parts.PARTS`, ``measured`` by the host's clock, and ``unattributed``.
    kernels
        One row per run and instruction seen: ``run``, ``instruction``, ``executions``, ``measured_s``.
    untraced_s
        Seconds of runs without the profiler, (run,).
    prediction
        The prediction it is set beside, or None.
    """

    workloads: pd.DataFrame
    parts: pd.DataFrame
    kernels: pd.DataFrame
    untraced_s: np.ndarray
    prediction: ProgramPrediction | None = None

    @property
    def tracing_overhead(self) -> float:
        """How much longer a run took under the profiler, as a share of the time without it (medians)."""
        return float(self.parts["measured"].median() / np.median(self.untraced_s) - 1.0)

    def summary(self, interval: float = 0.9) -> pd.DataFrame:
        """The program in one row.

        Returns
        -------
        DataFrame
            Medians over runs in seconds (``measured_s`` without the profiler, ``traced_s`` with it, one column for each
            part, ``unattributed_s``), ``unattributed_share``, ``tracing_overhead``, and with a prediction its
            ``predicted_s``, ``lower_s``, ``upper_s``, ``ratio`` (measured over predicted), ``verdict``, ``supported``.
        """
        row: dict[str, Any] = {
            "runs": len(self.parts),
            "measured_s": float(np.median(self.untraced_s)),
            "traced_s": float(self.parts["measured"].median()),
            **{f"{part}_s": float(self.parts[part].median()) for part in (*PARTS, "unattributed")},
            "unattributed_share": float((self.parts["unattributed"] / self.parts["measured"]).median()),
            "tracing_overhead": self.tracing_overhead,
        }
        if self.prediction is not None:
            lower, upper = self.prediction.interval(interval).values
            row |= _beside(
                row["measured_s"], float(np.min(self.untraced_s)), self.prediction.draws.values, lower, upper
            )
            row |= {"supported": self.prediction.supported, "interval": interval}
        return pd.DataFrame([row])

    def by_kernel(self, interval: float = 0.9) -> pd.DataFrame:
        """One row per kernel, one for the launch and one for each loop that runs as one piece of code, longest first.

        Compilers may make one piece of code of a small loop: then the trace shows the loop, or the call that it stands
        in, and not its kernels. Its row has the op ``piece`` and is set beside the sum of what was predicted of them.

        Returns
        -------
        DataFrame
            The workload table's columns; ``executions`` seen in a run; ``measured_s``, ``fastest_s`` and ``slowest_s``
            of all executions of one run (median, least and most over runs; NaN: never seen); ``share`` of the measured
            run; and with a prediction ``predicted_s``, ``lower_s``, ``upper_s`` for the same, ``ratio``, ``verdict``
            (``as predicted``, ``slower``, ``faster``), ``limit`` (the most probable) and ``held_back``: that limit
            where the prediction holds, ``interference`` where some run was as fast as predicted and the median was not,
            else ``model``: it is wrong about this kernel.
        """
        seen = self.kernels.groupby("instruction", sort=False)
        measured = pd.DataFrame(
            {
                "executions": seen["executions"].median(),
                "measured_s": seen["measured_s"].median(),
                "fastest_s": seen["measured_s"].min(),
                "slowest_s": seen["measured_s"].max(),
            }
        )
        whole = whole_pieces(self.workloads, measured.index)
        others = [{"op": "piece", "count": 1.0, "instruction": name} for name in whole]
        others.append({"op": "dispatch", "count": 1.0, "instruction": LAUNCH})
        table = pd.concat([self.workloads, pd.DataFrame(others)], ignore_index=True)
        frame = table.merge(measured, how="left", left_on="instruction", right_index=True)
        frame["share"] = frame["measured_s"] / float(self.parts["measured"].median())
        if self.prediction is not None:
            beside = _predicted(self.prediction, measured, interval, whole)
            frame = frame.merge(beside, how="left", on="instruction")
        return frame.sort_values("measured_s", ascending=False, na_position="last").reset_index(drop=True)

    def to_html(self, path: str | Path, name: str, *, interval: float = 0.9) -> None:
        """Write all of this as one self-contained page; see `bayesperf.report.explanation`.

        Parameters
        ----------
        path
            Where.
        name
            What the program is called in it.
        interval
            Probability of its intervals.
        """
        from bayesperf.report.explanation import explanation_page
        from bayesperf.report.page import write_page

        write_page(path, explanation_page(self, name, level=interval))

    @property
    def notes(self) -> list[str]:
        """What the reader must know, in sentences."""
        notes = [*self.workloads.attrs.get("notes", []), *(self.prediction.notes if self.prediction else [])]
        named = self.workloads[self.workloads["op"] != "scalar"]
        whole = whole_pieces(self.workloads, self.kernels["instruction"])
        if whole:
            notes.append(f"run as one piece of code, so that the trace does not show their kernels: {', '.join(whole)}")
            named = named[[not _is_within(path, whole) for path in named["within"]]]
        unseen = sorted(set(named["instruction"]) - set(self.kernels["instruction"]))
        if unseen:
            notes.append(f"the trace does not show: {', '.join(unseen[:8])}{', ...' if len(unseen) > 8 else ''}")
        if self.tracing_overhead > 0.1:
            notes.append(f"the profiler made runs {self.tracing_overhead:.0%} longer: short kernels look too slow")
        return list(dict.fromkeys(notes))


def whole_pieces(workloads: pd.DataFrame, seen: Iterable[str]) -> list[str]:
    """Loops and calls that were seen when none of the kernels in them was; of nested ones the outermost."""
    names = set(seen)
    found: list[str] = []
    paths = [path for path in dict.fromkeys(workloads["within"]) if isinstance(path, str)]
    for path in sorted(paths, key=lambda path: path.count("/")):
        for name in path.split("/"):
            inside = [_is_within(path, [name]) for path in workloads["within"]]
            if name in names and name not in found and not names & set(workloads.loc[inside, "instruction"]):
                found.append(name)
            if name in found:
                break
    return found


def _is_within(path: Any, pieces: Collection[str]) -> bool:
    return isinstance(path, str) and any(name in pieces for name in path.split("/"))


def _predicted(
    prediction: ProgramPrediction, measured: pd.DataFrame, interval: float, whole: Sequence[str]
) -> pd.DataFrame:
    tail = (1.0 - interval) / 2.0
    draws = prediction.kernel_draws.values
    predicted = prediction.by_kernel(interval).to_dict(orient="records")
    columns = [(row["instruction"], draws[:, at], row) for at, row in enumerate(predicted)]
    for name in whole:
        inside = [at for at, row in enumerate(predicted) if _is_within(row.get("within"), [name])]
        if inside:
            longest = max((predicted[at] for at in inside), key=lambda row: row["total_s"])
            columns.append((name, draws[:, inside].sum(axis=1), longest))
    rows = []
    for name, times, row in columns:
        seen = measured.loc[name] if name in measured.index else {"measured_s": np.nan, "fastest_s": np.nan}
        bounds = np.quantile(times, [tail, 1.0 - tail])
        beside = _beside(float(seen["measured_s"]), float(seen["fastest_s"]), times, *bounds)
        limit = max(LIMITS, key=lambda limit: row[f"p_{limit}"])
        rows.append({"instruction": name, **beside, "limit": limit, "held_back": _held_back(beside, limit)})
    # One instruction may be two configurations of a branch; its first row stands for it.
    return pd.DataFrame(rows).drop_duplicates("instruction")


def _beside(measured: float, fastest: float, draws: np.ndarray, lower: float, upper: float) -> dict[str, Any]:
    """A measured time beside a prediction."""
    predicted = float(np.median(draws))
    verdict = "as predicted"
    if np.isnan(measured):
        verdict = "not seen"
    elif measured > upper:
        verdict = "slower"
    elif measured < lower:
        verdict = "faster"
    return {
        "predicted_s": predicted, "lower_s": float(lower), "upper_s": float(upper), "ratio": measured / predicted,
        "verdict": verdict, "disturbed": bool(verdict == "slower" and fastest <= upper),
    }  # fmt: skip


def _held_back(beside: Mapping[str, Any], limit: str) -> str | None:
    if beside["verdict"] == "not seen":
        return None
    if beside["verdict"] == "as predicted":
        return limit
    return "interference" if beside["disturbed"] else "model"


def evidence(
    fn: Callable[..., Any],
    /,
    *args: Any,
    profile: Profile | None = None,
    target: str | None = None,
    runs: int = 10,
    trip_counts: Mapping[str, float] | float | None = None,
    options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Evidence:
    """Run a JAX function under the profiler and attribute its time.

    It is compiled, run `runs` times without the profiler and as often with it, the host waiting for each result.

    Parameters
    ----------
    fn, *args, **kwargs
        As for `bayesperf.workload`. Where an argument is only a shape, data are made up.
    profile, target
        Predict the same program, to be set beside what is measured.
    runs
        How often.
    trip_counts
        As for `bayesperf.workload`.
    options
        Further arguments of `Profile.predict_program`, such as ``campaign``.

    Raises
    ------
    InputError
        The function cannot be compiled or run with these arguments.
    MeasurementError
        The trace holds nothing of the program.
    """
    check_counts(1, runs=runs)
    if target is not None and profile is None:
        raise InputError("target= names what to predict for: give profile= as well")
    program = compiled_program(fn, args, kwargs)
    table = counted(program, trip_counts=trip_counts)
    if not len(table):
        raise InputError(f"{getattr(fn, '__name__', 'the function')} has no kernels: nothing of it runs on a device")
    prediction = profile.predict_program(table, target, **(options or {})) if profile is not None else None
    prepare = prepared(args, kwargs, program.donates)
    untraced = timed(program.call, prepare, runs)
    seconds, seen = traced(program.call, prepare, runs, table.attrs["module"])
    parts, kernels = attributed(table, seconds, seen)
    return Evidence(table, parts, kernels, np.asarray(untraced), prediction)


def attributed(table: pd.DataFrame, seconds: Sequence[float], seen: Sequence[Run]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Parts and kernels of every run, as `Evidence` holds them.

    Parameters
    ----------
    table
        Workloads of the program.
    seconds, seen
        What the host's clock and the trace say of each run, as `bayesperf.programs.running.traced` returns it.
    """
    names = frozenset(table["instruction"])
    pieces = {name for path in table["within"] if isinstance(path, str) for name in path.split("/")}
    parts, kernels = [], []
    for number, (run, measured) in enumerate(zip(seen, seconds, strict=False)):
        if not run.operations:
            continue
        found = parts_of(run, names)
        parts.append({**found, "measured": measured, "unattributed": measured - sum(found.values())})
        launch = {"run": number, "instruction": LAUNCH, "executions": 1}
        kernels.append({**launch, "measured_s": found["dispatch"] + found["return"]})
        for name, (count, total) in by_name(run).items():
            if name in names or name in pieces:
                kernels.append({"run": number, "instruction": name, "executions": count, "measured_s": total})
    return pd.DataFrame(parts), pd.DataFrame(kernels)
