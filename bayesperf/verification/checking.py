"""`bayesperf.verify`: is a profile what it says it is?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bayesperf.errors import BayesperfError, InputError, UnsupportedFileError
from bayesperf.prediction.files import read_profile
from bayesperf.prediction.profile import Profile
from bayesperf.verification.again import check_gate, check_prior
from bayesperf.verification.contents import CODING, check_contents
from bayesperf.verification.refit import check_numbers
from bayesperf.verification.reports import check_report
from bayesperf.verification.result import Verification
from bayesperf.verification.tables import check_tables

__all__ = ["verify"]


def verify(
    profile: str | Path,
    tables: str | Path | Sequence[str | Path] = (),
    *,
    report: str | Path | None = None,
    refit: bool = True,
    progress: bool = False,
) -> Verification:
    """Verify a profile: its digests, the rows it rests on, and its numbers.

    Three questions. Does the file hold what was written (digests of rows, variables and attributes, the data
    fingerprint, the ids of provenance records), and do its draws give the diagnostics that it states? Do the
    measurement tables given hold the fitted rows, with the content that their ids are hashes of, and every point of
    their plan? And do the prior, and a second fit of the embedded rows with the stored seed and settings, give the
    published medians and intervals again, within Monte-Carlo error (see `bayesperf.verification.criterion`)?

    Digests are no signatures: who changes a file can compute them anew. Such a profile is found by its tables, or by
    the second fit where its numbers do not follow from its rows.

    Parameters
    ----------
    profile
        A file that `Profile.save` wrote.
    tables
        The measurements it was fitted to, CSV or Parquet: one or several.
    report
        A report of it, as ``bayesperf report --out FILE.json`` writes it: computed again and compared value by value.
    refit
        Fit again; takes as long as the fit did.
    progress
        Show progress bars.

    Returns
    -------
    Verification
        ``passed`` says whether nothing failed; ``findings`` say what, and which row, variable or parameter.

    Raises
    ------
    InputError
        A file does not exist, is of another kind, or is too damaged to be read.
    """
    if not isinstance(profile, str | Path):
        raise InputError(f"verify takes the path of a profile's file, not a {type(profile).__name__}")
    path = Path(profile)
    loaded = _loaded(path)
    findings = [*check_contents(path, loaded), check_gate(loaded)]
    paths = [Path(tables)] if isinstance(tables, str | Path) else [Path(table) for table in tables]
    if paths:
        findings += check_tables(loaded.table, paths)
    if any(finding.what == CODING and finding.status == "failed" for finding in findings):
        return Verification(tuple(findings))
    if report is not None:
        findings.append(check_report(loaded, Path(report), paths))
    if not refit:
        return Verification(tuple(findings))
    prior = check_prior(loaded)
    found, numbers, criterion = check_numbers(loaded, progress=progress)
    return Verification((*findings, prior, found), numbers, criterion)


def _loaded(path: Path) -> Profile:
    """Load a profile; one whose parts are missing or no longer fit together is damaged, not a defect of ours."""
    try:
        # Rows that were changed are to be named, not only refused.
        return Profile(read_profile(path, as_fitted=False))
    except BayesperfError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise UnsupportedFileError(
            f"{path}: too damaged to be read as a profile ({type(error).__name__}: {error}); it was not written like "
            "this: take it from its source again"
        ) from error
