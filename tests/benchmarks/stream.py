"""Main-memory bandwidth: the `stream` probe over all cores against the same loops in C, in interleaved pairs.

``python tests/benchmarks/stream.py``. The C loops are compiled on the spot (gcc, -O3 -march=native -fopenmp), have the
same form, count the same bytes, and repeat inside one parallel region; every thread first touches its own part.
Then a profile of this machine (measured by the `tiny` suite on the spot, or given by ``--profile``) predicts the triad
for a fresh campaign, and the native figure is held against its 90 % interval. The last line is the triad's median ratio
of rates, ours over native, as STREAM's headline is the triad.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from _setup import use_all_cores

CORES = use_all_cores()

import jax  # noqa: E402
import numpy as np  # noqa: E402
from _native_memory import compile_stream, stream_seconds  # noqa: E402
from _pairs import Row, compare, print_table, seconds_per_iteration  # noqa: E402

from bayesperf import plugins  # noqa: E402
from bayesperf.measure.chain import build  # noqa: E402
from bayesperf.measure.machine import Machine  # noqa: E402
from bayesperf.measure.supervise import describe  # noqa: E402


def compare_all(total_bytes: float, pairs: int) -> list[Row]:
    """One row per kernel, main memory, all cores."""
    probe = plugins.load("probe", "stream")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        library = compile_stream(Path(folder))
        for op in probe.ops:
            sweep = {"ops": [op], "working_set_bytes": [total_bytes / CORES]}
            (config,) = probe.configurations(sweep)
            program = build(probe, config, jax.local_devices(), np.random.default_rng(0))
            if library.setup(config["elements"] * CORES, CORES):
                sys.exit("not enough memory for the C arrays")
            work = probe.work(config).bytes * CORES
            ours = seconds_per_iteration(program, longest_s=0.2, rounds=2)
            rows.append(
                compare(op, ours, stream_seconds(library, op, 8), work, pairs=pairs, counts=op == "stream_triad")
            )
            library.teardown()
            program.release()
    return rows


def fresh_campaign_interval(config: dict[str, object], profile: str | None) -> tuple[float, float]:
    """90 % predictive interval of the triad's seconds for a fresh campaign, from a profile of all cores."""
    import bayesperf as bp

    if profile is None:
        print("measuring and fitting the tiny suite for the prediction (about a minute) ...", flush=True)
        fitted = bp.fit(bp.measure("tiny", progress=False), seed=1)
    else:
        fitted = bp.load_profile(profile)
    probe = plugins.load("probe", "stream")
    work = probe.work(config)
    target = Machine.from_description(describe()).target(CORES)
    workload = {
        "op": "stream_triad",
        "dtype": "float32",
        "flops": work.flops * CORES,
        "bytes": work.bytes * CORES,
        "working_set_bytes": work.working_set_bytes * CORES,
    }
    bounds = fitted.predict(workload, target=target, draws=4000, allow_unconverged=True).interval(0.9).values[:, 0]
    return float(bounds[0]), float(bounds[1])


def report_coverage(rows: list[Row], total_bytes: float, profile: str | None) -> None:
    """Print whether the native triad lies inside the predictive interval."""
    probe = plugins.load("probe", "stream")
    (config,) = probe.configurations({"ops": ["stream_triad"], "working_set_bytes": [total_bytes / CORES]})
    slowest, fastest = fresh_campaign_interval(config, profile)[::-1]
    moved = probe.work(config).bytes * CORES
    triad = next(row for row in rows if row.name == "stream_triad")
    native = moved / float(np.median(triad.reference))
    low, high = moved / slowest, moved / fastest
    verdict = "covers" if low <= native <= high else "DOES NOT COVER"
    interval = f"[{low / 1e9:.1f}, {high / 1e9:.1f}] GB/s"
    print(f"90 % interval for a fresh campaign {interval} {verdict} the native {native / 1e9:.1f} GB/s")


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=11, help="interleaved pairs, at least 7")
    parser.add_argument("--profile", help="profile of this machine; measured and fitted here if absent")
    options = parser.parse_args()
    total = Machine.from_description(describe()).main_memory_bytes(CORES)
    rows = compare_all(total, max(7, options.pairs))
    print_table(rows, "GB/s", 1e9, cores=CORES, working_set=f"{total / 1e6:.0f} MB", bytes="compulsory, same for both")
    report_coverage(rows, total, options.profile)
    print(f"ratio {min((row for row in rows if row.counts), key=lambda row: row.ratio).ratio:.3f}")


if __name__ == "__main__":
    main()
