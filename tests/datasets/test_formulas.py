"""FLOP and byte formulas against hand counts and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bayesperf.datasets import formulas
from bayesperf.formats import collectives


def _pair(work: formulas.Work) -> tuple[float, float]:
    return float(work.flops), float(work.bytes)


def test_matmul_counts() -> None:
    work = formulas.matmul(2, 3, 5, batch=7)
    assert work.flops == 2 * 7 * 2 * 3 * 5
    assert work.bytes == 4 * 7 * (2 * 5 + 5 * 3 + 2 * 3)
    assert work.parallelism == 7 * 2 * 3


def test_matmul_with_bias_and_mixed_widths() -> None:
    work = formulas.matmul(2, 3, 5, itemsize=1.0, weight_itemsize=0.5, out_itemsize=2.0, bias=True)
    assert work.flops == 2 * 2 * 3 * 5 + 2 * 3
    assert work.bytes == 2 * 5 * 1 + 5 * 3 * 0.5 + 2 * 3 * 2 + 3 * 2


def test_counts_of_large_shapes_do_not_overflow() -> None:
    work = formulas.matmul(np.array([65536]), np.array([65536]), np.array([65536]), batch=np.array([65536]))
    assert work.flops[0] == 2.0 * 65536.0**4


def test_matmul_equals_a_counted_loop() -> None:
    m, n, k = 3, 4, 5
    operations = sum(2 for _ in itertools.product(range(m), range(n), range(k)))
    assert formulas.matmul(m, n, k).flops == operations


def test_vector_operations() -> None:
    assert formulas.elementwise(10, operands=2).bytes == 10 * 3 * 4
    assert formulas.elementwise(10, operands=1, itemsize=2.0).bytes == 10 * 2 * 2
    assert _pair(formulas.softmax(3, 7)) == (5 * 21, 8 * 21)
    assert formulas.layer_norm(3, 7).bytes == 4 * (2 * 21 + 2 * 7 + 2 * 3)
    assert formulas.layer_norm(3, 7, itemsize=2.0, parameters=1, statistics=0).bytes == 2 * (2 * 21 + 7)
    assert _pair(formulas.copy(5)) == (0, 40)
    assert formulas.embedding(3, 8).bytes == 2 * 2 * 24 + 3 * 8
    assert _pair(formulas.rope(3, 4, 8)) == (3 * 96, 2 * (2 * 96 + 3 * 8))


def test_conv2d_counts_the_output_size() -> None:
    work = formulas.conv2d(2, 3, 4, 3, 5, stride=2, padding=1)
    out = 3  # (5 + 2 - 3) // 2 + 1
    assert work.flops == 2 * 2 * 4 * out * out * 3 * 9
    assert work.bytes == 4 * (2 * 3 * 25 + 4 * 3 * 9 + 2 * 4 * out * out)


@pytest.mark.parametrize("past", [0, 1, 5])
@pytest.mark.parametrize("window", [0, 1, 3, 100])
@pytest.mark.parametrize("sequence", [1, 2, 7])
def test_context_attention_counts_visible_pairs(sequence: int, window: int, past: int) -> None:
    batch, heads, kv_heads, dim = 2, 4, 2, 8
    reach = window or 10**9
    pairs = sum(min(reach, past + i) for i in range(1, sequence + 1))
    work = formulas.attention_context(batch, sequence, heads, kv_heads, dim, past=past, window=window, kv_itemsize=1.0)
    assert work.flops == 4 * batch * heads * dim * pairs
    cached = 2 * batch * kv_heads * dim * min(past, reach) * 1
    new = 2 * batch * sequence * heads * dim * 2 + 2 * batch * sequence * kv_heads * dim * (2 + 1)
    assert work.bytes == new + cached


def test_decode_attention() -> None:
    work = formulas.attention_decode(2, 10, 4, 2, 8, kv_itemsize=1.0)
    assert work.flops == 4 * 2 * 4 * 8 * 10
    assert work.bytes == 2 * 2 * 2 * 8 * 10 * 1 + 2 * 2 * 4 * 8 * 2
    assert formulas.attention_decode(2, 10, 4, 2, 8, window=4).flops == 4 * 2 * 4 * 8 * 4


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
@pytest.mark.parametrize("ranks", [2, 8])
def test_collectives_count_as_the_importers_do(op: str, ranks: int) -> None:
    work = formulas.collective(op, 1024.0, ranks)
    assert work.flops == 0
    assert work.bytes == collectives.traffic(op, 1024.0, ranks)
