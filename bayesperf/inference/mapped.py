"""A compiled model in other coordinates: Numba functions around those that nutpie compiled.

They call the inner functions by address and find all arrays by address, so that they are compiled once, whatever the
model.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bayesperf.model import Floats

__all__ = ["Map", "mapped"]


@dataclasses.dataclass(frozen=True)
class Map:
    """``x = mean + scale * (y + vectors' (weights * (vectors y)))``, with orthonormal rows of vectors.

    Parameters
    ----------
    mean, scale
        Of each axis of x, (dimension,).
    vectors
        Directions that are stretched beside, (direction, dimension).
    weights
        By how much, less one, (direction,).
    """

    mean: Floats
    scale: Floats
    vectors: Floats
    weights: Floats

    @classmethod
    def identity(cls, size: int) -> Map:
        """Leave `size` dimensions as they are."""
        return cls(np.zeros(size), np.ones(size), np.zeros((0, size)), np.zeros(0))

    def __call__(self, y: Floats) -> Floats:
        """Of points, (..., dimension)."""
        return np.asarray(self.mean + self.scale * (y + ((y @ self.vectors.T) * self.weights) @ self.vectors))

    def inverse(self, x: Floats) -> Floats:
        """Bring points back, (..., dimension)."""
        y = (x - self.mean) / self.scale
        return np.asarray(y - ((y @ self.vectors.T) * (self.weights / (1.0 + self.weights))) @ self.vectors)


def mapped(compiled: Any, coordinates: Map) -> Any:
    """Give a model that nutpie compiled by Numba in the coordinates y; its draws are those of x as before."""
    density, expansion = _functions()
    arrays = [np.ascontiguousarray(getattr(coordinates, f.name), dtype=np.float64) for f in dataclasses.fields(Map)]
    addresses = np.array(
        [
            compiled.compiled_logp_func.address,
            compiled.compiled_expand_func.address,
            compiled.user_data.ctypes.data,
            *(array.ctypes.data for array in arrays),
            len(coordinates.weights),
        ],
        dtype=np.int64,
    )
    return dataclasses.replace(
        compiled,
        compiled_logp_func=_Kept(density, (compiled, arrays)),
        compiled_expand_func=expansion,
        user_data=addresses,
        initial_point_func=lambda seed=None: coordinates.inverse(compiled.initial_point_func(seed)),
    )


@dataclasses.dataclass(frozen=True)
class _Kept:
    """A function, and what must live as long as it is called: it knows them by address only."""

    function: Any
    alive: tuple[Any, ...]

    @property
    def address(self) -> int:
        return int(self.function.address)

    @property
    def ctypes(self) -> Any:
        return self.function.ctypes


_DOUBLES = types.CPointer(types.double)  # type: ignore[no-untyped-call]

DENSITY = types.int64(types.uint64, _DOUBLES, _DOUBLES, _DOUBLES, types.voidptr)
"""Type of the log density: dimensions, point, gradient, value, data; 0 where all is finite."""

EXPANSION = types.int64(types.uint64, types.uint64, _DOUBLES, _DOUBLES, types.voidptr)
"""Type of what follows from a point: dimensions, size, point, values, data."""


def _as_pointer(typing: Any, address: Any) -> Any:
    """The address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


_pointer: Any = intrinsic(_as_pointer)


def _calling(signature: Any) -> Any:
    """An intrinsic that calls the function of a `signature` that is at an address."""

    @intrinsic
    def call(typing: Any, address: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, own: Any, values: Any) -> Any:
            from llvmlite import ir

            kinds = [context.get_value_type(kind) for kind in signature.args]
            kind = ir.FunctionType(context.get_value_type(signature.return_type), kinds)
            function = builder.inttoptr(values[0], kind.as_pointer())
            passed = [builder.bitcast(builder.extract_value(values[1], at), wanted) for at, wanted in enumerate(kinds)]
            return builder.call(function, passed)

        return signature.return_type(types.int64, arguments), generate

    return call


@cache
def _functions() -> tuple[Any, Any]:
    call_density, call_expansion = _calling(DENSITY), _calling(EXPANSION)

    @numba.njit(fastmath=True, cache=True)
    def stretch(vectors: Any, weights: Any, y: Any, out: Any) -> None:
        out[:] = y
        for row in range(len(weights)):
            along = 0.0
            for at in range(len(y)):
                along += vectors[row, at] * y[at]
            along *= weights[row]
            for at in range(len(y)):
                out[at] += along * vectors[row, at]

    def density(size: Any, point: Any, gradient: Any, value: Any, data: Any) -> Any:
        held = numba.carray(data, (8,), np.int64)
        mean = numba.carray(_pointer(held[3]), (size,), np.float64)
        scale = numba.carray(_pointer(held[4]), (size,), np.float64)
        vectors = numba.carray(_pointer(held[5]), (held[7], size), np.float64)
        weights = numba.carray(_pointer(held[6]), (held[7],), np.float64)
        x, inner = np.empty(size), np.empty(size)
        stretch(vectors, weights, numba.carray(point, (size,)), x)
        x[:] = mean + scale * x
        at, there = _pointer(x.ctypes.data), _pointer(inner.ctypes.data)
        status = call_density(held[0], (size, at, there, value, _pointer(held[2])))
        stretch(vectors, weights, scale * inner, numba.carray(gradient, (size,)))
        return status

    def expansion(size: Any, expanded: Any, point: Any, values: Any, data: Any) -> Any:
        held = numba.carray(data, (8,), np.int64)
        mean = numba.carray(_pointer(held[3]), (size,), np.float64)
        scale = numba.carray(_pointer(held[4]), (size,), np.float64)
        vectors = numba.carray(_pointer(held[5]), (held[7], size), np.float64)
        weights = numba.carray(_pointer(held[6]), (held[7],), np.float64)
        x = np.empty(size)
        stretch(vectors, weights, numba.carray(point, (size,)), x)
        x[:] = mean + scale * x
        return call_expansion(held[1], (size, expanded, _pointer(x.ctypes.data), values, _pointer(held[2])))

    return numba.cfunc(DENSITY, cache=True)(density), numba.cfunc(EXPANSION, cache=True)(expansion)
