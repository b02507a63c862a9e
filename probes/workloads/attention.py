"""Scaled dot-product attention, ``softmax(q k' / sqrt(d)) v``, over ``batch x heads`` of ``sequence x head_dim``.

flops ``4 b h s^2 d + 5 b h s^2`` (two products, softmax); compulsory bytes ``4 b h s d e``: the scores need not leave
the chip. They count in the working set, in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesperf.probe import (
    Config,
    Kernel,
    LoopExpectation,
    Probe,
    Work,
    chained,
    element_bytes,
    reference_of,
    uniform,
)


class Attention(Probe):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[batch, heads, sequence, head_dim]``."""

    name = "attention"
    ops = ("attention",)
    role = "heldout"

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per dtype and shape."""
        keys = ("batch", "heads", "sequence", "head_dim")
        return [
            {"op": "attention", "dtype": dtype, **dict(zip(keys, shape, strict=True))}
            for dtype in sweep["dtypes"]
            for shape in sweep["shapes"]
        ]

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        groups, s, d = config["batch"] * config["heads"], config["sequence"], config["head_dim"]
        e = element_bytes(config["dtype"])
        traffic, outputs = 4 * groups * s * d * e, groups * s * d
        flops = 4.0 * groups * s * s * d + 5.0 * groups * s * s
        return Work(flops, traffic, traffic + outputs * e, traffic + 4 * groups * s * s, outputs)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Plain products and a float32 softmax; no library kernel is asked for."""
        shape = tuple(config[key] for key in ("batch", "heads", "sequence", "head_dim"))
        dtype = config["dtype"]
        keys_values = (uniform(rng, shape, dtype), uniform(rng, shape, dtype))
        q, out = uniform(rng, shape, dtype), uniform(rng, shape, dtype)
        expectation = LoopExpectation((("dot", "custom-call"), ("exponential", "custom-call")))
        return chained(_attention, q, out, keys_values, expectation)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The definition in float64."""

        def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ v)

        return reference_of(attention, kernel, iterations)

    def small(self, config: Config) -> Config:
        """At most 1 x 2 x 32 x 32."""
        caps = {"batch": 1, "heads": 2, "sequence": 32, "head_dim": 32}
        return {**config, **{key: min(config[key], cap) for key, cap in caps.items()}}


def _attention(q: Any, k: Any, v: Any) -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    highest, last = lax.Precision.HIGHEST, q.ndim - 1
    batch = tuple(range(last - 1))
    scores = lax.dot_general(
        q, k, (((last,), (last,)), (batch, batch)), precision=highest, preferred_element_type=jnp.float32
    )
    weights = jax.nn.softmax(scores / np.sqrt(q.shape[-1]).astype(np.float32), axis=-1).astype(q.dtype)
    return lax.dot_general(weights, v, (((last,), (last - 1,)), (batch, batch)), precision=highest)


probe = Attention()
