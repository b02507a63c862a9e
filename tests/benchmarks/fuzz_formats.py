"""Fuzz the importers: mutated outputs of every tool, for as long as asked.

    python tests/benchmarks/fuzz_formats.py --seconds 3600 [--seed 0] [--keep FOLDER]

Each case takes a real-looking file (the tests' fixtures, and the public samples where ``BAYESPERF_DATA`` points to
some), damages it, and imports it. What may happen: a table that keeps the contract, or one of bayesperf's own errors.
What is a failure: any other exception, any warning, a table with an impossible number, a case that takes longer than
`SLOW_S`, or one that needs more memory than `MEMORY_BYTES`. Failing files are kept in FOLDER: copy them to
``tests/formats/seeds`` and they are replayed by the tests for ever.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bayesperf.errors import BayesperfError
from bayesperf.formats import import_files
from bayesperf.schema import validate
from bayesperf.store import write_measurements

FIXTURES = Path(__file__).parents[1] / "formats" / "fixtures"
SEEDS = Path(__file__).parents[1] / "formats" / "seeds"
SLOW_S = 30.0
MEMORY_BYTES = 4 * 2**30

FORMATS = {
    "babelstream": "babelstream",
    "cuda": "cuda-stream",
    "cuda-stream": "cuda-stream",
    "generic": "generic",
    "google": "google-benchmark",
    "google-benchmark": "google-benchmark",
    "mixbench": "mixbench",
    "nccl": "nccl-tests",
    "nccl-tests": "nccl-tests",
    "nvbandwidth": "nvbandwidth",
    "nvbench": "nvbench",
    "osu": "osu",
    "pyperf": "pyperf",
    "stream": "stream",
    "stream-mccalpin": "stream",
}
"""Format of a fixture by the first word of its name, of a sample by its folder."""

HOSTILE = (
    "1e999 -1e999 nan inf -inf NaN Infinity -1 0 0.0 -0 1e-320 1e308 99999999999999999999 9223372036854775807 1,5 "
    "1.234,5 1_000 0x1F +7 N/A null true ١٢٣ 1e5 .5 5. -- # [ ] { } \" ' \\ : ; , | \t \x00 \ufeff \u2028 💥 "
    + "9"
    * 400
).split(" ")

HOSTILE_JSON: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1e308, 10**30, 0.5, -0.0, float("nan"), float("inf")),
    *("", "nan", "1,5", "x" * 1000, "\x00", "1e999", [], {}, [[]], [None], {"value": 1}),
)

Mutation = Callable[[bytes, random.Random], bytes]


def corpus() -> list[tuple[str, Path]]:
    """Format and path of every file that cases start from."""
    files = [(FORMATS[path.stem.split("_")[0]], path) for path in sorted(FIXTURES.iterdir()) if path.suffix != ".toml"]
    samples = Path(os.environ.get("BAYESPERF_DATA", "")) / "formats"
    if os.environ.get("BAYESPERF_DATA") and samples.is_dir():
        files += [(FORMATS[path.parent.name], path) for path in sorted(samples.glob("*/*")) if path.is_file()]
    return files


def flip_bytes(data: bytes, rng: random.Random) -> bytes:
    """Overwrite a few bytes by others."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    """Keep the beginning, the end, or take out a piece."""
    first, second = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return rng.choice((data[:first], data[first:], data[:first] + data[second:])) or b"\n"


def move_lines(data: bytes, rng: random.Random) -> bytes:
    """Delete, repeat, swap or tear lines."""
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 4)):
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(4)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(other, lines[at])
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    return b"\n".join(lines)


def spoil_tokens(data: bytes, rng: random.Random) -> bytes:
    """Replace, drop or add words of some lines."""
    lines = data.split(b"\n")
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(lines))
        separator = b"," if lines[at].count(b",") > 2 else b" "
        words = lines[at].split(separator)
        where = rng.randrange(len(words))
        kind = rng.randrange(3)
        if kind == 0:
            words[where] = rng.choice(HOSTILE).encode()
        elif kind == 1:
            del words[where]
        else:
            words.insert(where, rng.choice(HOSTILE).encode())
        lines[at] = separator.join(words)
    return b"\n".join(lines)


def add_noise(data: bytes, rng: random.Random) -> bytes:
    """Insert what logs hold: long lines, binary, colours, JSON pieces, endless brackets."""
    noise = rng.choice(
        (
            b"x" * rng.choice((100, 20_000, 200_000)),
            bytes(rng.randrange(256) for _ in range(200)),
            b"\x1b[31mred\x1b[0m",
            b'{"a": 1}',
            b"[" * rng.choice((10, 3000)),
            b"\r",
            b"[1,0]<stdout>:",
            b"{" * 500,
            b"\xff\xfe",
        )
    )
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice((b"", b"\n")) + noise + rng.choice((b"", b"\n")) + data[at:]


def splice(data: bytes, rng: random.Random) -> bytes:
    """Put another tool's output before, after or into this one."""
    other = rng.choice(corpus())[1].read_bytes()
    at = rng.randrange(len(data) + 1)
    return rng.choice((other + data, data + other, data[:at] + other[: rng.randrange(len(other) + 1)] + data[at:]))


def spoil_json(data: bytes, rng: random.Random) -> bytes:
    """Replace, drop or deepen nodes of a JSON document."""
    try:
        document = json.loads(data[max(data.find(b"{"), 0) :])
    except (ValueError, RecursionError):
        return spoil_tokens(data, rng)
    for _ in range(rng.randint(1, 6)):
        node = document
        while isinstance(node, dict | list) and node:
            key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
            child = node[key]
            if not (isinstance(child, dict | list) and child) or rng.random() < 0.15:
                kind = rng.randrange(4)
                if kind == 0:
                    del node[key]
                elif kind == 1:
                    node[key] = [copy.deepcopy(child) for _ in range(rng.choice((1, 2, 50)))]
                else:
                    node[key] = copy.deepcopy(rng.choice(HOSTILE_JSON))
                break
            node = child
    return json.dumps(document).encode()


MUTATIONS: tuple[Mutation, ...] = (
    flip_bytes,
    cut,
    move_lines,
    spoil_tokens,
    spoil_tokens,
    add_noise,
    splice,
    spoil_json,
)


def mutate(data: bytes, seed: str) -> bytes:
    """Damage a file, the same way for the same seed."""
    rng = random.Random(seed)
    if b"{" in data and rng.random() < 0.7:
        # Damage below the syntax: most other damage to JSON is refused by the parser.
        return spoil_json(data, rng)
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(MUTATIONS)(data or b"\n", rng)
    return data or b"\n"


def attempt(form: str, path: Path, out: Path) -> str:
    """Import one file; say ``accepted`` or the error's name.

    Raises
    ------
    Exception
        Whatever an importer must not let through, and AssertionError for a table that breaks its promises.
    """
    mapping = FIXTURES / "generic.toml" if form == "generic" else None
    refusal: BayesperfError | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            result = import_files(form, [path], mapping=mapping)
        except BayesperfError as error:
            refusal = error
        if refusal is not None:
            assert str(refusal).strip(), "an error without a message"
            return type(refusal).__name__
        table = result.table
        assert len(table) == result.report.rows > 0
        for name in ("time_s", "bytes", "flops"):
            assert np.isfinite(table[name]).all(), f"{name} is not finite"
        assert (table["time_s"] > 0).all()
        validate(table)
        assert result.report.text()
        json.dumps(result.report.as_dict(), allow_nan=False)
        write_measurements(table, out)
    return "accepted"


def main() -> int:
    """Fuzz until the time is over; 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Fuzz the importers.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--keep", type=Path, help="folder for failing files; a temporary one when absent")
    parser.add_argument("--format", help="only this format")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    keep = arguments.keep or Path(tempfile.mkdtemp(prefix="fuzz-formats-"))
    keep.mkdir(parents=True, exist_ok=True)
    files = [(form, path) for form, path in corpus() if arguments.format in (None, form)]
    outcomes: dict[str, Counter[str]] = {form: Counter() for form, _ in files}
    slowest: dict[str, float] = dict.fromkeys(outcomes, 0.0)
    failures, case, end = 0, 0, time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            form, path = files[case % len(files)]
            data = mutate(path.read_bytes(), f"{arguments.seed}:{case}:{path.name}")
            # Under its own name: importers may take hints from it.
            work = Path(folder) / path.name
            work.write_bytes(data)
            start = time.monotonic()
            try:
                outcome = attempt(form, work, Path(folder) / "out.parquet")
            # Anything at all is a finding here.
            except Exception as error:  # noqa: BLE001
                failures, outcome = failures + 1, "FAILED"
                name = f"{form}-{hashlib.sha256(data).hexdigest()[:10]}{path.suffix}"
                (keep / name).write_bytes(data)
                print(f"{name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            took = time.monotonic() - start
            if took > SLOW_S:
                failures, outcome = failures + 1, "SLOW"
                (keep / f"{form}-slow-{case}{path.suffix}").write_bytes(data)
            outcomes[form][outcome] += 1
            slowest[form] = max(slowest[form], took)
            case += 1
    print(f"{'format':18} {'cases':>7} {'accepted':>9} {'refused':>8} {'failed':>7} {'slowest s':>10}")
    for form, counts in sorted(outcomes.items()):
        failed = counts["FAILED"] + counts["SLOW"]
        refused = counts.total() - counts["accepted"] - failed
        print(f"{form:18} {counts.total():7} {counts['accepted']:9} {refused:8} {failed:7} {slowest[form]:10.2f}")
    print(f"{case} cases in {arguments.seconds:g} s, seed {arguments.seed}; failing files are in {keep}")
    print(f"failures {failures}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
