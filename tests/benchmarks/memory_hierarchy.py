"""Every level of the memory hierarchy: the probes `stream` and `latency` beside loops in C, in interleaved pairs.

``python tests/benchmarks/memory_hierarchy.py``. Bandwidth: the STREAM kernels of `stream.py` (same form, same bytes
counted, repetitions inside one parallel region), on one core (this process pinned to it) and on all, at working sets
that double from twice the first data cache to main memory, each in several fresh placements of the data. Latency: the
same random cycle chased by the probe and by C, on one core. A dependent gather costs about 2 ns of its own on a CPU,
clamping included: it is in the probe's figure.

Each ratio of rates should lie within 0.7-1.3, in main memory within 0.85-1.15; each difference of latencies within the
larger of 25 % and 4 ns beyond the first cache. Exits 1 when one does not. The last line is the ratio of rates that is
farthest from 1, turned below it.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from _setup import use_all_cores

CORES = use_all_cores()
"""One in a process that is pinned to one."""

import jax  # noqa: E402
import numpy as np  # noqa: E402
from _native_memory import chase_seconds, compile_chase, compile_stream, stream_seconds  # noqa: E402
from _pairs import Row, compare, print_table, seconds_per_iteration  # noqa: E402

from bayesperf import plugins  # noqa: E402
from bayesperf.measure.chain import build  # noqa: E402
from bayesperf.measure.machine import Machine  # noqa: E402
from bayesperf.measure.supervise import describe  # noqa: E402
from bayesperf.probe import Config, Probe  # noqa: E402

LEVEL, MAIN = (0.7, 1.3), (0.85, 1.15)
LATENCY_SHARE, LATENCY_S = 0.25, 4e-9
LONGEST_S, ROUNDS = 0.02, 3
"""Seconds of the longest timed run of either side (three of large working sets take what they take), and how often."""
PLACEMENTS = 3
"""How often both sides allocate afresh; each time they are compared in pairs."""


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


def main_memory_bytes() -> float:
    """A working set over the cores of this process that no cache holds."""
    return Machine.from_description(describe()).main_memory_bytes(CORES)


def over_fresh_buffers(make: Callable[[], Row]) -> Row:
    """Pairs over several placements of the data: which pages, and so which lines, buffers get is chance."""
    rows = [make() for _ in range(PLACEMENTS)]
    ours = tuple(time for row in rows for time in row.ours)
    return Row(rows[0].name, ours, tuple(time for row in rows for time in row.reference), rows[0].work)


def median_of(times: int, function: Callable[[], float]) -> Callable[[], float]:
    """The median of several calls, as the probe's figure is one of several rounds."""
    return lambda: float(np.median([function() for _ in range(times)]))


def repetitions(library: ctypes.CDLL, op: str) -> int:
    """As many as take `LONGEST_S` when nothing interferes, at least three."""
    count = 3
    while count * min(stream_seconds(library, op, count)() for _ in range(3)) < LONGEST_S / 2:
        count *= 2
    return count


def stream_row(probe: Probe, config: Config, library: ctypes.CDLL, pairs: int) -> Row:
    """One STREAM kernel at one working set, over all cores of this process, in buffers of its own."""
    program = build(probe, config, jax.local_devices(), np.random.default_rng(0))
    if library.setup(config["elements"] * CORES, CORES):
        sys.exit("not enough memory for the C arrays")
    op, work = str(config["op"]), probe.work(config)
    theirs = median_of(ROUNDS, stream_seconds(library, op, repetitions(library, op)))
    ours = seconds_per_iteration(program, LONGEST_S, ROUNDS)
    name = f"{op} {work.working_set_bytes * CORES / 1e6:.3g} MB"
    row = compare(name, ours, theirs, work.bytes * CORES, pairs=pairs)
    library.teardown()
    program.release()
    return row


def chase_row(probe: Probe, config: Config, library: ctypes.CDLL, pairs: int) -> Row:
    """One pointer chase, seconds of a hop, in buffers of its own."""
    program = build(probe, config, jax.local_devices()[:1], np.random.default_rng(0))
    kernel, hops = program.kernel, config["hops"]
    theirs = chase_seconds(library, kernel.operands[0], int(kernel.carry[0][0]), LONGEST_S)
    iteration = seconds_per_iteration(program, LONGEST_S, ROUNDS)
    name = f"{probe.work(config).working_set_bytes / 1e6:.3g} MB"
    row = compare(name, lambda: iteration() / hops, median_of(ROUNDS, theirs), 1.0, pairs=pairs)
    library.teardown()
    program.release()
    return row


def bandwidth(options: argparse.Namespace) -> int:
    """Compare the STREAM kernels on the cores of this process; returns the number of ratios that are outside."""
    rows, outside, main_bytes = list[Row](), list[str](), main_memory_bytes()
    probe: Probe = plugins.load("probe", "stream")
    with tempfile.TemporaryDirectory() as folder:
        library = compile_stream(Path(folder))
        for op, total in itertools.product(options.ops, working_sets(CORES, main_bytes, options.factor)):
            (config,) = probe.configurations({"ops": [op], "working_set_bytes": [total / CORES]})
            row = over_fresh_buffers(partial(stream_row, probe, config, library, options.pairs))
            rows.append(row)
            print(f"{row.name}: {row.ratio:.3f}", file=sys.stderr, flush=True)
            low, high = MAIN if total == main_bytes else LEVEL
            if not low <= row.ratio <= high:
                outside.append(f"{row.name}: {row.ratio:.3f} is outside {low}-{high}")
    print_table(rows, "GB/s", 1e9, cores=CORES, bytes="compulsory, same for both")
    print(*outside, sep="\n", end="\n" if outside else "")
    print(f"worst {min(min(row.ratio, 1 / row.ratio) for row in rows):.3f}", flush=True)
    return len(outside)


def latency(options: argparse.Namespace) -> int:
    """Compare the pointer chase on one core; returns the number of differences that are outside."""
    probe: Probe = plugins.load("probe", "latency")
    outside, first = 0, first_cache_bytes()
    print(f"{'pointer chase':28s} {'ours ns':>10s} {'C ns':>10s} {'difference':>11s} {'allowed':>8s}")
    with tempfile.TemporaryDirectory() as folder:
        library = compile_chase(Path(folder))
        for size in (first / 2, *working_sets(1, main_memory_bytes(), options.factor)):
            (config,) = probe.configurations({"working_set_bytes": [size]})
            row = over_fresh_buffers(partial(chase_row, probe, config, library, options.pairs))
            mine, native = float(np.median(row.ours)), float(np.median(row.reference))
            difference = float(np.median(np.subtract(row.ours, row.reference)))
            allowed, counts = max(LATENCY_SHARE * native, LATENCY_S), size > first
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
    parser.add_argument("--pairs", type=int, default=3, help="pairs in each of three placements, at least 3")
    parser.add_argument("--factor", type=float, default=2.0, help="from one working set to the next")
    parser.add_argument("--ops", nargs="+", default=kernels, choices=kernels, help="STREAM kernels")
    parser.add_argument("--part", choices=["one", "all", "latency"], help="this part alone, on the cores it may use")
    options = parser.parse_args()
    options.pairs = max(3, options.pairs)
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
