"""Programs kept aside while workloads and composition were worked on: a check of what was learned from the others."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from _programs import Program, array, convolve, descend, layer, layer_weights
from jax import lax

__all__ = ["HELD"]


def adam_step(weights: Any, moments: Any, x: Any, y: Any) -> Any:
    """A training step with the optimiser in it."""

    def loss(weights: Any) -> Any:
        return ((jax.nn.gelu(x @ weights[0]) @ weights[1] - y) ** 2).mean()

    def update(w: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    grads = jax.grad(loss)(weights)
    found = [update(w, g, m, v) for w, g, (m, v) in zip(weights, grads, moments, strict=True)]
    return [w for w, _, _ in found], [(m, v) for _, m, v in found]


def gru(w: Any, u: Any, xs: Any) -> Any:
    def cell(h: Any, x: Any) -> Any:
        gates = jax.nn.sigmoid(x @ w[0] + h @ u[0])
        z, r = jnp.split(gates, 2, axis=-1)
        h = (1 - z) * h + z * jnp.tanh(x @ w[1] + (r * h) @ u[1])
        return h, h

    return lax.scan(cell, jnp.zeros((xs.shape[1], u[1].shape[0])), xs)[1]


def poisson(f: Any) -> Any:
    n = f.shape[0]
    k = jnp.fft.fftfreq(n) * n
    square = k[:, None] ** 2 + k[None] ** 2
    return jnp.fft.ifft2(-jnp.fft.fft2(f) / jnp.where(square == 0, 1.0, square)).real


def messages(x: Any, source: Any, sink: Any, w: Any) -> Any:
    gathered = jax.nn.relu(x[source] @ w)
    return x + jax.ops.segment_sum(gathered, sink, num_segments=x.shape[0])


def sinkhorn(cost: Any, steps: int) -> Any:
    kernel = jnp.exp(-cost)

    def step(_: int, uv: Any) -> Any:
        u = 1.0 / (kernel @ uv[1] + 1e-9)
        return u, 1.0 / (kernel.T @ u + 1e-9)

    n = cost.shape[0]
    return lax.fori_loop(0, steps, step, (jnp.ones(n), jnp.ones(n)))


def kalman(f: Any, h: Any, q: Any, r: Any, xs: Any) -> Any:
    def step(state: Any, z: Any) -> Any:
        x, p = f @ state[0], f @ state[1] @ f.T + q
        gain = jnp.linalg.solve(h @ p @ h.T + r, h @ p).T
        return (x + gain @ (z - h @ x), p - gain @ h @ p), x

    return lax.scan(step, (jnp.zeros(f.shape[0]), jnp.eye(f.shape[0])), xs)[1]


def classifier(weights: Any, x: Any, labels: Any) -> Any:
    first, second, dense = weights
    x = jax.nn.relu(convolve(x, first))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(convolve(x, second)).mean(axis=(1, 2)) @ dense
    return -jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1).mean()


def walk(key: Any, paths: int, steps: int) -> Any:
    return jnp.exp(0.01 * jax.random.normal(jax.random.wrap_key_data(key), (steps, paths)).cumsum(axis=0)).mean(axis=1)


def exponential(a: Any) -> Any:
    a = a / 64.0
    total = term = jnp.eye(a.shape[0])
    for k in range(1, 6):
        term = term @ a / k
        total = total + term
    return lax.fori_loop(0, 6, lambda _, t: t @ t, total)


def lattice(f: Any, steps: int) -> Any:
    moves = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]

    def step(_: int, f: Any) -> Any:
        f = jnp.stack([jnp.roll(f[k], move, (0, 1)) for k, move in enumerate(moves)])
        rho = f.sum(axis=0)
        ux = sum(i * f[k] for k, (i, _) in enumerate(moves)) / rho
        uy = sum(j * f[k] for k, (_, j) in enumerate(moves)) / rho
        goal = jnp.stack([rho / 9 * (1 + 3 * (i * ux + j * uy)) for i, j in moves])
        return f + 0.6 * (goal - f)

    return lax.fori_loop(0, steps, step, f)


def jacobi(u: Any, steps: int) -> Any:
    def step(_: int, u: Any) -> Any:
        around = [jnp.roll(u, s, axis) for s in (-1, 1) for axis in range(3)]
        return sum(around) / 6.0

    return lax.fori_loop(0, steps, step, u)


def experts(x: Any, gate: Any, up: Any, down: Any) -> Any:
    weights = jax.nn.softmax(x @ gate)
    hidden = jax.nn.silu(jnp.einsum("td,edh->teh", x, up))
    return jnp.einsum("teh,ehd,te->td", hidden, down, weights)


def quantised(x: Any, w: Any, scale: Any) -> Any:
    product = lax.dot(x, w, preferred_element_type=jnp.int32)
    return jax.nn.relu(product.astype(jnp.float32) * scale)


def nearest(x: Any, queries: Any) -> Any:
    distance = (x**2).sum(axis=1) - 2.0 * queries @ x.T
    return lax.top_k(-distance, 8)


def hinge(w: Any, x: Any, y: Any) -> Any:
    return jnp.maximum(0.0, 1.0 - y * (x @ w)).mean() + 1e-3 * (w @ w)


def rematerialised(weights: Any, x: Any) -> Any:
    block = jax.checkpoint(lambda x, w: (layer(x, w), None))
    return (lax.scan(block, x, weights)[0] ** 2).mean()


B16, I8, I32 = jnp.bfloat16, jnp.int8, jnp.int32

HELD: dict[str, Program] = {
    "Adam step of a perceptron": (
        adam_step,
        ([array(512, 512), array(512, 64)], [(array(512, 512),) * 2, (array(512, 64),) * 2], array(128, 512),
         array(128, 64)),
    ),
    "GRU": (gru, ((array(64, 256), array(64, 128)), (array(128, 256), array(128, 128)), array(40, 32, 64))),
    "Poisson by Fourier": (poisson, (array(512, 512),)),
    "graph messages": (messages, (array(4000, 64), array(20000, dtype=I32), array(20000, dtype=I32), array(64, 64))),
    "Sinkhorn": (lambda cost: sinkhorn(cost, 20), (array(768, 768),)),
    "Kalman filter": (kalman, (array(16, 16), array(4, 16), array(16, 16), array(4, 4), array(50, 4))),
    "classifier, training": (
        descend(classifier),
        ((array(3, 3, 3, 16), array(3, 3, 16, 32), array(32, 10)), array(16, 32, 32, 3), array(16, dtype=I32)),
    ),
    "random walks": (lambda key: walk(key, 2000, 100), (array(2, dtype=jnp.uint32),)),
    "matrix exponential": (exponential, (array(256, 256),)),
    "lattice Boltzmann": (lambda f: lattice(f, 10), (array(9, 256, 256),)),
    "Jacobi in space": (lambda u: jacobi(u, 10), (array(96, 96, 96),)),
    "mixture of experts": (experts, (array(128, 128), array(128, 8), array(8, 128, 256), array(8, 256, 128))),
    "quantised layer": (quantised, (array(256, 1024, dtype=I8), array(1024, 512, dtype=I8), array(512))),
    "nearest neighbours": (nearest, (array(5000, 64), array(200, 64))),
    "support vectors": (descend(hinge), (array(200), array(10000, 200), array(10000))),
    "transformer, checkpointed": (descend(rematerialised), (layer_weights(128, 3), array(128, 128))),
    "transformer layer, bfloat16": (
        layer, (array(256, 256, dtype=B16), tuple(array(*w.shape, dtype=B16) for w in layer_weights(256)))
    ),
    "tall matrix, QR": (lambda a, b: jnp.linalg.lstsq(a, b)[0], (array(1000, 48), array(1000))),
    "histogram": (lambda x: jnp.zeros(256).at[(x * 100).astype(I32) % 256].add(1.0), (array(200_000),)),
    "rank by value": (lambda x: jnp.argsort(x, axis=-1), (array(64, 4096),)),
}  # fmt: skip
"""Name -> function and arguments, as in `_programs`."""
