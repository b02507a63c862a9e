"""The validation report: verdicts as CSV and as one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bayesperf.report import content
from bayesperf.report.basis import Bases
from bayesperf.report.evidence import Evidence
from bayesperf.report.page import render, write_page
from bayesperf.store import atomic_write

if TYPE_CHECKING:
    import pandas as pd

    from bayesperf.prediction.profile import Profile
    from bayesperf.validation.result import Validation

__all__ = ["write_validation"]


def write_validation(
    profile: Profile, validation: Validation, folder: str | Path, *, heldout: pd.DataFrame
) -> tuple[Path, Path]:
    """Write ``verdicts.csv`` and ``validation.html`` into a folder, each atomically.

    Parameters
    ----------
    profile
        The profile that was validated.
    validation
        Its comparison with the held-out measurements.
    folder
        Made if it does not exist.
    heldout
        The measurements, for the evidence appendix.

    Returns
    -------
    tuple of Path
        The two files.
    """
    verdicts, page = Path(folder) / "verdicts.csv", Path(folder) / "validation.html"
    atomic_write(verdicts, lambda path: validation.groups.to_csv(path, index=False))
    write_page(page, validation_page(profile, validation, heldout))
    return verdicts, page


def validation_page(profile: Profile, validation: Validation, heldout: pd.DataFrame) -> str:
    """Render the validation report."""
    evidence = Evidence(heldout)
    return render(
        "validation.html",
        title=", ".join(dict.fromkeys(str(t) for t in validation.rows["target"])),
        profile=profile,
        banners=content.banners(profile, heldout, evidence),
        **content.transfer(validation, Bases(evidence)),
        **content.heldout(validation, evidence),
        caveats=[*content.stated(profile.facts.get("caveats")), *content.stated(validation.notes)],
        evidence=evidence,
    )
