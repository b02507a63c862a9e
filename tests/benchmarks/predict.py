"""Predictions: how long they take, against PyMC's own posterior predictive; whether both have one distribution.

``python tests/benchmarks/predict.py``. A roofline of 1,000 configurations (matrix products, streams, launches) on two
targets; its draws come from the prior, as what is compared does not depend on where draws come from.

- (5, 50, 95) % quantiles, noise included, of 1,000 workloads x 1,000 draws: `Profile.predict` against
  `pm.sample_posterior_predictive` and the same quantiles, in interleaved pairs, both warm; and against PyMC's compiled
  sampling function alone, without what the call does around it. The last line is the smaller ratio of the two.
- Equality: a Kolmogorov-Smirnov test of every workload's draws, Holm-corrected.
- One workload: `Profile.predict` and `Profile.predictor`, warm. Loading a profile. 100 million pairs of a draw and a
  workload by `Profile.predict_frame`, with the memory that it took.

Exit code 1 if a limit was missed.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from _setup import use_one_device

use_one_device()

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pymc as pm  # noqa: E402
import scipy.stats  # noqa: E402
import xarray as xr  # noqa: E402
from _pairs import Row, compare, print_table  # noqa: E402
from pymc.sampling.forward import compile_forward_sampling_function  # noqa: E402

import bayesperf as bp  # noqa: E402
from bayesperf.inference.diagnostics import Check  # noqa: E402
from bayesperf.inference.infer import Inference  # noqa: E402
from bayesperf.inference.sampling import sample_prior  # noqa: E402
from bayesperf.models.roofline import Roofline  # noqa: E402
from bayesperf.schema import validate, with_ids  # noqa: E402

WORKLOADS, DRAWS = 1000, 1000
QUANTILES = (0.05, 0.5, 0.95)
CAMPAIGN = "monday"
FASTER, PREDICTOR_MS, PREDICT_MS, LOAD_S, PAIRS, MEMORY_MB = 5.0, 1.0, 10.0, 1.0, 10**8, 2000.0
Floats = np.ndarray[Any, np.dtype[np.float64]]


def table_of(seed: int, rows: int) -> pd.DataFrame:
    """Distinct configurations of four operations on two targets, with times of a plain roofline."""
    rng = np.random.default_rng(seed)
    op = rng.choice(["matmul", "stream_triad", "stream_copy", "dispatch"], rows, p=[0.6, 0.2, 0.19, 0.01])
    size = np.exp(rng.uniform(np.log(32), np.log(8192), (3, rows)))
    flops, moved = 2 * size.prod(axis=0), 4 * (size[0] * size[1] + size[1] * size[2] + size[0] * size[2])
    is_product, is_launch = op == "matmul", op == "dispatch"
    flops = np.where(is_product, flops, np.where(op == "stream_triad", moved / 8, 0.0))
    flops, moved = np.where(is_launch, 0.0, flops), np.where(is_launch, 0.0, moved)
    time_s = (1e-6 + np.maximum(flops / 2e11, moved / 2e10)) * np.exp(0.05 * rng.standard_normal(rows))
    columns = {"op": op, "flops": flops, "bytes": moved, "time_s": time_s, "parallelism": size[0] * size[1]}
    table = pd.DataFrame(
        {**columns, "m": np.where(is_product, size[0], np.nan), "n": np.where(is_product, size[1], np.nan)}
    )
    table = table.assign(target=rng.choice(["a", "b"], rows), dtype="float32", campaign=CAMPAIGN)
    return with_ids(validate(table), source="simulated")


def profile_of(table: pd.DataFrame) -> tuple[bp.Profile, pm.Model]:
    """A profile whose posterior is its prior, and its PyMC model."""
    model = Roofline()
    encoded = model.encode(table, None)
    built = model.build(encoded)
    tree = sample_prior(built, draws=DRAWS, seed=1)
    tree["posterior"] = tree["prior"].copy()
    facts = {"model": model.name, "model_version": model.version}
    check = Check("R-hat", 1.0, 1.01, True)
    return bp.Profile(Inference(tree, model, encoded, table, None, [check], facts)), built


def timed(run: Callable[[], Any]) -> Callable[[], float]:
    """A function that runs and returns its seconds."""

    def seconds() -> float:
        started = time.perf_counter()
        run()
        return time.perf_counter() - started

    return seconds


def best_ms(run: Callable[[], Any], times: int) -> tuple[float, float]:
    """Median and smallest of so many warm runs, ms."""
    run()
    found = [1e3 * timed(run)() for _ in range(times)]
    return float(np.median(found)), float(min(found))


def sampled(profile: bp.Profile, built: pm.Model) -> Callable[[], Floats]:
    """`pm.sample_posterior_predictive` of the observations, as draws of time (draw, workload)."""
    posterior = profile.tree["posterior"].to_dataset()

    def run() -> Floats:
        found = pm.sample_posterior_predictive(
            posterior, model=built, var_names=["log_time"], progressbar=False, random_seed=2
        )
        return np.asarray(np.exp(found["posterior_predictive"]["log_time"].to_numpy()[0]), dtype=np.float64)

    return run


def compiled(profile: bp.Profile, built: pm.Model) -> Callable[[], Floats]:
    """The function that it compiles and calls draw by draw, compiled once."""
    posterior = profile.tree["posterior"].to_dataset()
    given = [v for v in built.basic_RVs + built.deterministics if v.name in posterior]
    function, _ = compile_forward_sampling_function(
        outputs=[built["log_time"]], vars_in_trace=given, basic_rvs=built.basic_RVs
    )
    asked = {str(variable.name) for variable in function.maker.fgraph.inputs}
    values = {str(name): v.to_numpy()[0] for name, v in posterior.items() if str(name) in asked}
    points = [{name: value[at] for name, value in values.items()} for at in range(DRAWS)]
    return lambda: np.exp(np.stack([function(**point)[0] for point in points]))


def predictives(profile: bp.Profile, built: pm.Model, pairs: int) -> tuple[list[Row], float]:
    """Rows of the comparison, and the smallest Holm-adjusted p-value of equality."""
    workloads = profile.table.drop(columns=["time_s", "measurement_id", "campaign"])

    def ours() -> xr.DataArray:
        return profile.predict(workloads, campaign=CAMPAIGN, draws=DRAWS).quantile(QUANTILES)

    rows = []
    for name, reference in (("whole call", sampled(profile, built)), ("compiled alone", compiled(profile, built))):
        theirs = timed(lambda draw=reference: np.quantile(draw(), QUANTILES, axis=0))  # type: ignore[misc]
        rows.append(compare(f"quantiles, {name}", timed(ours), theirs, WORKLOADS * DRAWS, pairs=pairs))
    mine = profile.predict(workloads, campaign=CAMPAIGN, draws=DRAWS).draws.values
    draws = sampled(profile, built)()
    p = np.sort([scipy.stats.ks_2samp(mine[:, at], draws[:, at]).pvalue for at in range(WORKLOADS)])
    return rows, min(1.0, float((p * np.arange(len(p), 0, -1)).min()))


def latencies(profile: bp.Profile) -> dict[str, tuple[float, float]]:
    """Milliseconds of one workload, median and best."""
    work = {"flops": 2.0 * 768**3, "bytes": 12.0 * 768**2, "m": 768.0, "n": 768.0, "parallelism": 768.0**2}
    table = pd.DataFrame([{"op": "matmul", "dtype": "float32", "target": "a", **work}])
    fast = profile.predictor("a", draws=DRAWS)
    return {
        "predict, one workload": best_ms(lambda: profile.predict(table).interval(0.9), 50),
        "predictor, one workload": best_ms(lambda: fast("matmul", "float32", **work), 200),
    }


def loading(profile: bp.Profile) -> float:
    """Seconds to load a profile once its libraries are imported."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.nc"
        profile.save(path)
        return best_ms(lambda: bp.load_profile(path), 3)[0] / 1e3


def many(profile: bp.Profile) -> tuple[float, float]:
    """Seconds and additional peak memory, MB, of `PAIRS` pairs."""
    workloads = pd.concat([profile.table] * (PAIRS // DRAWS // len(profile.table)), ignore_index=True)
    workloads = workloads.drop(columns=["time_s", "measurement_id", "campaign"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = timed(lambda: profile.predict_frame(workloads, draws=DRAWS))()
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7, help="interleaved pairs, at least 7")
    parts = ["quantiles", "many"]
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts, help="beside the latencies; none for those")
    parser.add_argument("--many", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    profile, built = profile_of(table_of(0, WORKLOADS))
    if options.many:
        print(*many(profile))
        return
    rows, p = predictives(profile, built, max(7, options.pairs)) if "quantiles" in options.parts else ([], 1.0)
    found = latencies(profile)
    load_s = loading(profile)
    limits = {
        "predict": found["predict, one workload"][1] < PREDICT_MS,
        "predictor": found["predictor, one workload"][1] < PREDICTOR_MS,
        "loading": load_s < LOAD_S,
    }
    if rows:
        print_table(rows, "Mpairs/s", 1e6, pymc=pm.__version__, numpy=np.__version__)
        print(f"KS test of {WORKLOADS} workloads, smallest adjusted p: {p:.3f}")
        limits |= {"quantiles": min(row.ratio for row in rows) >= FASTER, "equality": p > 0.01}
    for name, (middle, best) in found.items():
        print(f"{name}: median {middle:.2f} ms, best {best:.2f} ms")
    print(f"loading a profile of {len(profile.table)} rows: {load_s:.2f} s")
    if "many" in options.parts:
        # In a process of its own: peak memory of this one is PyMC's.
        again = subprocess.run([sys.executable, __file__, "--many"], capture_output=True, text=True, check=True)
        seconds, memory = map(float, again.stdout.split()[-2:])
        print(f"{PAIRS:.0e} pairs: {seconds:.0f} s, {memory:.0f} MB more than before")
        limits["memory"] = memory < MEMORY_MB
    missed = [name for name, met in limits.items() if not met]
    print("limits met" if not missed else f"limits missed: {', '.join(missed)}")
    if rows:
        print(f"ratio {min(row.ratio for row in rows):.3f}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
