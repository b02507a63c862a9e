"""Programs written after the rules, of other kinds than those that the rules were made and checked with."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from _programs import Program, array, descend
from jax import lax

__all__ = ["LAST"]


def mixture(weights: Any, x: Any, y: Any) -> Any:
    """Negative log likelihood of a mixture density head."""
    hidden = jnp.tanh(x @ weights[0])
    share, mean, log_sd = jnp.split(hidden @ weights[1], 3, axis=-1)
    each = -0.5 * ((y[:, None] - mean) * jnp.exp(-log_sd)) ** 2 - log_sd + jax.nn.log_softmax(share)
    return -jax.nn.logsumexp(each, axis=-1).mean()


def beam(scores: Any, states: Any, w: Any, width: int) -> Any:
    """One step of a beam search: extend each hypothesis, keep the best."""
    following = jax.nn.log_softmax(states @ w) + scores[:, None]
    best, at = lax.top_k(following.reshape(-1), width)
    return best, states[at // w.shape[1]], at % w.shape[1]


def march(origin: Any, direction: Any, steps: int) -> Any:
    """Rays that march towards a sphere on a plane by the distance to the nearest surface."""

    def step(_: int, depth: Any) -> Any:
        at = origin + depth[:, None] * direction
        sphere = jnp.sqrt((at**2).sum(axis=-1)) - 1.0
        return depth + jnp.minimum(sphere, at[:, 1] + 1.0)

    return lax.fori_loop(0, steps, step, jnp.zeros(len(origin)))


def rank_pages(source: Any, sink: Any, degree: Any, steps: int) -> Any:
    n = degree.shape[0]

    def step(_: int, rank: Any) -> Any:
        flow = (rank / degree)[source]
        return 0.15 / n + 0.85 * jax.ops.segment_sum(flow, sink, num_segments=n)

    return lax.fori_loop(0, steps, step, jnp.full(n, 1.0 / n))


def red_black(u: Any, f: Any, steps: int) -> Any:
    """Gauss-Seidel in two colours."""
    i, j = jnp.arange(u.shape[0])[:, None], jnp.arange(u.shape[1])[None]
    red = (i + j) % 2 == 0

    def around(u: Any) -> Any:
        padded = jnp.pad(u, 1)
        return 0.25 * (padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2] - f)

    def step(_: int, u: Any) -> Any:
        u = jnp.where(red, around(u), u)
        return jnp.where(red, u, around(u))

    return lax.fori_loop(0, steps, step, u)


def rotary(x: Any, wq: Any, wk: Any) -> Any:
    """Scores of queries and keys that are turned by their position."""
    tokens, heads = x.shape[0], 8
    q, k = ((x @ w).reshape(tokens, heads, -1) for w in (wq, wk))
    half = q.shape[-1] // 2
    angle = jnp.arange(tokens)[:, None] * 1e4 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]

    def turned(v: Any) -> Any:
        a, b = v[..., :half], v[..., half:]
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    return jnp.einsum("qhd,khd->hqk", turned(q), turned(k))


def cached(x: Any, cache: Any, at: Any, wk: Any, wq: Any) -> Any:
    """A token's key goes into the cache, and its query meets all keys."""
    cache = lax.dynamic_update_slice(cache, (x @ wk)[:, None], (0, at, 0))
    return cache, jax.nn.softmax(jnp.einsum("bd,bcd->bc", x @ wq, cache))


def lamb(weights: Any, grads: Any, moments: Any) -> Any:
    """An optimiser's step whose length each layer sets for itself."""

    def layer(w: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        step = m / (jnp.sqrt(v) + 1e-6) + 0.01 * w
        trust = jnp.linalg.norm(w) / (jnp.linalg.norm(step) + 1e-9)
        return w - 1e-3 * trust * step, m, v

    return [layer(w, g, *m) for w, g, m in zip(weights, grads, moments, strict=True)]


def gumbel(key: Any, x: Any, w: Any) -> Any:
    scores = x @ w
    return (scores + jax.random.gumbel(jax.random.wrap_key_data(key), scores.shape)).argmax(axis=-1)


def temporal(x: Any, filters: Any) -> Any:
    """A depthwise convolution over time."""
    layout = ("NWC", "WIO", "NWC")
    return jax.nn.silu(
        lax.conv_general_dilated(x, filters, (1,), "SAME", dimension_numbers=layout, feature_group_count=x.shape[-1])
    )


def contrastive(weights: Any, x: Any, y: Any) -> Any:
    a, b = x @ weights[0], y @ weights[1]
    a, b = (v * lax.rsqrt((v * v).sum(axis=-1, keepdims=True) + 1e-9) for v in (a, b))
    scores = 10.0 * a @ b.T
    return -jnp.diagonal(jax.nn.log_softmax(scores)).mean()


def filtered(w: Any, rate: Any, x: Any) -> Any:
    """Recursive least mean squares: a loop over samples of one small state."""

    def step(w: Any, each: Any) -> Any:
        error = each[-1] - w @ each[:-1]
        return w + rate * error * each[:-1], error

    return lax.scan(step, w, x)


I32 = jnp.int32

LAST: dict[str, Program] = {
    "mixture density, training": (
        descend(mixture), ((array(64, 256), array(256, 24)), array(512, 64), array(512))
    ),
    "beam search step": (lambda s, h, w: beam(s, h, w, 16), (array(16), array(16, 256), array(256, 8000))),
    "ray marching": (lambda o, d: march(o, d, 32), (array(40_000, 3), array(40_000, 3))),
    "page rank": (
        lambda s, t, d: rank_pages(s, t, d, 10), (array(50_000, dtype=I32), array(50_000, dtype=I32), array(5000))
    ),
    "red-black Gauss-Seidel": (lambda u, f: red_black(u, f, 10), (array(300, 300), array(300, 300))),
    "rotary scores": (rotary, (array(256, 512), array(512, 512), array(512, 512))),
    "cached token": (
        cached, (array(16, 128), array(16, 1024, 128), array(dtype=I32),
                 array(128, 128), array(128, 128))
    ),
    "LAMB step": (
        lamb,
        ([array(512, 512), array(512, 2048)], [array(512, 512), array(512, 2048)],
         [(array(512, 512),) * 2, (array(512, 2048),) * 2]),
    ),
    "Gumbel sampling": (gumbel, (array(2, dtype=jnp.uint32), array(64, 256), array(256, 4000))),
    "temporal convolution": (temporal, (array(8, 512, 128), array(5, 1, 128))),
    "contrastive, training": (
        descend(contrastive), ((array(256, 128), array(256, 128)), array(384, 256), array(384, 256))
    ),
    "adaptive filter": (filtered, (array(64), array(), array(500, 65))),
}  # fmt: skip
"""Name -> function and arguments, as in `_programs`."""
