"""Parts of neural layers that workloads share: in JAX, in NumPy, and their flops.

`prefill` and `decode` are a pre-norm transformer layer, ``x + attention(norm(x)) wo``, then
``x + gelu(norm(x) w1) w2``: root-mean-square norm without a learned scale, hidden = heads x head_dim, four times as
many columns as hidden between w1 and w2, no biases.

flops per token of hidden h: ``24 h^2`` in products with weights, ``40 h`` for the GELU (ten per value), ``3 h`` per
norm, ``h`` per residual.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probes.shaped import weights

__all__ = [
    "feed_forward",
    "feed_forward_in_numpy",
    "gelu_in_numpy",
    "layer_weights",
    "norm",
    "norm_in_numpy",
    "product",
    "softmax_in_numpy",
    "token_flops",
]

EPSILON = 1e-6


def token_flops(hidden: int, norms: int) -> float:
    """Flops of one token outside attention's products with keys and values; `norms` of them are norms."""
    return 24.0 * hidden**2 + (40 + 3 * norms + 2) * hidden


def layer_weights(rng: np.random.Generator, hidden: int, dtype: str) -> tuple[np.ndarray, ...]:
    """``wq``, ``wk``, ``wv``, ``wo`` of (hidden, hidden), ``w1`` of (hidden, 4 hidden), ``w2`` back."""
    shapes = [*[(hidden, hidden)] * 4, (hidden, 4 * hidden), (4 * hidden, hidden)]
    return tuple(weights(rng, shape, dtype) for shape in shapes)


def norm(x: Any) -> Any:
    """Root-mean-square norm of the last axis, statistics in float32."""
    import jax.numpy as jnp
    from jax import lax

    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt((wide * wide).mean(axis=-1, keepdims=True) + EPSILON)).astype(x.dtype)


def product(x: Any, w: Any) -> Any:
    """Last axis of `x` times the first of `w`."""
    from jax import lax

    return lax.dot_general(x, w, (((x.ndim - 1,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)


def feed_forward(x: Any, w1: Any, w2: Any) -> Any:
    """The second half of the layer."""
    import jax

    return x + product(jax.nn.gelu(product(norm(x), w1), approximate=True), w2)


def norm_in_numpy(x: np.ndarray) -> np.ndarray:
    """As `norm`."""
    return np.asarray(x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON))


def softmax_in_numpy(x: np.ndarray) -> np.ndarray:
    """Softmax of the last axis."""
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


def gelu_in_numpy(x: np.ndarray) -> np.ndarray:
    """The tanh form of the GELU."""
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def feed_forward_in_numpy(x: np.ndarray, w1: np.ndarray, w2: np.ndarray) -> np.ndarray:
    """As `feed_forward`."""
    return np.asarray(x + gelu_in_numpy(norm_in_numpy(x) @ w1) @ w2)
