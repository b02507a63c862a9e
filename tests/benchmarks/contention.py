"""Contention on a machine at hand: pairs are fitted, mixes that were never measured are predicted.

``python tests/benchmarks/contention.py CAMPAIGN.parquet ...`` with what ``bayesperf measure --suite contention`` wrote,
at least three runs half an hour apart; without files it measures one campaign itself. Rows of the role ``fit`` are
fitted (or ``--profile FILE`` is judged, a fit of them that was saved); the held-out ones are other victims, sizes and
aggressors: pairs on processors of their own and on one, mixes of three, more processes than processors.

Printed for the held-out mixes, by where they ran: the mean absolute percentage error of the predicted **slowdown**
(time beside others over time alone around it, median of the campaigns); how many of the single campaigns' slowdowns
the 90 % interval of such a measurement covers, its own standard error included; and the error for mixes slowed by 20 %
or more beside what "no contention" and multiplying the model's own pairs would give. Then how far campaigns are apart
themselves, what the posterior says where nothing contends, the verdicts on taking turns, and the law of equal
processes.

Exit code 1 if a limit was missed: error at most 10 %, coverage 80 to 97 %, better than both on slowed mixes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from _setup import use_one_device

use_one_device()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from _mixes import multiplied, with_slowdowns  # noqa: E402
from _part import fitted_part  # noqa: E402

import bayesperf as bp  # noqa: E402
from bayesperf.models.contention import scalability, sharing, slowdown  # noqa: E402
from bayesperf.schema import rows_for  # noqa: E402
from bayesperf.store import concat, read_measurements  # noqa: E402

ERROR, COVERAGE, SLOWED, MIXES = 0.1, (0.8, 0.97), 1.2, 40


def measured(files: list[Path]) -> pd.DataFrame:
    """Tables of the files, or one campaign measured now."""
    if files:
        return concat([read_measurements(file) for file in files])
    with tempfile.TemporaryDirectory() as folder:
        return bp.measure("contention", out=Path(folder) / "campaign.parquet")


def judged(profile: bp.Profile, table: pd.DataFrame) -> pd.DataFrame:
    """Held-out mixes, one row each: median measured slowdown, prediction, interval, and what the baselines say."""
    rows = with_slowdowns(table)
    rows = rows[rows["role"] == "heldout"].reset_index(drop=True)
    found = slowdown(profile, rows.drop(columns=["time_s"]), draws=2000, error=rows["error"].to_numpy(float))
    rows = rows.assign(
        predicted=found["slowdown"], lower=found["slowdown_lower"], upper=found["slowdown_upper"],
        pairs=multiplied(profile, rows),
    )  # fmt: skip
    rows["covered"] = rows["measured"].between(rows["lower"], rows["upper"])
    keys = ["mode", "victim", "corunners", "corunner_shapes"]
    rows["apart"] = apart(rows, keys)
    return rows.groupby(keys, dropna=False, sort=False).agg(
        predicted=("predicted", "median"),
        lower=("lower", "median"), upper=("upper", "median"), pairs=("pairs", "median"), covered=("covered", "mean"),
        error=("error", "median"), campaigns=("covered", "size"), apart=("apart", "mean"),
        measured=("measured", "median"),
    ).reset_index()  # fmt: skip


def apart(rows: pd.DataFrame, keys: list[str]) -> pd.Series:
    """How far one campaign's slowdown lies from the median of the others', relative, (row,): nobody predicts better."""
    found = pd.Series(np.nan, index=rows.index)
    for _, mix in rows.groupby(keys, dropna=False):
        for at in mix.index:
            others = mix["measured"].drop(at)
            if len(others):
                found[at] = abs(mix["measured"][at] / others.median() - 1.0)
    return found


def error(predicted: Any, found: pd.DataFrame) -> float:
    """Mean absolute percentage error of slowdowns."""
    return float(np.mean(np.abs(np.asarray(predicted) / found["measured"] - 1.0)))


def report(found: pd.DataFrame, words: str) -> dict[str, float]:
    """Print one line of figures, and return them."""
    slow = found[found["measured"] >= SLOWED]
    figures = {
        "error": error(found["predicted"], found), "coverage": float(found["covered"].mean()),
        "slowed": error(slow["predicted"], slow), "none": error(1.0, slow), "multiplied": error(slow["pairs"], slow),
    }  # fmt: skip
    print(
        f"{words:24} {len(found):3} mixes: error {figures['error']:6.1%}, 90 % interval covers "
        f"{figures['coverage']:4.0%}; {len(slow):2} slowed by {SLOWED - 1:.0%}: model "
        f"{figures['slowed']:6.1%}, no contention {figures['none']:6.1%}, pairs multiplied {figures['multiplied']:6.1%}"
    )
    return figures


def fitted_profile(fitted: pd.DataFrame, options: argparse.Namespace) -> Any:
    """Fit, or load what was fitted."""
    if options.profile:
        profile = bp.load_profile(options.profile)
        if set(profile.table["measurement_id"]) != set(fitted["measurement_id"]):
            raise SystemExit(f"{options.profile} was not fitted to the rows of these files that are to be fitted")
        return profile
    asked = {"draws": options.draws, "tune": options.draws, "chains": options.chains}
    if not options.part:
        return bp.fit(fitted, model="contention", seed=1, **asked)
    return fitted_part(fitted, seed=1, **asked)


def main() -> int:
    """Fit, predict, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument(
        "--profile", type=Path, help="of the same rows, fitted before: `bayesperf fit --model contention`"
    )
    parser.add_argument("--part", action="store_true", help="sample contention's part of the model alone: it is exact")
    parser.add_argument("--list", action="store_true", help="print every mix")
    options = parser.parse_args()
    table = measured(options.files)
    fitted = rows_for(table, "fit")
    profile = fitted_profile(fitted, options)
    print(f"{len(fitted)} rows fitted, {table['campaign'].nunique()} campaigns, converged: {profile.converged}")
    found = judged(profile, table)
    if options.list:
        print(found.to_string())
    for mode, rows in found.groupby("mode"):
        report(rows, str(mode))
    figures = report(found, "all")
    print(f"one campaign's slowdown lies {found['apart'].mean():.1%} from the median of the others', on average")
    parameters = profile.parameters()
    shown = parameters[parameters["parameter"].str.startswith("contention_")]
    print(shown[["target", "label", "median", "lower", "upper", "contraction"]].to_string(index=False))
    print(sharing(profile.inference.encoded).to_string(index=False))
    print(scalability(profile.inference.encoded).to_string(index=False))
    good = (
        len(found) >= MIXES
        and figures["error"] <= ERROR
        and COVERAGE[0] <= figures["coverage"] <= COVERAGE[1]
        and figures["slowed"] < min(figures["none"], figures["multiplied"])
    )
    print("limits kept" if good else "a limit was missed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
