"""A training step of a two-layer perceptron: forward, backward by automatic differentiation, gradient descent.

``loss = |relu(x w1) w2 - t|^2 / (2 r)`` over r rows, x and t of ``rows x hidden``, w1 of ``hidden x cols``.
flops ``10 r h c + 2 r c + 2 r h + 4 h c``: two products forward, three backward (none for x), the ReLU and its
derivative, the difference and its scale, a multiply-add per weight. Compulsory bytes ``(2 r h + 4 h c) e``: data in,
weights in and out. Activations and gradients need not leave the chip; they count in the working set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesperf.probe import Config, Kernel, LoopExpectation, Work, element_bytes
from bayesperf.probes.shaped import Shaped, weights


class MlpTrain(Shaped):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, hidden]`` or ``[rows, hidden, cols]`` (default 4 hidden)."""

    name = "mlp_train"
    ops = ("mlp_train",)
    role = "heldout"
    keys = ("rows", "hidden", "cols")
    caps = (16, 32, 64)

    def shape(self, entry: Sequence[int]) -> dict[str, int]:
        """Four times as many columns as hidden where an entry does not say."""
        return super().shape([*entry, 4 * entry[1]] if len(entry) == 2 else entry)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        r, h, c, e = config["rows"], config["hidden"], config["cols"], element_bytes(config["dtype"])
        traffic = (2 * r * h + 4 * h * c) * e
        flops = 10.0 * r * h * c + 2 * r * c + 2 * r * h + 4 * h * c
        return Work(flops, traffic, traffic, traffic + (2 * r * c + r * h) * e, 2 * h * c)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """The weights are the carry; a step size of 1 / cols keeps the descent stable."""
        r, h, c, dtype = config["rows"], config["hidden"], config["cols"], config["dtype"]
        data = tuple(weights(rng, (1, r, h), dtype)[0] for _ in range(2))
        matrices = (weights(rng, (h, c), dtype), weights(rng, (c, h), dtype))
        return Kernel(data, matrices, _step, LoopExpectation((("dot", "custom-call"),)))

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The gradients written out, in float64."""
        x, t = (np.asarray(o, dtype=np.float64) for o in kernel.operands)
        w1, w2 = (np.array(leaf, dtype=np.float64) for leaf in kernel.carry)
        for _ in range(iterations):
            before = x @ w1
            after = np.maximum(before, 0.0)
            difference = (after @ w2 - t) / len(x)
            backward = difference @ w2.T * (before > 0)
            w1, w2 = w1 - x.T @ backward / config["cols"], w2 - after.T @ difference / config["cols"]
        return w1, w2


def _loss(matrices: tuple[Any, Any], x: Any, t: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax, nn

    w1, w2 = matrices
    hidden = nn.relu(lax.dot(x, w1, precision=lax.Precision.HIGHEST))
    difference = lax.dot(hidden, w2, precision=lax.Precision.HIGHEST) - t
    return jnp.sum(jnp.square(difference)) / (2 * len(x))


def _step(i: Any, carry: tuple[Any, Any], x: Any, t: Any) -> tuple[Any, Any]:
    import jax
    import jax.numpy as jnp

    w1, w2 = carry
    g1, g2 = jax.grad(_loss)(carry, x, t)
    rate = jnp.float32(1.0 / w1.shape[1])
    # w2 waits for the gradient of w1, which still needs it: were their order open, XLA would keep a copy of w2.
    after = rate * (1.0 + 1e-30 * jnp.tanh(g1[0, 0].astype(jnp.float32)))
    return w1 - rate.astype(w1.dtype) * g1, w2 - after.astype(w2.dtype) * g2


probe = MlpTrain()
