"""AIConfigurator's matrix products: predictions of shapes, software stacks and devices that were not fitted.

``python tests/benchmarks/gemm.py`` (needs the data set: see `bayesperf list datasets`). bfloat16 on H100, A100 and
L40S, float8 on H100 and L40S, as two serving stacks ran them; a stack was measured in one campaign. At most 100 rows
per target, stack and dtype are fitted; hold-outs are blocked by shape: one is fitted everywhere or nowhere. Parts:

- ``seen``: other shapes of the same devices and stacks;
- ``stack``: every stack of the devices that have two left out in turn, and predicted as a fresh stack;
- ``unseen``: every device left out in turn and predicted from its spec sheet (printed, not judged).

The last line says whether the limits were met: at most 13 % mean absolute error and 90 % intervals that cover 85-95 %
for shapes; the mean log residual of a device inside its 90 % range for stacks. Exit code 1 if not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

import pandas as pd
from _heldout import fit_rows, sample_rows, score, show, split_by_shape

import bayesperf as bp
from bayesperf.datasets import load, targets
from bayesperf.schema import is_excluded

DTYPES = {"bfloat16": "bfloat16", "fp8": "float8"}
"""Element types by the source's name of how operands are stored: others convert them on the way."""

GROUP = ["target", "stack", "dtype"]
FITTED, HELD = 100, 150
LIMIT, COVERAGE = 0.13, (0.85, 0.95)


def main() -> None:
    """Run the parts asked for over the seeds, print tables, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["seen", "stack", "unseen"], choices=["seen", "stack", "unseen"])
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds")
    parser.add_argument("--rows", type=int, default=FITTED, help="rows per target, stack and dtype that are fitted")
    parser.add_argument("--draws", type=int, default=1000, help="draws and tuning steps per chain")
    parser.add_argument("--attempts", type=int, default=2, help="sample up to so many times until the gate passes")
    options = parser.parse_args()
    table = load("aiconfigurator", families=["gemm"])
    table = table[~is_excluded(table) & (table["quantization"].map(DTYPES) == table["dtype"])]
    sheets = targets()
    failed: list[str] = []
    for seed in range(options.seeds):
        held = split_by_shape(table, ["m", "n", "k"], seed)
        fitted = sample_rows(table[~held], GROUP, options.rows, seed)
        failed += list(run(fitted, sample_rows(table[held], GROUP, HELD, seed), sheets, seed, options))
    print("limits met" if not failed else "limits missed: " + "; ".join(failed))
    sys.exit(bool(failed))


def run(
    fitted: pd.DataFrame, held: pd.DataFrame, sheets: pd.DataFrame, seed: int, options: argparse.Namespace
) -> Iterator[str]:
    """One seed; yields the limits that were missed."""

    def fit(rows: pd.DataFrame) -> bp.Profile:
        return fit_rows(rows, sheets, draws=options.draws, attempts=options.attempts, seed=seed)

    if "seen" in options.parts:
        rows = score(fit(fitted), held, campaign="own")
        show(f"held-out shapes by stack, seed {seed}", rows, GROUP)
        for dtype, line in show(f"held-out shapes, seed {seed}", rows, ["dtype"]).iterrows():
            if line["mape"] > LIMIT:
                yield f"seed {seed}, {dtype}: {line['mape']:.1%}"
            if not COVERAGE[0] <= line["coverage"] <= COVERAGE[1]:
                yield f"seed {seed}, {dtype}: coverage {line['coverage']:.3f}"
    if "stack" in options.parts:
        stacks = fitted.groupby("target")["stack"].nunique()
        for target, stack in sorted(set(zip(fitted["target"], fitted["stack"], strict=True))):
            if stacks[target] > 1:
                yield from judge_stack(fit, fitted, held, target, stack, seed)
    if "unseen" in options.parts:
        parts = []
        for target in sorted(fitted["target"].unique()):
            profile = fit(fitted[fitted["target"] != target])
            parts.append(score(profile, held[held["target"] == target], campaign="fresh"))
        show(f"devices left out, seed {seed}", pd.concat(parts), ["target", "dtype"])


def judge_stack(
    fit: Callable[[pd.DataFrame], bp.Profile],
    fitted: pd.DataFrame,
    held: pd.DataFrame,
    target: str,
    stack: str,
    seed: int,
) -> Iterator[str]:
    """Leave one stack of a device out; yields whether its shift was outside the range."""
    out = (fitted["target"] == target) & (fitted["stack"] == stack)
    test = held[(held["target"] == target) & (held["stack"] == stack)]
    rows = score(fit(fitted[~out]), test, campaign="stack")
    show(f"{stack} on {target} left out, seed {seed}", rows, ["dtype"])
    low, high = (float(rows[name].iloc[0]) for name in ("shift_low", "shift_high"))
    print(f"  mean log residual {rows['signed'].mean():+.3f}, inside 90 %: {low <= 0 <= high}")
    if not low <= 0 <= high:
        yield f"seed {seed}, {stack} on {target}: shift {rows['signed'].mean():+.3f}"


if __name__ == "__main__":
    main()
