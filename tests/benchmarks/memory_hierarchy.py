"""Every level of the memory hierarchy: the probes `stream` and `latency` beside loops in C, in interleaved pairs.

``python tests/benchmarks/memory_hierarchy.py``. Bandwidth: the STREAM kernels of `stream.py` (same form, same bytes
counted, repetitions inside one parallel region), on one core (this process pinned to it) and on all, at working sets
that double from twice the first data cache to main memory. Latency: the same random cycle chased by the probe and by C,
on one core. A dependent gather costs about 2 ns of its own on a CPU, clamping included: it is in the probe's figure.

Each ratio of rates should lie within 0.7-1.3, in main memory within 0.85-1.15; each difference of latencies within the
larger of 25 % and 4 ns beyond the first cache. Exits 1 when one does not. The last line is the ratio of rates that is
farthest from 1, turned below it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

LEVEL, MAIN = (0.7, 1.3), (0.85, 1.15)
LATENCY_SHARE, LATENCY_S = 0.25, 4e-9
LONGEST_S = 0.02
"""Seconds of the longest timed run of either side; three runs of large working sets take what they take."""


def first_cache_bytes() -> float:
    """Size of the first data cache as the system reports it; 32 KiB where it does not."""
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if level == "1" and kind in ("Data", "Unified") and size.endswith("K"):
            return float(size[:-1]) * 1024
    return 32.0 * 1024


def working_sets(cores: int, main_bytes: float, factor: float) -> list[float]:
    """Totals over all cores: from twice the first cache of each, by `factor`, and main memory."""
    sizes, size = [], 2 * first_cache_bytes() * cores
    while size < main_bytes / factor**0.5:
        sizes.append(size)
        size *= factor
    return [*sizes, main_bytes]


def main_memory_bytes(cores: int) -> float:
    """A working set over these cores that no cache holds."""
    from bayesperf.measure.machine import Machine
    from bayesperf.measure.supervise import describe

    return Machine.from_description(describe()).main_memory_bytes(cores)


def bandwidth(options: argparse.Namespace) -> int:
    """Compare the STREAM kernels on the cores of this process; returns the number of ratios that are outside."""
    from _setup import use_all_cores

    cores = use_all_cores()
    import jax
    import numpy as np
    from _native_memory import compile_stream, stream_seconds
    from _pairs import Row, compare, print_table, seconds_per_iteration

    from bayesperf import plugins
    from bayesperf.measure.chain import build

    rows, outside, main_bytes = list[Row](), list[str](), main_memory_bytes(cores)
    probe: Any = plugins.load("probe", "stream")
    with tempfile.TemporaryDirectory() as folder:
        library = compile_stream(Path(folder))
        for op in options.ops:
            for total in working_sets(cores, main_bytes, options.factor):
                (config,) = probe.configurations({"ops": [op], "working_set_bytes": [total / cores]})
                program = build(probe, config, jax.local_devices(), np.random.default_rng(0))
                if library.setup(config["elements"] * cores, cores):
                    sys.exit("not enough memory for the C arrays")
                work = probe.work(config)
                ours = seconds_per_iteration(program, LONGEST_S, rounds=3)
                once = stream_seconds(library, op, 3)()
                theirs = stream_seconds(library, op, max(3, round(LONGEST_S / once)))
                name = f"{op} {work.working_set_bytes * cores / 1e6:.3g} MB"
                row = compare(name, ours, theirs, work.bytes * cores, pairs=options.pairs)
                library.teardown()
                program.release()
                rows.append(row)
                print(f"{name}: {row.ratio:.3f}", file=sys.stderr, flush=True)
                low, high = MAIN if total == main_bytes else LEVEL
                if not low <= row.ratio <= high:
                    outside.append(f"{row.name}: {row.ratio:.3f} is outside {low}-{high}")
    print_table(rows, "GB/s", 1e9, cores=cores, bytes="compulsory, same for both")
    print(*outside, sep="\n", end="\n" if outside else "")
    print(f"worst {min(min(row.ratio, 1 / row.ratio) for row in rows):.3f}", flush=True)
    return len(outside)


def per_hop(iteration: Callable[[], float], hops: int) -> Callable[[], float]:
    """Seconds of one hop, from those of an iteration."""
    return lambda: iteration() / hops


def latency(options: argparse.Namespace) -> int:
    """Compare the pointer chase on one core; returns the number of differences that are outside."""
    from _setup import use_one_device

    use_one_device()
    import jax
    import numpy as np
    from _native_memory import chase_seconds, compile_chase
    from _pairs import compare, seconds_per_iteration

    from bayesperf import plugins
    from bayesperf.measure.chain import build

    probe: Any = plugins.load("probe", "latency")
    main_bytes, outside = main_memory_bytes(1), 0
    print(f"{'pointer chase':28s} {'ours ns':>10s} {'C ns':>10s} {'difference':>11s} {'allowed':>8s}")
    with tempfile.TemporaryDirectory() as folder:
        library = compile_chase(Path(folder))
        sizes = [first_cache_bytes() / 2, *working_sets(1, main_bytes, options.factor)]
        for (config,) in (probe.configurations({"working_set_bytes": [size]}) for size in sizes):
            size = probe.work(config).working_set_bytes
            kernel = probe.kernel(config, np.random.default_rng(0))
            program = build(probe, config, jax.local_devices()[:1], np.random.default_rng(0))
            theirs = chase_seconds(library, kernel.operands[0], int(kernel.carry[0][0]), LONGEST_S)
            ours = per_hop(seconds_per_iteration(program, LONGEST_S, rounds=3), config["hops"])
            row = compare(f"{size / 1e6:.3g} MB", ours, theirs, 1.0, pairs=options.pairs)
            library.teardown()
            program.release()
            mine, native = float(np.median(row.ours)), float(np.median(row.reference))
            difference = float(np.median(np.subtract(row.ours, row.reference)))
            allowed, counts = max(LATENCY_SHARE * native, LATENCY_S), size > first_cache_bytes()
            wrong = counts and abs(difference) > allowed
            outside += wrong
            note = "" if counts else "  (in the first cache: does not count)"
            print(
                f"{row.name:28s} {mine * 1e9:10.2f} {native * 1e9:10.2f} {difference * 1e9:+11.2f} {allowed * 1e9:8.2f}"
                f"{'  OUTSIDE' if wrong else note}",
                flush=True,
            )
    return outside


def in_a_process(part: str, arguments: list[str], cpus: set[int] | None) -> tuple[int, str]:
    """Run a part in a process of its own, on these processors alone; returns its exit status and last line."""
    command = [sys.executable, __file__, "--part", part, *arguments]
    start = None if cpus is None else (lambda: os.sched_setaffinity(0, cpus))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=start)
    assert process.stdout is not None
    last = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line.strip() or last
    return process.wait(), last


def main() -> None:
    """Run all parts."""
    kernels = ["stream_copy", "stream_scale", "stream_add", "stream_triad", "stream_read"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9, help="interleaved pairs, at least 7")
    parser.add_argument("--factor", type=float, default=2.0, help="from one working set to the next")
    parser.add_argument("--ops", nargs="+", default=kernels, choices=kernels, help="STREAM kernels")
    parser.add_argument("--part", choices=["one", "all", "latency"], help="this part alone, on the cores it may use")
    options = parser.parse_args()
    options.pairs = max(7, options.pairs)
    if options.part is not None:
        sys.exit(min(1, latency(options) if options.part == "latency" else bandwidth(options)))
    arguments = ["--pairs", str(options.pairs), "--factor", str(options.factor), "--ops", *options.ops]
    last_core = {max(os.sched_getaffinity(0))}
    failed, worst = 0, 1.0
    for part, cpus in (("one", last_core), ("all", None), ("latency", last_core)):
        print(f"--- {part}")
        status, last = in_a_process(part, arguments, cpus)
        failed += status != 0
        if last.startswith("worst "):
            worst = min(worst, float(last.removeprefix("worst ")))
    print(f"ratio {worst:.3f}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
