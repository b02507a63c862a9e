"""Look-up of `rows` vectors in a table of ``vocabulary x hidden``.

No flops. Compulsory bytes ``2 r h e + 4 r``: every row is looked up once at most, so r rows are read and written, and r
indices of 4 bytes read; the rest of the table is not touched, but it is what the look-ups are spread over: it counts in
the working set. Indices are distinct and in random order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayesperf.errors import InputError
from bayesperf.probe import Config, Kernel, LoopExpectation, Work, element_bytes, repeated, uniform
from bayesperf.probes.shaped import ShapedFunction

INDEX_BYTES = 4


class Embedding(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[rows, vocabulary, hidden]``, rows at most vocabulary - 1."""

    name = "embedding"
    ops = ("embedding",)
    role = "heldout"
    keys = ("rows", "vocabulary", "hidden")
    caps = (64, 256, 64)

    def shape(self, entry: Sequence[int]) -> dict[str, int]:
        """Refused where indices could not be distinct."""
        shape = super().shape(entry)
        if shape["rows"] >= shape["vocabulary"]:
            raise InputError(f"{self.name}: rows must be fewer than vocabulary, so that each is looked up once")
        return shape

    def work(self, config: Config) -> Work:
        """Formulas of the module's head."""
        rows, vocabulary, hidden = (config[key] for key in self.keys)
        e = element_bytes(config["dtype"])
        written, indices = rows * hidden * e, rows * INDEX_BYTES
        traffic = 2 * written + indices
        return Work(0.0, traffic, traffic + written, vocabulary * hidden * e + written + indices, rows * hidden)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Row 0 is never looked up: indices are data, and data are never zero."""
        rows, vocabulary, hidden = (config[key] for key in self.keys)
        table = uniform(rng, (vocabulary, hidden), config["dtype"])
        indices = (1 + rng.permutation(vocabulary - 1)[:rows]).astype(np.int32)
        output = uniform(rng, (rows, hidden), config["dtype"])
        looked_up = ("gather", "dynamic-slice", "custom-call")
        return repeated(_look_up, indices, output, (table,), LoopExpectation((looked_up,)))

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """Of indices and table."""
        indices, table = arrays
        return np.asarray(table[indices.astype(np.int64)])


def _look_up(indices: Any, table: Any) -> Any:
    import jax.numpy as jnp

    return jnp.take(table, indices, axis=0, mode="clip")


probe = Embedding()
