"""Dense matrix product ``c[m, n] = a[m, k] @ b[k, n]``, `batch` of them: compute throughput by dtype, size and aspect.

flops ``2 B m n k`` with B = batch, or 1; integer operations count alike. Compulsory bytes ``B ((m k + k n) e + m n r)``
with e bytes per element and r per element of the result.

=========== ======================= ==========================================================
dtype       result                  products
=========== ======================= ==========================================================
float64     float64                 float64
float32     float32                 float32, no lower precision allowed
tf32        float32                 operands rounded to 10 bits of mantissa; refused where there is none
bfloat16    bfloat16                exact, summed in float32 or better
float16     float16                 exact, summed in float32 or better
float8      float32                 float8_e4m3fn; refused where the compiler widens the operands first
int8        int32                   exact
=========== ======================= ==========================================================

Of one-byte types the second operand is held as ``[n, k]``, the order that matrix units take without a transposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from bayesperf.errors import MeasurementError
from bayesperf.probe import Config, Kernel, LoopExpectation, Work, chained, element_bytes, uniform
from bayesperf.probes.shaped import ShapedFunction, named

RESULTS = {"float8": "float32", "int8": "int32", "tf32": "float32"}
TOLERANCES = {"int8": 0.0, "tf32": 1e-4, "float8": 2e-2}
TF32_BITS = np.uint32(0xFFFFE000)
BELOW_TF32 = np.uint32(0x00000C00)
"""Below half a unit in the last place of tf32, so that rounding and cutting both remove it."""


class Matmul(ShapedFunction):
    """Sweep: ``dtypes`` and ``shapes``, a list of ``[m, n, k]``, ``[batch, m, n, k]`` or one number for a square."""

    name = "matmul"
    ops = ("matmul",)
    keys = ("batch", "m", "n", "k")
    caps = (2, 96, 96, 96)
    dtypes = ("float64", "float32", "tf32", "bfloat16", "float16", "float8", "int8")

    def shape(self, entry: int | Sequence[int]) -> dict[str, int]:
        """With ``batch`` only where an entry has it."""
        entry = (entry,) * 3 if isinstance(entry, int) else entry
        return named(self.name, self.keys if len(entry) == 4 else self.keys[1:], entry)

    def work(self, config: Config) -> Work:
        """Formulas of the module's head; the result is written without having been read."""
        batch, (m, n, k) = config.get("batch", 1), (config[key] for key in "mnk")
        dtype = str(config["dtype"])
        written = batch * m * n * element_bytes(RESULTS.get(dtype, dtype))
        traffic = batch * (m * k + k * n) * element_bytes(dtype) + written
        return Work(2.0 * batch * m * n * k, traffic, traffic + written, traffic, batch * m * n)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Precision is asked for by name, and what was asked for is checked."""
        m, n, k, dtype = config["m"], config["n"], config["k"], str(config["dtype"])
        if dtype == "tf32":
            _refuse_without_tf32()
        leading = (config["batch"],) if "batch" in config else ()
        a = _data(rng, (*leading, m, k), dtype)
        b = _data(rng, (*leading, *((n, k) if _is_transposed(dtype) else (k, n))), dtype)
        c = uniform(rng, (*leading, m, n), RESULTS.get(dtype, dtype))
        operand_type = "f8e4m3fn" if dtype == "float8" else None
        expectation = LoopExpectation((("dot", "custom-call"),), operand_type=operand_type)
        return chained(partial(_product, dtype), a, c, (b,), expectation)

    def definition(self, config: Config, *arrays: np.ndarray) -> np.ndarray:
        """NumPy's product, of operands cut to tf32 where the dtype says so."""
        a, b = map(_cut, arrays) if config["dtype"] == "tf32" else arrays
        return np.asarray(a @ (b.swapaxes(-1, -2) if _is_transposed(config["dtype"]) else b))

    def tolerance(self, config: Config) -> float:
        """Integers exact; float32 tight enough to tell tf32, and tf32 to tell float32 (see `_data`)."""
        return TOLERANCES.get(config["dtype"], super().tolerance(config))


def _data(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Uniform values; for tf32 with bits that tf32 does not hold, so that float32 products give another result."""
    values = uniform(rng, shape, dtype)
    if dtype == "tf32":
        values = ((values.view(np.uint32) & TF32_BITS) | BELOW_TF32).view(np.float32)
    return values


def _cut(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) & TF32_BITS).view(np.float32).astype(np.float64)


def _refuse_without_tf32() -> None:
    """JAX and XLA know which devices have tf32, and say so when a product is compiled.

    Raises
    ------
    MeasurementError
        ``unsupported-dtype``: this one has not.
    """
    import jax

    tile = jax.ShapeDtypeStruct((16, 16), np.float32)
    try:
        jax.jit(partial(_product, "tf32")).lower(tile, tile).compile()
    except (ValueError, NotImplementedError, jax.errors.JaxRuntimeError) as error:
        raise MeasurementError("unsupported-dtype", f"tf32 products do not exist here: {error}") from error


def _is_transposed(dtype: str) -> bool:
    return element_bytes(dtype) == 1


def _product(dtype: str, a: Any, b: Any) -> Any:
    from jax import lax

    batch, last = tuple(range(a.ndim - 2)), a.ndim - 1
    contracted = ((last,), (last if _is_transposed(dtype) else last - 1,))
    precision: Any = lax.DotAlgorithmPreset.TF32_TF32_F32 if dtype == "tf32" else lax.Precision.HIGHEST
    result = np.dtype(RESULTS[dtype]) if dtype in RESULTS else None
    return lax.dot_general(a, b, (contracted, (batch, batch)), precision=precision, preferred_element_type=result)


probe = Matmul()
