"""A transformer layer over whole sequences, causal, that also yields the keys and values for the cache (prefill).

With b sequences of s tokens, H heads of d, h = H d: flops ``b s (24 h^2 + 48 h) + 4 b h s^2 + 5 b H s^2`` (weights,
GELU, norms and residuals as in `layers`; scores and their product with the values over the full square, half of
which the mask discards; softmax). Compulsory bytes ``(4 b s h + 12 h^2) e``: tokens in and out, keys and values out,
weights in. Scores, in float32, and the four-fold hidden activations count in the working set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, chained, element_bytes, uniform
from bayesperf.probes.shaped import ShapedFunction
from bayesperf.probes.workloads.layers import (
    feed_forward,
    feed_forward_in_numpy,
    layer_weights,
    norm,
    norm_in_numpy,
    product,
    softmax_in_numpy,
    token_flops,
)

COPIES = 1.0
"""Tokens are regrouped by head with copies that belong to the workload: queries, keys, values, mixtures, once each."""


class Prefill(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[batch, sequence, heads, head_dim]``."""

    name = "prefill"
    ops = ("prefill",)
    role = "heldout"
    keys = ("batch", "sequence", "heads", "head_dim")
    caps = (1, 16, 2, 16)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        b, s, heads, d = (config[key] for key in self.keys)
        h, e = heads * d, element_bytes(config["dtype"])
        tokens, scores = b * s, b * heads * s * s
        traffic = (4 * tokens * h + 12 * h * h) * e
        flops = tokens * token_flops(h, norms=2) + 4.0 * scores * d + 5.0 * scores
        working_set = traffic + 4 * scores + 4 * tokens * h * e
        return Work(flops, traffic, traffic + 3 * tokens * h * e, working_set, tokens * h)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Plain products and a float32 softmax; no library kernel is asked for."""
        b, s, heads, d = (config[key] for key in self.keys)
        dtype, h = config["dtype"], heads * d
        x, y = uniform(rng, (b, s, h), dtype), uniform(rng, (b, s, h), dtype)
        cache = (uniform(rng, (b, s, heads, d), dtype), uniform(rng, (b, s, heads, d), dtype))
        expectation = LoopExpectation(
            (("dot", "custom-call"), ("exponential", "custom-call"), ("tanh", "custom-call")), copied_share=COPIES
        )
        return chained(_layer(heads), x, (y, *cache), layer_weights(rng, h, dtype), expectation)

    def definition(self, config: Config, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Of tokens and weights: the layer's output, keys and values."""
        x, wq, wk, wv, wo, w1, w2 = arrays
        split = (*x.shape[:2], config["heads"], config["head_dim"])
        q, k, v = ((norm_in_numpy(x) @ w).reshape(split) for w in (wq, wk, wv))
        scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(config["head_dim"])
        later = np.triu(np.ones(scores.shape[-2:], dtype=bool), 1)
        mixed = np.einsum("bhqk,bkhd->bqhd", softmax_in_numpy(np.where(later, -np.inf, scores)), v)
        return feed_forward_in_numpy(x + mixed.reshape(x.shape) @ wo, w1, w2), k, v


def _layer(heads: int) -> Any:
    def layer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, w1: Any, w2: Any) -> tuple[Any, Any, Any]:
        import jax
        import jax.numpy as jnp
        from jax import lax

        normed = norm(x)
        q, k, v = (product(normed, w).reshape(*x.shape[:2], heads, -1) for w in (wq, wk, wv))
        highest = lax.Precision.HIGHEST
        scores = lax.dot_general(
            q, k, (((3,), (3,)), ((0, 2), (0, 2))), precision=highest, preferred_element_type=jnp.float32
        )
        query, key = (lax.broadcasted_iota(jnp.int32, scores.shape[-2:], axis) for axis in (0, 1))
        masked = jnp.where(key <= query, scores / np.float32(np.sqrt(q.shape[-1])), -jnp.inf)
        shares = jax.nn.softmax(masked, axis=-1).astype(x.dtype)
        mixed = lax.dot_general(shares, v, (((3,), (1,)), ((0, 1), (0, 2))), precision=highest)
        x = x + product(mixed.swapaxes(1, 2).reshape(x.shape), wo)
        return feed_forward(x, w1, w2), k, v

    return layer


probe = Prefill()
