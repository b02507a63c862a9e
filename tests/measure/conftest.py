"""A catalogue of faults: probes that hang, crash, cheat and run out of memory, installed for one test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bayesperf import plugins

FAULTS = '''
"""Probes with faults of their own."""

import os
import time

import numpy as np

from bayesperf.probe import Kernel, LoopExpectation, Probe, Work, uniform


class Fault(Probe):
    name = "fault"
    ops = ("hang", "crash", "fold", "memory", "raise", "wrong", "fine", "slow", "huge", "dtype")

    def configurations(self, sweep):
        sizes = [2048 + k for k in range(sweep.get("n", 1))]
        return [{"op": op, "dtype": "float32", "elements": size} for op in sweep["ops"] for size in sizes]

    def work(self, config):
        n = config["elements"]
        return Work(n, 8 * n, 12 * n, 1e18 if config["op"] == "huge" else 8 * n, n)

    def kernel(self, config, rng):
        op, n = config["op"], config["elements"]
        if op == "hang":
            time.sleep(1000)
        if op == "crash":
            print("about to fail", flush=True)
            os.kill(os.getpid(), 11)
        if op == "raise":
            raise RuntimeError("a probe of mine is broken")
        if op == "memory":
            raise MemoryError("no more")
        if op == "dtype":
            raise NotImplementedError("this device has no such type")
        if op == "slow":
            time.sleep(0.3)
        t, b = uniform(rng, (n,)), uniform(rng, (n,))
        if op == "fold":
            return Kernel((b,), (t,), lambda i, c, b: (c[0] * 1.0,), LoopExpectation((("multiply",),)))
        return Kernel((b,), (t,), lambda i, c, b: (b * (3.0 + 1e-6 * i),), LoopExpectation((("multiply",),)))

    def reference(self, config, kernel, iterations):
        b = np.asarray(kernel.operands[0], dtype=np.float64)
        return (b * (3.0 + 1e-6 * (iterations - 1)) * (1.1 if config["op"] == "wrong" else 1.0),)


probe = Fault()
'''

SUITE = """
description = "faults"
processes = {processes}
scopes = ["all"]

[budget]
point_s = 0.02
longest_share = 0.1
retries = 6
timeout_s = {timeout_s}

[[probe]]
name = "fault"
sweep = {{ ops = {ops}, n = {n} }}
"""

CONTENTION = """
[[contention]]
victim = {{ name = "fault", sweep = {{ ops = {victims} }} }}
aggressors = [{{ name = "fault", sweep = {{ ops = {aggressors} }} }}]
n = {n}
mode = {mode}
"""

MakeSuite = Callable[..., Path]


InstallProbe = Callable[[str, str], None]


@pytest.fixture
def install_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallProbe]:
    """Yields a function that installs a probe, by its name and its module's text, for one test and its workers."""

    def install(name: str, text: str) -> None:
        folder = tmp_path / "plugin"
        metadata = folder / f"{name}_probe-1.0.dist-info"
        metadata.mkdir(parents=True)
        (folder / f"{name}_probe.py").write_text(text)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-probe\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[bayesperf.probes]\n{name} = {name}_probe:probe\n")
        monkeypatch.syspath_prepend(str(folder))
        # Nothing behind the last separator would be the folder that a worker runs in.
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])))
        # The tests measure on CPU wherever they run; what is set for the session's own JAX must not reach the workers.
        monkeypatch.setenv("JAX_PLATFORMS", "cpu")
        plugins._entry_points.cache_clear()

    yield install
    plugins._entry_points.cache_clear()


@pytest.fixture
def fault_suite(tmp_path: Path, install_probe: InstallProbe) -> MakeSuite:
    """Installs the faulty probe; a function that writes a suite of its ops and returns the path."""
    install_probe("fault", FAULTS)

    def write(
        *ops: str, processes: int = 1, n: int = 1, timeout_s: float = 60.0,
        aggressors: Sequence[str] = (), beside: Sequence[int] = (0, 1), mode: Sequence[str] = ("processes",),
    ) -> Path:  # fmt: skip
        path = tmp_path / "faults.toml"
        text = SUITE.format(ops=list(ops), processes=processes, n=n, timeout_s=timeout_s)
        if aggressors:
            text += CONTENTION.format(victims=list(ops), aggressors=list(aggressors), n=list(beside), mode=list(mode))
        path.write_text(text.replace("'", '"'))
        return path

    return write
