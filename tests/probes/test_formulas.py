"""Flops and bytes of the probes, by hand for one shape each."""

from __future__ import annotations

from typing import Any

import pytest

from bayesperf import plugins
from bayesperf.errors import InputError

HAND = [
    ("matmul", {"op": "matmul", "dtype": "float32", "m": 2, "n": 3, "k": 5}, 60, 4 * (10 + 15 + 6), 6),
    ("matmul", {"op": "matmul", "dtype": "bfloat16", "m": 2, "n": 3, "k": 5}, 60, 2 * (10 + 15 + 6), 6),
    ("stream", {"op": "stream_copy", "dtype": "float32", "elements": 1024}, 0, 2 * 4096, 1024),
    ("stream", {"op": "stream_scale", "dtype": "float32", "elements": 1024}, 1024, 2 * 4096, 1024),
    ("stream", {"op": "stream_add", "dtype": "float32", "elements": 1024}, 1024, 3 * 4096, 1024),
    ("stream", {"op": "stream_triad", "dtype": "float32", "elements": 1024}, 2048, 3 * 4096, 1024),
    ("stream", {"op": "stream_read", "dtype": "float32", "elements": 2048}, 4096, 8192 + 4 * (1024 + 2), 2),
    ("intensity", {"op": "fma_chain", "dtype": "float32", "elements": 1024, "chain": 8}, 16 * 1024, 8192, 1024),
    ("reduction", {"op": "reduce", "dtype": "float32", "rows": 3, "cols": 8}, 24, 4 * (24 + 3), 3),
    ("reduction", {"op": "reduce_columns", "dtype": "bfloat16", "rows": 3, "cols": 8}, 24, 2 * (24 + 8), 8),
    ("latency", {"op": "pointer_chase", "dtype": "int32", "lines": 999, "line_bytes": 64, "hops": 256}, 0, 256 * 64, 1),
    ("access", {"op": "gather_random", "dtype": "float32", "elements": 10, "line_bytes": 64}, 0, 10 * (4 + 8), 10),
    ("access", {"op": "scatter_random", "dtype": "bfloat16", "elements": 10, "line_bytes": 64}, 0, 10 * (4 + 4), 10),
    ("access", {"op": "strided_read", "dtype": "float32", "elements": 9, "stride": 4, "line_bytes": 64}, 0, 72, 9),
    ("transfer", {"op": "copy_h2d", "dtype": "float32", "elements": 10}, 0, 40, 10),
    ("transfer", {"op": "copy_p2p", "dtype": "bfloat16", "elements": 10}, 0, 20, 10),
    ("collectives", {"op": "all_reduce", "dtype": "float32", "elements": 12, "n_devices": 3}, 0, 2 * 48, 12),
    ("collectives", {"op": "all_gather", "dtype": "float32", "elements": 12, "n_devices": 3}, 0, 48 + 16, 12),
    ("collectives", {"op": "reduce_scatter", "dtype": "float32", "elements": 12, "n_devices": 3}, 0, 48 + 16, 4),
    ("compilation", {"op": "compile_trace", "dtype": "float32", "layers": 2}, 0, 0, 1),
    ("dispatch", {"op": "dispatch", "dtype": "float32"}, 0, 0, 1),
    ("dispatch", {"op": "allocation", "dtype": "float32", "elements": 10}, 0, 40, 10),
    ("softmax", {"op": "softmax", "dtype": "float32", "rows": 2, "cols": 8}, 80, 128, 16),
    ("layer_norm", {"op": "layer_norm", "dtype": "bfloat16", "rows": 2, "cols": 8}, 112, 64 + 32, 16),
    (
        "mlp_block",
        {"op": "mlp_block", "dtype": "float32", "rows": 2, "hidden": 4, "cols": 16},
        2 * (2 * 2 * 4 * 16) + 10 * 32 + 8,
        4 * (2 * 8 + 2 * 64),
        8,
    ),
    (
        "attention",
        {"op": "attention", "dtype": "float32", "batch": 1, "heads": 2, "sequence": 8, "head_dim": 4},
        2 * (2 * 2 * 8 * 8 * 4 + 5 * 64),
        4 * 4 * 64,
        64,
    ),
]


@pytest.mark.parametrize(("name", "config", "flops", "size", "parallelism"), HAND, ids=lambda v: str(v)[:24])
def test_formula(name: str, config: dict[str, Any], flops: float, size: float, parallelism: float) -> None:
    work = plugins.load("probe", name).work(config)
    assert (work.flops, work.bytes, work.parallelism) == (flops, size, parallelism)


@pytest.mark.parametrize(
    ("name", "sweep"),
    [
        ("matmul", {"dtypes": ["float12"], "shapes": [8]}),
        ("stream", {"ops": ["stream_fold"], "working_set_bytes": [1e5]}),
        ("dispatch", {"ops": ["nothing"]}),
        ("reduction", {"ops": ["reduce_all"], "shapes": [[8, 8]]}),
        ("access", {"ops": ["gather"], "working_set_bytes": [1e5]}),
        ("transfer", {"ops": ["copy"], "message_bytes": [1e5]}),
        ("collectives", {"ops": ["broadcast"], "message_bytes": [1e5], "n_devices": [2]}),
        ("compilation", {"ops": ["compile"], "layers": [1]}),
    ],
)
def test_unknown_names_in_a_sweep_list_the_known(name: str, sweep: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"choose from|there are"):
        plugins.load("probe", name).configurations(sweep)


@pytest.mark.parametrize(
    ("op", "lines"),
    [
        ("gather_random", 10 * (4 + 64 + 8)),
        ("gather_sequential", 10 * (4 + 12)),
        ("scatter_random", 10 * (4 + 4 + 128)),
        ("scatter_sequential", 10 * (4 + 12)),
    ],
)
def test_what_lines_carry(op: str, lines: int) -> None:
    probe = plugins.load("probe", "access")
    assert probe.work({"op": op, "dtype": "float32", "elements": 10, "line_bytes": 64}).line_bytes == lines


@pytest.mark.parametrize(("stride", "lines"), [(4, 16), (16, 64), (64, 64)])
def test_a_stride_brings_a_line_at_most(stride: int, lines: int) -> None:
    config = {"op": "strided_read", "dtype": "float32", "elements": 10, "stride": stride, "line_bytes": 64}
    assert plugins.load("probe", "access").work(config).line_bytes == 10 * (lines + 8)


def test_stream_sizes_follow_the_working_set() -> None:
    probe = plugins.load("probe", "stream")
    for op in probe.ops:
        (config,) = probe.configurations({"ops": [op], "working_set_bytes": [12e6]})
        assert probe.work(config).working_set_bytes == pytest.approx(12e6, rel=0.01)
