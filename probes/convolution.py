"""The convolution that `conv2d` measures and workloads are made of, in JAX and in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["convolve", "convolve_in_numpy"]


def convolve(x: Any, filters: Any) -> Any:
    """Convolve ``x`` (batch, height, width, c_in) with ``filters`` (k, k, c_in, c_out); stride 1, SAME padding."""
    from jax import lax

    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, filters, (1, 1), "SAME", dimension_numbers=layout, precision=lax.Precision.HIGHEST
    )


def convolve_in_numpy(x: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """The same, a sum of products over the taps."""
    size, (height, width) = filters.shape[0], x.shape[1:3]
    before, after = (size - 1) // 2, size // 2
    padded = np.pad(x, ((0, 0), (before, after), (before, after), (0, 0)))
    shifted = ((i, j, padded[:, i : i + height, j : j + width]) for i in range(size) for j in range(size))
    return np.asarray(sum(part @ filters[i, j] for i, j, part in shifted))
