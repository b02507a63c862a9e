"""How well are whole programs predicted that no probe is?

``python tests/benchmarks/programs.py PROFILE [--target T] [--runs 20] [--only TEXT] [--out FILE.csv]``

For each of over thirty programs (training steps, solvers, simulations) the kernels are counted and the time of a run is
predicted, and whether that is supported, before it runs; then it is run, one JAX device, the host waiting for each
result. Prints one line each, the mean absolute percentage error of the median, and how many lie in the 90 % interval.
What lies outside of the 99.9 % interval is explained from the profiler's trace, by the kernel that took most time.

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


def one(name: str, profile: Any, target: str, runs: int, rate: tuple[float, float]) -> dict[str, Any]:
    """Predict a program, then run it."""
    import numpy as np
    from _programs import PROGRAMS

    import bayesperf as bp

    fn, args = PROGRAMS[name]
    table = bp.workload(fn, *args)
    predicted = profile.predict_program(table, target, draws=2000)
    check = table.attrs["cross_check"]
    reference = max((check["xla_flops"] or 0.0) / rate[0], (check["xla_bytes"] or 0.0) / rate[1])
    row = {
        "program": name,
        "supported": predicted.supported,
        "predicted_s": float(predicted.median()),
        "reference_s": reference,
    }
    for level in (0.9, 0.999):
        row[f"lower_{level}"], row[f"upper_{level}"] = (float(v) for v in predicted.interval(level).values)
    found = bp.evidence(fn, *args, profile=profile, target=target, runs=runs)
    measured = float(np.median(found.untraced_s))
    row |= {"measured_s": measured, "error": row["predicted_s"] / measured - 1.0, "reason": ""}
    if not row["lower_0.999"] <= measured <= row["upper_0.999"]:
        kernels = found.by_kernel()
        missed = kernels.assign(missed=(kernels["measured_s"] - kernels["predicted_s"]).abs()).nlargest(1, "missed")
        (worst,) = missed.to_dict(orient="records")
        row["reason"] = (
            f"{worst['instruction']} ({worst['op']}): {worst['ratio']:.2f} of predicted, {worst['held_back']}"
        )
    return row


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", type=Path)
    parser.add_argument("--target")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    use_one_device()
    import numpy as np
    import pandas as pd
    from _programs import PROGRAMS

    import bayesperf as bp

    profile = bp.load_profile(options.profile)
    target = options.target or next(t for t in profile.targets if t.endswith("x1"))
    rate = rates(profile, target)
    print(f"{'program':28} {'measured s':>10} {'predicted':>10} {'error':>7}  90 % interval           inside supported")
    rows = []
    for name in PROGRAMS:
        if options.only in name:
            row = one(name, profile, target, options.runs, rate)
            inside = row["lower_0.9"] <= row["measured_s"] <= row["upper_0.9"]
            rows.append({**row, "inside": inside})
            print(
                f"{name:28} {row['measured_s']:10.3g} {row['predicted_s']:10.3g} {row['error']:+7.0%}  "
                f"{row['lower_0.9']:.3g} to {row['upper_0.9']:<12.3g} {inside!s:6} {row['supported']!s:9}",
                row["reason"],
                flush=True,
            )
    table = pd.DataFrame(rows)
    if options.out:
        table.to_csv(options.out, index=False)
    ours = table["error"].abs().mean()
    theirs = (table["reference_s"] / table["measured_s"] - 1.0).abs().mean()
    supported = table[table["supported"]]
    middle = table["error"].abs().median()
    print(f"\nmean absolute percentage error {ours:.1%} (median {middle:.1%}), reference {theirs:.1%}")
    print(f"inside of the 90 % interval: {table['inside'].mean():.0%} of {len(table)}, ", end="")
    print(f"{supported['inside'].mean() if len(supported) else np.nan:.0%} of the {len(supported)} supported")
    print(f"ratio {theirs / ours:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
