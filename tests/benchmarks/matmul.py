"""Float32 matrix products: the `matmul` probe on one JAX CPU device against NumPy's BLAS, in interleaved pairs.

``python tests/benchmarks/matmul.py``. Both multiply one pair of square matrices with all the threads they take by
themselves. The last line is best rate over best rate: XLA's own product, not the probe, decides by size.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from _setup import use_one_device

use_one_device()

import jax  # noqa: E402
import numpy as np  # noqa: E402
from _pairs import Row, compare, print_table, seconds_per_iteration  # noqa: E402

from bayesperf import plugins  # noqa: E402
from bayesperf.measure.chain import build  # noqa: E402

SIZES = (256, 512, 768, 1024, 1536, 2048)
LONGEST_S = 0.1


def numpy_seconds(size: int) -> Callable[[], float]:
    """A function that returns the seconds of one product in NumPy: mean of as many as fill a while."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), dtype=np.float32) + np.float32(0.5) for _ in range(2))
    c = np.empty((size, size), dtype=np.float32)

    def run(repetitions: int) -> float:
        started = time.perf_counter()
        for _ in range(repetitions):
            np.matmul(a, b, out=c)
        return (time.perf_counter() - started) / repetitions

    run(2)
    repetitions = max(3, round(2 * LONGEST_S / run(2)))
    return lambda: run(repetitions)


def compare_sizes(pairs: int) -> list[Row]:
    """One row per size."""
    probe = plugins.load("probe", "matmul")
    rows = []
    for config in probe.configurations({"dtypes": ["float32"], "shapes": list(SIZES)}):
        program = build(probe, config, jax.local_devices()[:1], np.random.default_rng(0))
        ours = seconds_per_iteration(program, LONGEST_S, rounds=3)
        name = "x".join(str(config[key]) for key in "mnk")
        rows.append(compare(name, ours, numpy_seconds(config["m"]), probe.work(config).flops, pairs=pairs))
        program.release()
    return rows


def best_rate(rows: list[Row], side: str) -> float:
    """Best rate of one side over all sizes and pairs: what others on the machine took away is left out on both."""
    return max(float(row.work / np.min(getattr(row, side))) for row in rows)


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7, help="interleaved pairs, at least 7")
    rows = compare_sizes(max(7, parser.parse_args().pairs))
    print_table(rows, "GFLOP/s", 1e9, numpy=np.__version__, jax=jax.__version__)
    print(f"ratio {best_rate(rows, 'ours') / best_rate(rows, 'reference'):.3f}")


if __name__ == "__main__":
    main()
