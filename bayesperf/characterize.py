"""The main job: measure this machine, fit, validate on held-out workloads, write the three files that say it all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from bayesperf.errors import UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from bayesperf.measure.progress import Progress
    from bayesperf.prediction.profile import Profile
    from bayesperf.validation.result import Validation

__all__ = ["MEASUREMENTS", "PROFILE", "REPORT", "Characterization", "characterize", "default_folder"]

MEASUREMENTS, PROFILE, REPORT = "measurements.parquet", "profile.nc", "report.html"
"""What a characterization leaves in its folder."""


@dataclass(frozen=True)
class Characterization:
    """What was found and where it was written.

    Parameters
    ----------
    folder
        Holds `MEASUREMENTS`, `PROFILE` and `REPORT`.
    table
        The measurement table.
    profile
        The posterior; marked where its diagnostics gate failed.
    validation
        Comparison with the held-out workloads; None where none could be measured.
    """

    folder: Path
    table: pd.DataFrame
    profile: Profile
    validation: Validation | None

    @property
    def files(self) -> list[Path]:
        """The three files."""
        return [self.folder / name for name in (MEASUREMENTS, PROFILE, REPORT)]

    def exit_code(self, *, strict: bool = False) -> int:
        """0 done, 1 the gate failed, 3 (only if `strict`) a regime fails to transfer."""
        if not self.profile.converged:
            return 1
        return 3 if strict and self.validation is not None and self.validation.any_fails else 0


def characterize(
    suite: str | Path = "quick",
    *,
    out: str | Path | None = None,
    model: str = "roofline",
    targets: pd.DataFrame | None = None,
    campaign: str | None = None,
    seed: int | None = None,
    draws: int = 1000,
    chains: int = 4,
    tolerance: float = 0.1,
    alpha: float = 0.05,
    progress: bool | Progress | None = None,
) -> Characterization:
    """Characterize the machine this runs on.

    Measurements are journaled as they come: a run that was ended goes on where it stopped when the same call is made
    again, and a complete table is not measured twice.

    Parameters
    ----------
    suite
        Name of an installed suite, or the path of a TOML file.
    out
        Folder to write into; ``./bayesperf-<target>-<date>`` if None.
    model
        Model by its entry point.
    targets
        Spec sheets by device: priors and ceilings.
    campaign
        Name of this collection run; the UTC time of its start if None.
    seed
        Of everything random; drawn and recorded if None.
    draws, chains
        Size of the posterior sample: draws per chain, and chains.
    tolerance, alpha
        Of the validation: shift granted as a share of time, and family-wise error rate.
    progress
        As in `bayesperf.measure`: None decides by terminal, False is silent.

    Returns
    -------
    Characterization
        Also when the diagnostics gate failed: all three files are written then, marked.

    Raises
    ------
    InputError
        Unknown suite, probe or model; a folder that holds another suite's measurements.
    MeasurementError
        Nothing could be measured.
    """
    from bayesperf import plugins
    from bayesperf.measure.run import measure
    from bayesperf.schema import rows_for
    from bayesperf.store import read_measurements

    # Before minutes of measuring: a wrong name should cost a second.
    if model not in plugins.available("model"):
        raise UnknownNameError("model", model, plugins.available("model"))
    folder = Path(out) if out is not None else default_folder()
    path = folder / MEASUREMENTS
    measured = measure(suite, out=path, seed=seed, progress=progress, campaign=campaign, targets=targets)
    # As others will read it: what is fitted is what is on disk.
    table = read_measurements(path)

    from bayesperf.prediction.fit import fit
    from bayesperf.report.capability import write_report

    sampling_seed = seed if seed is not None else _seed_of(measured)
    silent = progress is False
    profile = fit(
        table, targets=targets, model=model, seed=sampling_seed, draws=draws, chains=chains, progress=not silent
    )
    profile.save(folder / PROFILE)
    heldout = rows_for(table, "heldout")
    validation = (
        profile.validate(heldout, tolerance=tolerance, alpha=alpha, seed=sampling_seed) if len(heldout) else None
    )
    write_report(
        profile,
        folder / REPORT,
        validation=validation,
        measurements=table,
        failures=measured.attrs["failures"],
        seed=sampling_seed,
    )
    return Characterization(folder, table, profile, validation)


def _seed_of(measured: pd.DataFrame) -> int:
    """Seed of the plan that was measured: the fit then repeats with it."""
    from bayesperf.measure.plan import Plan

    return Plan.from_json(measured.attrs["facts"]["plan"], source=MEASUREMENTS).seed


def default_folder() -> Path:
    """``./bayesperf-<target>-<date>``, the target being all devices of this machine."""
    from bayesperf.measure.machine import Machine
    from bayesperf.measure.supervise import describe

    machine = Machine.from_description(describe())
    return Path(f"bayesperf-{machine.target(machine.devices)}-{date.today().isoformat()}")
