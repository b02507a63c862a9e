"""FLOP and byte counts of the operations found in other people's measurements. Written once, used by every data set.

Counts are of one execution. Bytes are **compulsory traffic**: every operand read once, every result written once,
nothing re-read from a cache that is too small, no write-allocate. A multiply-add is 2 FLOP. All arguments are numbers
or arrays that broadcast; results are float64, so that products of large shapes do not overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "COLLECTIVES",
    "ITEMSIZE",
    "Work",
    "attention_context",
    "attention_decode",
    "collective",
    "conv2d",
    "copy",
    "elementwise",
    "embedding",
    "layer_norm",
    "matmul",
    "rope",
    "softmax",
]

ITEMSIZE = {
    "float64": 8.0,
    "float32": 4.0,
    "tf32": 4.0,
    "bfloat16": 2.0,
    "float16": 2.0,
    "half": 2.0,
    "float8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
}
"""Bytes of one stored element."""

Array = NDArray[np.float64]


class Work(NamedTuple):
    """FLOP, bytes and independent output elements of one execution."""

    flops: Array
    bytes: Array
    parallelism: Array


def _f(value: ArrayLike) -> Array:
    return np.asarray(value, dtype=np.float64)


def matmul(
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    *,
    batch: ArrayLike = 1,
    itemsize: ArrayLike = 4.0,
    weight_itemsize: ArrayLike | None = None,
    out_itemsize: ArrayLike | None = None,
    bias: bool = False,
) -> Work:
    """(batch, m, k) times (batch, k, n); **k is the contraction**.

    FLOP = 2 batch m n k (+ batch m n with bias); bytes = batch (m k + k n + m n) elements (+ n with bias).
    """
    m, n, k, batch = _f(m), _f(n), _f(k), _f(batch)
    item = _f(itemsize)
    weight = item if weight_itemsize is None else _f(weight_itemsize)
    out = item if out_itemsize is None else _f(out_itemsize)
    outputs = batch * m * n
    flops = 2.0 * outputs * k + (outputs if bias else 0.0)
    traffic = batch * (m * k * item + k * n * weight + m * n * out) + (n * out if bias else 0.0)
    return Work(flops, traffic, outputs)


def elementwise(elements: ArrayLike, *, operands: ArrayLike, itemsize: ArrayLike = 4.0, flops: ArrayLike = 1.0) -> Work:
    """Result of `elements` from `operands` arrays of that size; `flops` per element."""
    elements = _f(elements)
    return Work(elements * _f(flops), elements * (_f(operands) + 1.0) * _f(itemsize), elements)


def softmax(rows: ArrayLike, cols: ArrayLike, *, itemsize: ArrayLike = 4.0) -> Work:
    """Softmax along `cols`: 5 FLOP per element (maximum, subtract, exponential, sum, divide), one read, one write."""
    elements = _f(rows) * _f(cols)
    return Work(5.0 * elements, 2.0 * elements * _f(itemsize), elements)


def layer_norm(
    rows: ArrayLike, cols: ArrayLike, *, itemsize: ArrayLike = 4.0, parameters: int = 2, statistics: int = 2
) -> Work:
    """Layer norm along `cols`: 6 FLOP per element (mean, variance, two sums, scale, shift).

    Bytes: one read and one write per element, `parameters` vectors of `cols` (weight and bias), `statistics` vectors of
    `rows` (mean and reciprocal deviation, which PyTorch's kernel writes; an RMS norm has one parameter and none).
    """
    rows, cols = _f(rows), _f(cols)
    elements = rows * cols
    traffic = (2.0 * elements + parameters * cols + statistics * rows) * _f(itemsize)
    return Work(6.0 * elements, traffic, elements)


def conv2d(
    batch: ArrayLike,
    channels: ArrayLike,
    filters: ArrayLike,
    kernel: ArrayLike,
    size: ArrayLike,
    *,
    stride: ArrayLike = 1,
    padding: ArrayLike = 0,
    itemsize: ArrayLike = 4.0,
) -> Work:
    """Square 2-D convolution in **direct form**: 2 batch filters out^2 channels kernel^2 FLOP.

    A library that picks Winograd or FFT does fewer, so that the apparent rate may exceed the hardware's peak.
    """
    batch, channels, filters, kernel, size = _f(batch), _f(channels), _f(filters), _f(kernel), _f(size)
    out = np.floor((size + 2.0 * _f(padding) - kernel) / _f(stride)) + 1.0
    outputs = batch * filters * out**2
    traffic = batch * channels * size**2 + filters * channels * kernel**2 + outputs
    return Work(2.0 * outputs * channels * kernel**2, traffic * _f(itemsize), outputs)


def copy(elements: ArrayLike, *, itemsize: ArrayLike = 4.0) -> Work:
    """One read, one write per element, no arithmetic."""
    elements = _f(elements)
    return Work(np.zeros_like(elements), 2.0 * elements * _f(itemsize), elements)


def attention_context(
    batch: ArrayLike,
    sequence: ArrayLike,
    heads: ArrayLike,
    kv_heads: ArrayLike,
    head_dim: ArrayLike,
    *,
    past: ArrayLike = 0,
    window: ArrayLike = 0,
    itemsize: ArrayLike = 2.0,
    kv_itemsize: ArrayLike = 2.0,
) -> Work:
    """Causal self-attention of a prompt, with `past` tokens cached before it; `window` > 0 limits the look back.

    Scores and weighted values are 4 head_dim FLOP per visible (query, key) pair and head; the i-th query sees
    min(window, past + i) keys. The softmax is not counted. Bytes: queries and outputs, keys and values read in
    `itemsize`; keys and values written to the cache, and cached ones that are visible read, in `kv_itemsize`.
    """
    batch, s, heads, kv, dim = _f(batch), _f(sequence), _f(heads), _f(kv_heads), _f(head_dim)
    past, window = _f(past), np.where(_f(window) > 0, _f(window), np.inf)
    pairs = _visible(past + s, window) - _visible(past, window)
    seen = np.minimum(past, window)
    traffic = 2.0 * batch * s * heads * dim * _f(itemsize)
    traffic = traffic + 2.0 * batch * kv * dim * (s * (_f(itemsize) + _f(kv_itemsize)) + seen * _f(kv_itemsize))
    return Work(_f(4.0 * batch * heads * dim * pairs), _f(traffic), _f(batch * heads * s * dim))


def _visible(length: Array, window: Array) -> Array:
    # Sum over the first `length` positions of how many keys each sees: 1, 2, ... up to the window.
    reach = np.minimum(length, window)
    beyond = length - reach
    return reach * (reach + 1.0) / 2.0 + np.where(beyond > 0, beyond * np.where(np.isfinite(window), window, 0.0), 0.0)


def attention_decode(
    batch: ArrayLike,
    past: ArrayLike,
    heads: ArrayLike,
    kv_heads: ArrayLike,
    head_dim: ArrayLike,
    *,
    window: ArrayLike = 0,
    itemsize: ArrayLike = 2.0,
    kv_itemsize: ArrayLike = 2.0,
) -> Work:
    """One new token per sequence attending to `past` cached ones (its own included).

    FLOP = 4 batch heads head_dim visible; bytes: the visible part of the cache is read in `kv_itemsize`, one query and
    one output per head in `itemsize`.
    """
    batch, past, heads, kv, dim = _f(batch), _f(past), _f(heads), _f(kv_heads), _f(head_dim)
    visible = np.where(_f(window) > 0, np.minimum(_f(window), past), past)
    traffic = 2.0 * batch * kv * dim * visible * _f(kv_itemsize) + 2.0 * batch * heads * dim * _f(itemsize)
    return Work(4.0 * batch * heads * dim * visible, traffic, batch * heads * dim)


COLLECTIVES: dict[str, Callable[[Array], Array]] = {
    # Buffers of one rank read and written once, over the message.
    "all_reduce": lambda n: np.full_like(n, 2.0),
    "all_gather": lambda n: 1.0 + 1.0 / n,
    "reduce_scatter": lambda n: 1.0 + 1.0 / n,
    "all_to_all": lambda n: np.full_like(n, 2.0),
    "send_recv": lambda n: np.ones_like(n),
}


def collective(op: str, message_bytes: ArrayLike, ranks: ArrayLike) -> Work:
    """Collective as one rank sees it: no FLOP, its send buffer read once, its receive buffer written once.

    The message is what nccl-tests calls ``size``: the larger of a rank's send and receive buffers. ``send_recv`` is one
    rank sending and another receiving, so that each touches its buffer once.
    """
    message, ranks = _f(message_bytes), _f(ranks)
    traffic = _f(message * COLLECTIVES[op](ranks))
    return Work(np.zeros_like(traffic), traffic, np.full_like(traffic, np.nan))


def embedding(tokens: ArrayLike, width: ArrayLike, *, itemsize: ArrayLike = 2.0, index_itemsize: float = 8.0) -> Work:
    """Rows of a table gathered by index: one read and one write per element, one index per token, no arithmetic."""
    tokens, width = _f(tokens), _f(width)
    elements = tokens * width
    return Work(np.zeros_like(elements), 2.0 * elements * _f(itemsize) + tokens * index_itemsize, elements)


def rope(tokens: ArrayLike, heads: ArrayLike, head_dim: ArrayLike, *, itemsize: ArrayLike = 2.0) -> Work:
    """Rotary embedding in place: 3 FLOP per element, one read, one write; a row of cosines and sines per token."""
    tokens, heads, dim = _f(tokens), _f(heads), _f(head_dim)
    elements = tokens * heads * dim
    return Work(3.0 * elements, (2.0 * elements + tokens * dim) * _f(itemsize), elements)
