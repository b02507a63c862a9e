"""One token per sequence through a transformer layer with a cache of keys and values: a decode step.

The cache holds `sequence` tokens, this step's among them; each step attends to all, and writes the next token's key and
value over the oldest. With b sequences, c = sequence, H heads of d, h = H d: flops
``b (24 h^2 + 54 h) + 4 b h c + 5 b H c`` (weights, GELU, four norms and residuals as in `layers`; attention over the
cache). Compulsory bytes ``(2 b c h + 12 h^2 + 4 b h) e``: cache and weights read, the token in and out, a key and a
value written. The normed output is the next step's token.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, element_bytes, uniform
from bayesperf.probes.shaped import Shaped
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


class Decode(Shaped):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[batch, sequence, heads, head_dim]``; sequence is the cache's."""

    name = "decode"
    ops = ("decode",)
    role = "heldout"
    keys = ("batch", "sequence", "heads", "head_dim")
    caps = (2, 16, 2, 16)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        b, c, heads, d = (config[key] for key in self.keys)
        h, e = heads * d, element_bytes(config["dtype"])
        cached = 2 * b * c * h * e
        traffic = cached + (12 * h * h + 4 * b * h) * e
        flops = b * token_flops(h, norms=4) + 4.0 * b * c * h + 5.0 * b * heads * c
        return Work(flops, traffic, traffic + b * h * e, traffic, b * h)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """The cache is part of the carry and must be updated in place."""
        b, c, heads, d = (config[key] for key in self.keys)
        dtype = config["dtype"]
        x = uniform(rng, (b, heads * d), dtype)
        cache = (uniform(rng, (b, heads, c, d), dtype), uniform(rng, (b, heads, c, d), dtype))
        operations = (("dot", "custom-call"), ("dynamic-update-slice",), ("exponential", "custom-call"))
        return Kernel(layer_weights(rng, heads * d, dtype), (x, *cache), _step, LoopExpectation(operations))

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """Step after step in float64."""
        x, keys, values = (np.array(leaf, dtype=np.float64) for leaf in kernel.carry)
        operands = [np.asarray(o, dtype=np.float64) for o in kernel.operands]
        for i in range(iterations):
            x = _step_in_numpy((i + 1) % config["sequence"], x, keys, values, *operands)
        return x, keys, values


def _step_in_numpy(slot: int, x: np.ndarray, keys: np.ndarray, values: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    """The next token, whose key and value it writes into the cache."""
    wq, wk, wv, wo, w1, w2 = weights
    b, heads, _, d = keys.shape
    q = (norm_in_numpy(x) @ wq).reshape(b, heads, d)
    shares = softmax_in_numpy(np.einsum("bhd,bhcd->bhc", q, keys) / np.sqrt(d))
    mixed = np.einsum("bhc,bhcd->bhd", shares, values)
    following = norm_in_numpy(feed_forward_in_numpy(x + mixed.reshape(x.shape) @ wo, w1, w2))
    keys[:, :, slot], values[:, :, slot] = ((norm_in_numpy(following) @ w).reshape(b, heads, d) for w in (wk, wv))
    return following


def _step(i: Any, carry: tuple[Any, Any, Any], *weights: Any) -> tuple[Any, Any, Any]:
    import jax
    import jax.numpy as jnp
    from jax import lax

    x, keys, values = carry
    wq, wk, wv, wo, w1, w2 = weights
    b, heads, length, d = keys.shape
    highest, each = lax.Precision.HIGHEST, ((0, 1), (0, 1))
    q = product(norm(x), wq).reshape(b, heads, d)
    scores = lax.dot_general(q, keys, (((2,), (3,)), each), precision=highest, preferred_element_type=jnp.float32)
    shares = jax.nn.softmax(scores / np.float32(np.sqrt(d)), axis=-1).astype(x.dtype)
    mixed = lax.dot_general(shares, values, (((2,), (2,)), each), precision=highest)
    following = norm(feed_forward(x + product(mixed.reshape(x.shape), wo), w1, w2))
    # Written when everything has been read: a cache that is read after its update is computed, and copied, twice.
    normed, slot = norm(following), lax.rem(i + 1, np.int32(length))
    k, v = (product(normed, w).reshape(b, heads, 1, d) for w in (wk, wv))
    keys = lax.dynamic_update_slice_in_dim(keys, k, slot, axis=2)
    return following, keys, lax.dynamic_update_slice_in_dim(values, v, slot, axis=2)


probe = Decode()
