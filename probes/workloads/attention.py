"""Scaled dot-product attention, ``softmax(q k' / sqrt(d)) v``, over ``batch x heads`` of ``sequence x head_dim``.

flops ``4 b h s^2 d + 5 b h s^2`` (two products, softmax); compulsory bytes ``4 b h s d e``: the scores need not leave
the chip. They count in the working set, in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, chained, element_bytes, uniform
from bayesperf.probes.shaped import ShapedFunction
from bayesperf.probes.workloads.layers import softmax_in_numpy


class Attention(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[batch, heads, sequence, head_dim]``."""

    name = "attention"
    ops = ("attention",)
    role = "heldout"
    keys = ("batch", "heads", "sequence", "head_dim")
    caps = (1, 2, 32, 32)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        groups, s, d = config["batch"] * config["heads"], config["sequence"], config["head_dim"]
        e = element_bytes(config["dtype"])
        traffic, outputs = 4 * groups * s * d * e, groups * s * d
        flops = 4.0 * groups * s * s * d + 5.0 * groups * s * s
        return Work(flops, traffic, traffic + outputs * e, traffic + 4 * groups * s * s, outputs)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Plain products and a float32 softmax; no library kernel is asked for."""
        shape = tuple(config[key] for key in self.keys)
        q, k, v, out = (uniform(rng, shape, config["dtype"]) for _ in range(4))
        expectation = LoopExpectation((("dot", "custom-call"), ("exponential", "custom-call")))
        return chained(_attention, q, out, (k, v), expectation)

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """Of queries, keys and values."""
        q, k, v = arrays
        return np.asarray(softmax_in_numpy(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v)


def _attention(q: Any, k: Any, v: Any) -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    highest, last = lax.Precision.HIGHEST, q.ndim - 1
    batch = tuple(range(last - 1))
    scores = lax.dot_general(
        q, k, (((last,), (last,)), (batch, batch)), precision=highest, preferred_element_type=jnp.float32
    )
    shares = jax.nn.softmax(scores / np.sqrt(q.shape[-1]).astype(np.float32), axis=-1).astype(q.dtype)
    return lax.dot_general(shares, v, (((last,), (last - 1,)), (batch, batch)), precision=highest)


probe = Attention()
