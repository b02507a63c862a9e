"""How well are whole programs predicted that no probe is?

``python tests/benchmarks/programs.py [PROFILE] [--measured FILE] [--target T] [--only TEXT] [--out FILE.csv]``

For each of over sixty programs (training steps, solvers, simulations) the kernels are counted and the time of a run is
predicted, and whether that is supported, before any of them runs; then they are run, one JAX device, the host waiting
for each result. What they took is kept in FILE; where that exists, it is judged and nothing is run, and without a
profile nothing is judged. So the machine must be quiet once, for some three minutes.

Prints one line each, the mean absolute percentage error of the median, and how many lie in the 90 % interval; those of
`_held_programs` apart as well, which nobody looked at while the rules were made, and those of `_last_programs`, written
after them. What lies outside of the 99.9 %
interval is explained from the profiler's trace, by the kernel that missed by most.

The reference is the usual estimate from XLA's own cost analysis: the larger of flops over the profile's float32 product
rate and bytes over its main-memory bandwidth. The last line is its error over ours.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from _setup import use_one_device

__all__ = ["main"]


def rates(profile: Any, target: str) -> tuple[float, float]:
    """Median product rate (FLOP/s) and slowest bandwidth (B/s) of a target."""
    parameters = profile.parameters()
    mine = parameters[parameters["target"] == target]
    product = mine[(mine["parameter"] == "compute_rate") & mine["label"].str.startswith("matmul float32")]
    bandwidth = mine[mine["unit"] == "B/s"]
    return float(product["median"].max()), float(bandwidth["median"].min())


def judged(
    name: str, table: Any, predicted: Any, measured: Any, rate: tuple[float, float], quantile: float
) -> dict[str, Any]:
    """One program's row: its prediction beside what it took."""
    import numpy as np

    check = table.attrs["cross_check"]
    took = float(np.quantile(measured.seconds, quantile))
    row = {
        "program": name,
        "supported": predicted.supported,
        "predicted_s": float(predicted.median()),
        "measured_s": took,
        "reference_s": max((check["xla_flops"] or 0.0) / rate[0], (check["xla_bytes"] or 0.0) / rate[1]),
        "unattributed": float((measured.parts["unattributed"] / measured.parts["measured"]).median()),
        "tracing": float(np.median(measured.traced) / took - 1.0),
        "lost": measured.lost,
        "reason": "",
    }
    row["error"] = row["predicted_s"] / took - 1.0
    for level in (0.9, 0.999):
        row[f"lower_{level}"], row[f"upper_{level}"] = (float(v) for v in predicted.interval(level).values)
        row[f"inside_{level}"] = row[f"lower_{level}"] <= took <= row[f"upper_{level}"]
    if not row["inside_0.999"]:
        row["reason"] = explained(table, predicted, measured)
    return row


def explained(table: Any, predicted: Any, measured: Any) -> str:
    """The kernel that missed by most."""
    import numpy as np

    from bayesperf.programs.evidence import Evidence

    found = Evidence(table, measured.parts, measured.kernels, np.asarray(measured.seconds), predicted)
    kernels = found.by_kernel()
    missed = kernels.assign(missed=(kernels["measured_s"] - kernels["predicted_s"]).abs()).nlargest(1, "missed")
    (worst,) = missed.to_dict(orient="records")
    return f"{worst['instruction']} ({worst['op']}): {worst['ratio']:.2f} of predicted, {worst['held_back']}"


def summarised(title: str, table: Any) -> float:
    """Print errors and coverage of some programs; returns the reference's error over ours."""
    ours = table["error"].abs().mean()
    theirs = (table["reference_s"] / table["measured_s"] - 1.0).abs().mean()
    supported = table[table["supported"]]
    share = f"{supported['inside_0.9'].mean():.0%}" if len(supported) else "none"
    print(
        f"{title}: mean absolute percentage error {ours:.1%} (median {table['error'].abs().median():.1%}, reference "
        f"{theirs:.1%}); in the 90 % interval {table['inside_0.9'].mean():.0%} of {len(table)}, {share} of the "
        f"{len(supported)} supported; unattributed at most {table['unattributed'].max():.1%}, tracing costs "
        f"{table['tracing'].median():.1%}"
    )
    return float(theirs / ours)


def judge(options: argparse.Namespace, programs: dict[str, Any]) -> int:
    """Predict all programs, run them where that was not done, and print how they compare."""
    import pandas as pd
    from _held_programs import HELD
    from _last_programs import LAST
    from _run_programs import measure, read, restored

    import bayesperf as bp

    profile = bp.load_profile(options.profile)
    target = options.target or next(t for t in profile.targets if t.endswith("x1"))
    known = options.measured.exists()
    tables = (
        restored(options.measured, programs) if known else {n: bp.workload(f, *a) for n, (f, a) in programs.items()}
    )
    allow = {"allow_unconverged": options.allow_unconverged}
    predictions = {name: profile.predict_program(table, target, draws=2000, **allow) for name, table in tables.items()}
    if not known:
        measure(programs, options.measured, runs=options.runs, passes=options.passes)
    measured, rate = read(options.measured), rates(profile, target)
    print(f"{'program':28} {'measured s':>10} {'predicted':>10} {'error':>7}  90 % interval           inside supported")
    rows = []
    for name, predicted in predictions.items():
        row = judged(name, tables[name], predicted, measured[name], rate, options.quantile)
        rows.append(row)
        print(
            f"{name:28} {row['measured_s']:10.3g} {row['predicted_s']:10.3g} {row['error']:+7.0%}  "
            f"{row['lower_0.9']:.3g} to {row['upper_0.9']:<12.3g} {row['inside_0.9']!s:6} {row['supported']!s:9}",
            row["reason"],
            flush=True,
        )
    table = pd.DataFrame(rows)
    if options.out:
        table.to_csv(options.out, index=False)
    held, last = table["program"].isin(HELD), table["program"].isin(LAST)
    busy = table["lost"].median()
    print(f"\nothers used {busy:.0%} of the machine while programs ran (median; {table['lost'].max():.0%} at most)")
    for title, part in (("first", table[~held & ~last]), ("held", table[held]), ("last", table[last])):
        if len(part):
            summarised(title, part)
    print(f"ratio {summarised('all', table):.3f}")
    return 0


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", type=Path, nargs="?")
    parser.add_argument("--measured", type=Path, default=Path("programs.parquet"))
    parser.add_argument("--target")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--allow-unconverged", action="store_true")
    parser.add_argument("--quantile", type=float, default=0.5, help="of the runs; below the median on a busy machine")
    options = parser.parse_args()
    use_one_device()
    from _held_programs import HELD
    from _last_programs import LAST
    from _programs import PROGRAMS
    from _run_programs import measure

    programs = {name: program for name, program in (PROGRAMS | HELD | LAST).items() if options.only in name}
    if options.profile is not None:
        return judge(options, programs)
    measure(programs, options.measured, runs=options.runs, passes=options.passes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
