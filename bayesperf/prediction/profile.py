"""A profile: the posterior of a table of measurements, and all that is asked of it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd
import xarray as xr

from bayesperf.errors import InputError, UnconvergedError, check_between, check_counts
from bayesperf.inference.diagnostics import Check, passed, warnings_of
from bayesperf.inference.infer import Inference
from bayesperf.model import Draws, PerformanceModel
from bayesperf.prediction.options import PredictOptions, request_of
from bayesperf.prediction.predictive import Prediction
from bayesperf.prediction.room import draws_in, refuse_beyond_memory
from bayesperf.prediction.support import Reach, reach_of, support_of, unseen_operations
from bayesperf.schema import validate_workloads
from bayesperf.specs import check_targets

if TYPE_CHECKING:
    from bayesperf.prediction.chunks import FrameOptions
    from bayesperf.prediction.compare import CompareOptions, Comparison
    from bayesperf.prediction.predictor import Predictor, PredictorOptions
    from bayesperf.prediction.program import Launch, ProgramPrediction
    from bayesperf.prediction.update import UpdateOptions
    from bayesperf.validation.result import Validation
    from bayesperf.validation.watcher import Watcher, WatchOptions

__all__ = ["LEARNED", "Profile", "Workloads", "frame_of", "load_profile"]

Workloads = pd.DataFrame | pd.Series | Mapping[str, Any] | Iterable[Mapping[str, Any] | pd.Series]
"""A table, one workload as a mapping or a row of a table, or several."""

LEARNED = 0.5
"""Contraction from which a parameter counts as learned from the table; below it is the prior that speaks."""

KNOWN = 3.0
"""Largest ratio of the ends of a learned parameter's 90 % interval: from a vague prior, contraction alone is cheap."""


class Profile:
    """Posterior of the parameters of every target in a table.

    Made by `bayesperf.fit` or `load_profile`, not by hand.
    """

    def __init__(self, inference: Inference):
        self.inference = inference
        self._drawn: dict[tuple[str, int | None], Draws] = {}

    @property
    def tree(self) -> xr.DataTree:
        """ArviZ's groups: posterior, sample_stats, prior, prior_predictive, log_likelihood, log_prior, ..."""
        return self.inference.tree

    @property
    def table(self) -> pd.DataFrame:
        """The fitted rows, without their raw samples."""
        return self.inference.rows

    @property
    def spec_sheets(self) -> pd.DataFrame | None:
        """Spec sheets that served as priors."""
        return self.inference.targets

    @property
    def targets(self) -> list[str]:
        """Measured targets."""
        return sorted(self.table["target"].unique())

    @property
    def model(self) -> PerformanceModel:
        """The model that was fitted."""
        return self.inference.model

    @property
    def model_name(self) -> str:
        """Its registered name."""
        return self.model.name

    @functools.cached_property
    def reach(self) -> dict[str, Reach]:
        """What was measured of every target."""
        return reach_of(self.table)

    @property
    def gate(self) -> list[Check]:
        """The diagnostics gate, check by check."""
        return self.inference.checks

    @property
    def converged(self) -> bool:
        """Whether every check of the gate passed."""
        return passed(self.gate)

    @property
    def facts(self) -> dict[str, Any]:
        """Versions, seed, sampler settings, data fingerprint, effective numbers, what was left out, caveats."""
        return self.inference.facts

    def draws(self, group: str = "posterior", limit: int | None = None) -> Draws:
        """Draws by variable, chains joined, first axis the draw.

        Parameters
        ----------
        group
            ``posterior`` or ``prior``.
        limit
            At most so many, evenly spaced over all; every one when None.

        Returns
        -------
        mapping
            Read-only arrays, kept for the next call.
        """
        # Stacking the chains takes longer than predicting one workload.
        if (group, limit) not in self._drawn:
            self._drawn[group, limit] = self._stacked(group, limit)
        return self._drawn[group, limit]

    def _stacked(self, group: str, limit: int | None) -> Draws:
        data = self.tree[group].to_dataset().transpose("chain", "draw", ...)
        n = data.sizes["chain"] * data.sizes["draw"]
        chosen = np.arange(n) if limit is None or limit >= n else np.linspace(0, n - 1, limit).round().astype(int)
        joined = {str(name): v.to_numpy().reshape(n, *v.shape[2:]) for name, v in data.data_vars.items()}
        found = {name: np.asarray(values[chosen], dtype=float) for name, values in joined.items()}
        for values in found.values():
            values.setflags(write=False)
        return found

    def parameters(self, interval: float = 0.9) -> pd.DataFrame:
        """Named parameters with their posterior, their prior and what was learned.

        Returns
        -------
        DataFrame
            One row per parameter: parameter, target, label, unit, median, lower, upper, prior_median, prior_lower,
            prior_upper, contraction (1 - Var_post / Var_prior of the logs), learned
            (contraction of at least `LEARNED` and a 90 % interval within a factor of `KNOWN`), evidence (measurement
            ids).

        Raises
        ------
        InputError
            The interval's probability is not between 0 and 1.
        """
        check_between(0, 1, interval=interval)
        tail = (1 - interval) / 2
        levels = [0.5, tail, 1 - tail]
        observed = self.model.observations(self.inference.encoded)["measurement_ids"]
        posterior = self.model.quantities(self.inference.encoded, self.draws())
        prior = self.model.quantities(self.inference.encoded, self.draws("prior"))
        rows = []
        for after, before in zip(posterior, prior, strict=True):
            shrunk = 1.0 - float(np.var(np.log(after.draws)) / np.var(np.log(before.draws)))
            median, lower, upper, low, high = np.quantile(after.draws, [*levels, 0.05, 0.95])
            prior_median, prior_lower, prior_upper = np.quantile(before.draws, levels)
            rows.append(
                {
                    "parameter": after.name,
                    "target": after.target,
                    "label": after.label,
                    "unit": after.unit,
                    "median": median,
                    "lower": lower,
                    "upper": upper,
                    "prior_median": prior_median,
                    "prior_lower": prior_lower,
                    "prior_upper": prior_upper,
                    "contraction": shrunk,
                    "learned": shrunk >= LEARNED and high <= KNOWN * low,
                    "evidence": [name for at in after.rows for name in observed.iloc[at]],
                }
            )
        return pd.DataFrame(rows)

    def predict(
        self,
        workloads: Workloads,
        target: str | None = None,
        *,
        campaign: str | None = None,
        stack: str | None = None,
        mean: bool = False,
        draws: int = 1000,
        seed: int = 0,
        targets: pd.DataFrame | None = None,
        allow_unconverged: bool = False,
    ) -> Prediction:
        """Predict the time of workloads.

        Parameters
        ----------
        workloads
            Columns ``op``, ``flops``, ``bytes``, and whatever else the contract names; one mapping is one workload.
        target
            For all workloads; else their own ``target`` column, else the only target of the profile.
        campaign
            A measured campaign; a fresh one when None.
        stack
            A software stack; the measured one when None.
        mean
            Predict the mean over campaigns.
        draws
            How many draws.
        seed
            The same seed gives the same draws.
        targets
            Further spec sheets, for targets that were not measured.
        allow_unconverged
            Predict although the diagnostics gate failed.

        Raises
        ------
        UnconvergedError
            The gate failed, and nobody opted in.
        UnknownNameError
            A target neither measured nor with a spec sheet, or a campaign that was not measured.
        TableError
            A workload lacks a required column or has a bad value.
        """
        self.refuse_unconverged(allow_unconverged)
        check_counts(1, draws=draws)
        check_counts(0, seed=seed)
        request = request_of(campaign, stack, mean)
        table = self._with_target(validate_workloads(frame_of(workloads)), target)
        rng = np.random.default_rng(seed)
        posterior = self.draws(limit=draws)
        refuse_beyond_memory(
            len(table) * draws_in(posterior), "use predict_frame, which keeps summaries only, or fewer draws"
        )
        predicted = self.model.predict(
            self.inference.encoded,
            posterior,
            table,
            request,
            self.sheets_with(targets),
            rng,
        )
        notes = (*predicted.notes, *unseen_operations(self.reach, table), *self._alone(table))
        return Prediction(table, replace(predicted, notes=notes), support_of(self.reach, table), rng)

    def _alone(self, table: pd.DataFrame) -> list[str]:
        if self.model.predicts_corunners or "corunners" not in table or table["corunners"].isna().all():
            return []
        return [f"model {self.model_name} does not predict co-runners: times are those of work that runs alone"]

    def predict_program(
        self,
        workloads: pd.DataFrame,
        target: str | None = None,
        *,
        launch: Launch = "wait",
        **options: Unpack[PredictOptions],
    ) -> ProgramPrediction:
        """Predict the time of one run of a program, all of its kernels together.

        Parameters
        ----------
        workloads
            Its kernels, as `bayesperf.workload` makes them: workload columns, and ``count`` (1 where absent).
        target
            Where it runs; else the table's ``target`` column, else the only target of the profile.
        launch
            ``wait``: the host dispatches the program and waits for its result; ``queued``: it issues the next one
            meanwhile, so that dispatch overlaps with the kernels; ``none``: the kernels alone.
        **options
            As for `predict`: campaign, stack, mean, draws, seed, targets, allow_unconverged.

        Raises
        ------
        InputError
            A kernel whose ``count`` is not known, or several targets.
        UnconvergedError, UnknownNameError, TableError
            As for `predict`.
        """
        from bayesperf.prediction.program import predict_program

        return predict_program(self, workloads, target, launch=launch, **options)

    def one_target(self, workloads: pd.DataFrame, target: str | None = None) -> str:
        """The target that all of `workloads` run on.

        Raises
        ------
        InputError
            They name several, or none where the profile has several.
        """
        named = [str(name) for name in self._with_target(workloads, target)["target"].unique()]
        if len(named) > 1:
            raise InputError(f"a program runs on one target, the table names {', '.join(named)}: pass target=")
        return named[0]

    def refuse_unconverged(self, allowed: bool) -> None:
        """Raise UnconvergedError where the diagnostics gate failed, unless that is `allowed`."""
        if not (self.converged or allowed):
            reasons = "; ".join(warnings_of([check for check in self.gate if not check.passed]))
            raise UnconvergedError(
                f"this profile is unconverged: {reasons}. To see its draws, pass allow_unconverged=True "
                "(--allow-unconverged)"
            )

    def _with_target(self, table: pd.DataFrame, target: str | None) -> pd.DataFrame:
        if target is not None:
            if not isinstance(target, str):
                raise InputError(f"one target is given by its name, not by {target!r}")
            return table.assign(target=target)
        named = table["target"].notna() if "target" in table else pd.Series([False] * len(table))
        if named.all():
            return table
        if len(self.targets) > 1:
            at = f" of row {int(np.flatnonzero(~named)[0])}" if named.any() else ""
            raise InputError(f"which target{at}? Name one (target=, --target, or a column): {', '.join(self.targets)}")
        only = self.targets[0]
        return table.assign(target=table["target"].where(named, only) if "target" in table else only)

    def sheets_with(self, targets: pd.DataFrame | None) -> pd.DataFrame | None:
        """Spec sheets of the fit and, for devices that it lacks, those given."""
        targets = None if targets is None else check_targets(targets)
        if targets is None or self.spec_sheets is None:
            return self.spec_sheets if targets is None else targets
        return pd.concat([self.spec_sheets, targets[~targets.index.isin(self.spec_sheets.index)]])

    def validate(
        self, heldout: pd.DataFrame, *, tolerance: float = 0.1, alpha: float = 0.05, seed: int = 0
    ) -> Validation:
        """Compare held-out measurements with their predictions, by regime; see `bayesperf.validation.validate`."""
        from bayesperf.validation.validate import validate_profile

        return validate_profile(self, heldout, tolerance=tolerance, alpha=alpha, seed=seed)

    def update(self, rows: pd.DataFrame, **options: Unpack[UpdateOptions]) -> Profile:
        """Condition it on a few new rows without a full fit; see `bayesperf.prediction.update.update`."""
        from bayesperf.prediction.update import update

        return update(self, rows, **options)

    def watch(self, target: str | None = None, **options: Unpack[WatchOptions]) -> Watcher:
        """Watch a stream of measurements of a target for a change; see `bayesperf.validation.watcher.watch`."""
        from bayesperf.validation.watcher import watch

        return watch(self, target, **options)

    def compare(self, targets: Sequence[str], workloads: Workloads, **options: Unpack[CompareOptions]) -> Comparison:
        """Compare targets on the same workloads; see `bayesperf.prediction.compare.compare`."""
        from bayesperf.prediction.compare import compare

        return compare(self, targets, workloads, **options)

    def predictor(self, target: str | None = None, **options: Unpack[PredictorOptions]) -> Predictor:
        """Prepare predictions for a target, compiled by JAX; see `bayesperf.prediction.predictor.Predictor`."""
        from bayesperf.prediction.predictor import Predictor

        return Predictor(self, target, **options)

    def predict_frame(
        self, workloads: Workloads, target: str | None = None, **options: Unpack[FrameOptions]
    ) -> pd.DataFrame:
        """Predict any number of workloads in bounded memory; see `bayesperf.prediction.chunks.predict_frame`."""
        from bayesperf.prediction.chunks import predict_frame

        return predict_frame(self, workloads, target, **options)

    def save(self, path: str | Path) -> None:
        """Write the profile as one NetCDF file that ArviZ opens, atomically."""
        from bayesperf.prediction.files import write_profile

        write_profile(self.inference, Path(path))


def frame_of(workloads: Workloads) -> pd.DataFrame:
    """Workloads (or measurements) as a table: a DataFrame as it is, a mapping or Series as one row, a list as several.

    Raises
    ------
    InputError
        It is none of these.
    """
    if isinstance(workloads, pd.DataFrame):
        return workloads
    rows = [workloads] if isinstance(workloads, Mapping | pd.Series) else workloads
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise InputError(f"workloads are a DataFrame, a mapping, or a list of mappings, not {type(rows).__name__}")
    # A row of a table, as `iterrows` gives it, is a mapping of its columns.
    rows = [row.to_dict() if isinstance(row, pd.Series) else row for row in rows]
    if not all(isinstance(row, Mapping) for row in rows):
        raise InputError("each workload is a mapping such as {'op': 'matmul', 'flops': 1e9, 'bytes': 1e6}")
    try:
        return pd.DataFrame(rows)
    except UnicodeError as error:
        raise InputError(f"a workload holds text that is no valid Unicode: {error}") from error


def load_profile(path: str | Path) -> Profile:
    """Read a profile that `Profile.save` wrote.

    Raises
    ------
    UnsupportedFileError
        Foreign, truncated, or of a newer version.
    """
    from bayesperf.prediction.files import read_profile

    if not isinstance(path, str | Path):
        raise InputError(f"a profile is loaded from a path, not from {type(path).__name__}")
    return Profile(read_profile(Path(path)))
