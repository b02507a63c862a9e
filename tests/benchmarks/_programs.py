"""Programs that no probe is: training steps, solvers, simulations; name -> function and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["PROGRAMS"]

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def array(*shape: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def descend(loss: Callable[..., Any], rate: float = 1e-3) -> Callable[..., Any]:
    """One step of gradient descent on the first argument."""

    def step(weights: Any, *data: Any) -> Any:
        return jax.tree.map(lambda w, g: w - rate * g, weights, jax.grad(loss)(weights, *data))

    return step


def perceptron(weights: Any, x: Any) -> Any:
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return x @ weights[-1]


def squared(weights: Any, x: Any, y: Any) -> Any:
    return ((perceptron(weights, x) - y) ** 2).mean()


def normed(x: Any) -> Any:
    return x * lax.rsqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def layer(x: Any, weights: Any, heads: int = 4) -> Any:
    wqkv, wo, w1, w2 = weights
    tokens, hidden = x.shape
    q, k, v = jnp.split((normed(x) @ wqkv).reshape(tokens, heads, -1), 3, axis=-1)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / (hidden / heads) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e9)
    x = x + jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v).reshape(tokens, hidden) @ wo
    return x + jax.nn.gelu(normed(x) @ w1) @ w2


def layer_weights(hidden: int, *stack: int) -> tuple[Any, ...]:
    shapes = ((hidden, 3 * hidden), (hidden, hidden), (hidden, 4 * hidden), (4 * hidden, hidden))
    return tuple(array(*stack, *shape) for shape in shapes)


def stacked(x: Any, weights: Any) -> Any:
    return lax.scan(lambda x, w: (layer(x, w), None), x, weights)[0]


def convolve(x: Any, w: Any, **options: Any) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout, **options)


def residual(x: Any, w1: Any, w2: Any) -> Any:
    return jax.nn.relu(x + convolve(jax.nn.relu(convolve(x, w1)), w2))


def separable(x: Any, depth: Any, point: Any) -> Any:
    return jax.nn.relu(convolve(convolve(x, depth, feature_group_count=x.shape[-1]), point))


def lstm(w: Any, xs: Any, hidden: int) -> Any:
    def cell(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], axis=-1) @ w, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((xs.shape[1], hidden))
    return lax.scan(cell, (zeros, zeros), xs)[1]


def means(x: Any, centres: Any) -> Any:
    distance = (centres**2).sum(axis=1) - 2 * x @ centres.T
    chosen = jax.nn.one_hot(distance.argmin(axis=1), len(centres))
    return (chosen.T @ x) / (chosen.sum(axis=0)[:, None] + 1.0)


def wave(u: Any, v: Any, steps: int) -> Any:
    def step(_: int, state: Any) -> Any:
        u, v = state
        padded = jnp.pad(u, 1)
        lap = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2] - 4.0 * u
        v = v + 0.1 * lap
        return u + 0.1 * v, v

    return lax.fori_loop(0, steps, step, (u, v))


def heat(u: Any, steps: int) -> Any:
    return lax.fori_loop(0, steps, lambda _, u: u + 0.1 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), u)


def conjugate_gradient(a: Any, b: Any, steps: int) -> Any:
    def step(_: int, state: Any) -> Any:
        x, r, p = state
        ap = a @ p
        alpha = (r @ r) / (p @ ap + 1e-9)
        following = r - alpha * ap
        return x + alpha * p, following, following + (following @ following) / (r @ r + 1e-9) * p

    return lax.fori_loop(0, steps, step, (jnp.zeros_like(b), b, b))[0]


def power_iteration(a: Any, x: Any, steps: int) -> Any:
    return lax.fori_loop(0, steps, lambda _, x: a @ x / jnp.linalg.norm(x), x)


def fourier_convolution(x: Any, kernel: Any) -> Any:
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(kernel, x.shape[-1]))


def options(spot: Any, strike: Any, time: Any) -> Any:
    root = jnp.sqrt(time)
    d = (jnp.log(spot / strike) + 0.05 * time) / (0.2 * root)
    return spot * jax.scipy.stats.norm.cdf(d) - strike * jnp.exp(-0.03 * time) * jax.scipy.stats.norm.cdf(
        d - 0.2 * root
    )


def bodies(x: Any, v: Any) -> Any:
    apart = x[None] - x[:, None]
    force = apart * ((apart**2).sum(axis=-1) + 1e-2)[..., None] ** -1.5
    v = v + 1e-3 * force.sum(axis=1)
    return x + 1e-3 * v, v


def logistic(w: Any, x: Any, y: Any) -> Any:
    return jnp.logaddexp(0.0, -y * (x @ w)).mean()


def epochs(w: Any, xs: Any, ys: Any) -> Any:
    return lax.scan(lambda w, batch: (descend(logistic)(w, *batch), None), w, (xs, ys))[0]


def bag_of_words(weights: Any, tokens: Any, labels: Any) -> Any:
    table, w = weights
    scores = jax.nn.log_softmax(table[tokens].mean(axis=1) @ w)
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def life(world: Any, steps: int) -> Any:
    def step(_: int, world: Any) -> Any:
        near = sum(jnp.roll(world, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        return ((near == 3) | ((near == 2) & (world == 1))).astype(world.dtype)

    return lax.fori_loop(0, steps, step, world)


def decode(x: Any, keys: Any, values: Any, wq: Any, wo: Any) -> Any:
    q = (x @ wq).reshape(x.shape[0], keys.shape[1], -1)
    shares = jax.nn.softmax(jnp.einsum("bhd,bhcd->bhc", q, keys))
    return x + jnp.einsum("bhc,bhcd->bhd", shares, values).reshape(x.shape) @ wo


def cosine(x: Any, y: Any) -> Any:
    return (x / jnp.linalg.norm(x, axis=1, keepdims=True)) @ (y / jnp.linalg.norm(y, axis=1, keepdims=True)).T


def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


B16 = jnp.bfloat16
CHAIN = (array(256, 1024), array(1024, 1024), array(1024, 256))

PROGRAMS: dict[str, Program] = {
    "perceptron": (perceptron, (CHAIN, array(256, 256))),
    "perceptron, training": (descend(squared), (CHAIN, array(128, 256), array(128, 256))),
    "perceptron, small": (perceptron, ((array(64, 128), array(128, 64)), array(32, 64))),
    "perceptron, bfloat16": (
        perceptron,
        ((array(512, 1024, dtype=B16), array(1024, 512, dtype=B16)), array(256, 512, dtype=B16)),
    ),
    "transformer layer": (layer, (array(256, 256), layer_weights(256))),
    "transformer, scanned": (stacked, (array(128, 256), layer_weights(256, 4))),
    "transformer, training": (
        descend(lambda w, x: (stacked(x, w) ** 2).mean()),
        (layer_weights(128, 3), array(128, 128)),
    ),
    "decode step": (
        decode,
        (array(8, 256), array(8, 4, 512, 64), array(8, 4, 512, 64), array(256, 256), array(256, 256)),
    ),
    "residual block": (residual, (array(4, 32, 32, 32), array(3, 3, 32, 32), array(3, 3, 32, 32))),
    "residual block, training": (
        descend(lambda w, x: (residual(x, *w) ** 2).mean()),
        ((array(3, 3, 32, 32), array(3, 3, 32, 32)), array(2, 32, 32, 32)),
    ),
    "separable convolution": (separable, (array(4, 32, 32, 64), array(3, 3, 1, 64), array(1, 1, 64, 128))),
    "LSTM": (lambda w, xs: lstm(w, xs, 128), (array(192, 512), array(50, 16, 64))),
    "LSTM, training": (
        descend(lambda w, xs: (lstm(w, xs, 128) ** 2).mean()),
        (array(192, 512), array(20, 16, 64)),
    ),
    "k-means step": (means, (array(20000, 32), array(64, 32))),
    "wave equation": (lambda u, v: wave(u, v, 20), (array(512, 512), array(512, 512))),
    "heat equation": (lambda u: heat(u, 50), (array(100_000),)),
    "conjugate gradients": (lambda a, b: conjugate_gradient(a, b, 20), (array(1024, 1024), array(1024))),
    "power iteration": (lambda a, x: power_iteration(a, x, 30), (array(512, 512), array(512))),
    "Fourier convolution": (fourier_convolution, (array(64, 8192), array(64, 1024))),
    "option prices": (options, (array(500_000), array(500_000), array(500_000))),
    "n-body step": (bodies, (array(512, 3), array(512, 3))),
    "logistic regression": (epochs, (array(64), array(30, 256, 64), array(30, 256))),
    "bag of words": (
        descend(bag_of_words),
        ((array(5000, 64), array(64, 20)), array(256, 30, dtype=jnp.int32), array(256, dtype=jnp.int32)),
    ),
    "game of life": (lambda world: life(world, 10), (array(512, 512, dtype=jnp.int32),)),
    "cosine similarity": (cosine, (array(1000, 256), array(1000, 256))),
    "Adam": (adam, tuple(array(1_000_000) for _ in range(4))),
    "batched products": (lambda a, b, c: a @ b @ c, (array(64, 64, 64), array(64, 64, 64), array(64, 64, 64))),
    "covariance": (lambda x: jnp.cov(x, rowvar=False), (array(4096, 128),)),
    "standardise": (lambda x: jax.nn.standardize(x, axis=0), (array(8192, 256),)),
    "softmax loss": (lambda x, w: -jax.nn.log_softmax(x @ w)[:, 0].mean(), (array(256, 256), array(256, 4096))),
    "autoencoder": (
        descend(lambda w, x: ((jax.nn.sigmoid(jnp.tanh(x @ w[0]) @ w[1]) - x) ** 2).mean()),
        ((array(784, 128), array(128, 784)), array(256, 784)),
    ),
    "moving average": (lambda x: jnp.convolve(x, jnp.ones(16) / 16, mode="valid"), (array(200_000),)),
    "Cholesky solve": (
        lambda a, b: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a @ a.T + 256 * jnp.eye(256)), True), b),
        (array(256, 256), array(256)),
    ),
}
