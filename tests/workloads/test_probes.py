"""Fitted and predicted workloads are counted by one rule: the kernels of probes, counted from their programs."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import bayesperf as bp
from bayesperf import plugins
from bayesperf.probe import Config, Probe


@cache
def counted_case(at: int) -> pd.DataFrame:
    name, config = CASES[at]
    return counted(plugins.load("probe", name), config)


def counted(probe: Probe, config: Config) -> pd.DataFrame:
    """Workloads of one iteration, its carry updated in place as in the engine's loop."""
    kernel = probe.kernel(config, np.random.default_rng(3))
    step = jax.jit(kernel.step, donate_argnums=1)
    return bp.workload(step, np.int32(1), kernel.carry, *kernel.operands)


def largest(table: pd.DataFrame) -> dict[Any, Any]:
    """The row that moves most."""
    return table.sort_values("bytes").to_dict(orient="records")[-1]


def total(table: pd.DataFrame, column: str) -> float:
    return float((table[column] * table["count"]).sum())


SINGLE: dict[str, dict[str, Any]] = {
    "matmul": {"dtypes": ["float32", "bfloat16", "int8"], "shapes": [64, [16, 96, 64], [3, 32, 48, 16]]},
    "stream": {
        "ops": ["stream_copy", "stream_scale", "stream_add", "stream_triad", "stream_read"],
        "working_set_bytes": [4e5],
    },
    "intensity": {"chain": [1, 16], "working_set_bytes": [4e5]},
    "transcendental": {"working_set_bytes": [16384]},
    "conv2d": {"dtypes": ["float32"], "shapes": [[2, 9, 12, 8, 16, 3]]},
    "embedding": {"dtypes": ["float32"], "shapes": [[64, 256, 64]]},
    "fft": {"dtypes": ["float32"], "shapes": [[4, 256]]},
    "sort": {"dtypes": ["float32"], "shapes": [[4, 256]]},
    "access": {"ops": ["gather_random", "strided_read"], "working_set_bytes": [16384], "stride": [4]},
}
"""Probes whose iteration is one kernel: flops, bytes and working set are the probe's own."""

CASES = [
    (name, config) for name, sweep in SINGLE.items() for config in plugins.load("probe", name).configurations(sweep)
]


@pytest.mark.parametrize("at", range(len(CASES)), ids=[f"{c['op']}-{c['dtype']}-{i}" for i, (_, c) in enumerate(CASES)])
def test_a_kernel_counts_as_its_probe_does(at: int) -> None:
    name, config = CASES[at]
    work, table = plugins.load("probe", name).work(config), counted_case(at)
    # What chains the iterations adds a few scalars.
    assert total(table, "flops") == pytest.approx(work.flops, abs=4)
    assert total(table, "bytes") == pytest.approx(work.bytes, abs=32)
    row = largest(table)
    assert row["working_set_bytes"] == pytest.approx(work.working_set_bytes, abs=32)
    assert row["parallelism"] == pytest.approx(work.parallelism)
    assert row["dtype"] == config["dtype"]


FAMILIES = {
    "matmul": "matmul", "conv2d": "conv2d", "embedding": "embedding", "fft": "fft", "sort": "sort",
    "gather_random": "gather_random", "strided_read": "strided_read", "stream_copy": "stream_copy",
    "stream_triad": "elementwise", "fma_chain": "elementwise", "exp": "elementwise", "stream_read": "matvec",
}  # fmt: skip


@pytest.mark.parametrize("op", FAMILIES)
def test_a_kernel_has_the_name_that_its_probe_has_or_one_that_it_stands_in_for(op: str) -> None:
    table = counted_case(next(at for at, (_, config) in enumerate(CASES) if config["op"] == op))
    assert largest(table)["op"] == FAMILIES[op]


BLOCKS: dict[str, tuple[dict[str, Any], float]] = {
    "softmax": ({"dtypes": ["float32"], "shapes": [[64, 512]]}, 0.001),
    # Its probe counts one operation less per value than XLA needs.
    "layer_norm": ({"dtypes": ["float32"], "shapes": [[64, 512]]}, 0.15),
    "attention": ({"dtypes": ["float32"], "shapes": [[1, 2, 128, 64]]}, 0.005),
    "mlp_block": ({"dtypes": ["float32", "bfloat16"], "shapes": [[64, 128]]}, 0.005),
    "mlp_train": ({"dtypes": ["float32"], "shapes": [[16, 32]]}, 0.005),
    "conv_block": ({"dtypes": ["float32"], "shapes": [[1, 10, 12, 8]]}, 0.0),
    "prefill": ({"dtypes": ["float32"], "shapes": [[2, 24, 2, 16]]}, 0.005),
    "decode": ({"dtypes": ["float32"], "shapes": [[2, 16, 2, 16]]}, 0.005),
    "stencil": ({"dtypes": ["float32"], "shapes": [[32, 48, 4]]}, 0.001),
}
"""Workloads of several kernels, and how far their formula may be from the program's operations."""

LONG = ("prefill", "decode", "mlp_train")
"""Those that take longest to compile."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in BLOCKS])
def test_a_block_computes_what_its_formula_says_and_moves_at_least_that(name: str) -> None:
    sweep, tolerance = BLOCKS[name]
    probe = plugins.load("probe", name)
    for config in probe.configurations(sweep):
        work, table = probe.work(config), counted(probe, config)
        assert total(table, "flops") == pytest.approx(work.flops, rel=max(tolerance, 1e-9))
        # A formula's bytes are those of one perfectly fused kernel.
        assert total(table, "bytes") >= work.bytes
