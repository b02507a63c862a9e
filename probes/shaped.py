"""What probes share: sweeps over shapes and working sets, self-check sizes, references, weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from bayesperf.errors import InputError
from bayesperf.probe import Arrays, Config, Kernel, Probe, element_bytes, reference_of, storage_dtype, uniform

__all__ = ["BLOCK", "Shaped", "ShapedFunction", "ShapedOps", "check_known", "elements", "named", "weights"]

BLOCK = 1024


class Shaped(Probe):
    """Base of probes whose sweep lists ``dtypes`` and ``shapes``.

    Attributes
    ----------
    keys
        Names of the numbers of one entry of ``shapes``, in their order.
    caps
        Largest value of each key in a self-check.
    dtypes
        What ``dtypes`` may hold.
    """

    keys: ClassVar[tuple[str, ...]]
    caps: ClassVar[tuple[int, ...]]
    dtypes: ClassVar[tuple[str, ...]] = ("float32", "bfloat16", "float16")

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per dtype and shape."""
        check_known(self.name, "key", sweep, ("dtypes", "shapes"))
        check_known(self.name, "dtype", sweep["dtypes"], self.dtypes)
        return [
            {"op": self.ops[0], "dtype": dtype, **self.shape(entry)}
            for dtype in sweep["dtypes"]
            for entry in sweep["shapes"]
        ]

    def shape(self, entry: Sequence[int]) -> dict[str, int]:
        """One entry of ``shapes`` by key.

        Raises
        ------
        InputError
            It does not hold one positive number per key.
        """
        return named(self.name, self.keys, entry)

    def small(self, config: Config) -> Config:
        """At most `caps`."""
        caps = zip(self.keys, self.caps, strict=True)
        return {**config, **{key: min(config[key], cap) for key, cap in caps if key in config}}


class ShapedFunction(Shaped):
    """Base of shaped probes whose kernel is a `chained` or `repeated` function, which they define in NumPy again."""

    @abstractmethod
    def definition(self, config: Config, *arrays: np.ndarray) -> Arrays:
        """The kernel's function of its argument and operands, in NumPy."""

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The definition in float64."""
        return reference_of(partial(self.definition, config), kernel, iterations)


class ShapedOps(ShapedFunction):
    """Base of shaped functions of several ops: ``ops`` of a sweep defaults to all, ``dtypes`` to float32."""

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per op, dtype and shape."""
        check_known(self.name, "key", sweep, ("ops", "dtypes", "shapes"))
        ops, dtypes = sweep.get("ops", self.ops), sweep.get("dtypes", ["float32"])
        check_known(self.name, "op", ops, self.ops)
        check_known(self.name, "dtype", dtypes, self.dtypes)
        return [
            {"op": op, "dtype": dtype, **self.shape(shape)}
            for op in ops
            for dtype in dtypes
            for shape in sweep["shapes"]
        ]


def named(probe: str, keys: Sequence[str], entry: Sequence[int]) -> dict[str, int]:
    """The numbers of a shape by their keys.

    Raises
    ------
    InputError
        Not one positive whole number per key.
    """
    whole = all(isinstance(number, int) and number >= 1 for number in entry)
    if len(entry) != len(keys) or not whole:
        raise InputError(f"{probe}: a shape is [{', '.join(keys)}], whole numbers of at least 1, not {list(entry)}")
    return dict(zip(keys, entry, strict=True))


def elements(probe: str, size: float, arrays: int, dtype: str) -> int:
    """Elements of each of `arrays` arrays that fill `size` bytes together, in whole blocks, one at least.

    Raises
    ------
    InputError
        The size is not positive.
    """
    if size <= 0:
        raise InputError(f"{probe}: working_set_bytes must be positive, not {size}")
    return max(1, round(size / arrays / element_bytes(dtype) / BLOCK)) * BLOCK


def check_known(probe: str, kind: str, given: Iterable[Any], known: Iterable[Any]) -> None:
    """Refuse what a sweep gives and a probe does not know.

    Raises
    ------
    InputError
        Lists what is known.
    """
    unknown = [one for one in given if one not in known]
    if unknown:
        raise InputError(f"{probe}: no {kind} named {unknown[0]!r}; there are: {', '.join(map(str, known))}")


def weights(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Weights of either sign, the last axis the outputs, scaled so that results stay of order one.

    Uniform in +-1 / sqrt(fan-in), fan-in the product of all axes but the last.
    """
    centred = uniform(rng, shape) - np.float32(1.0)
    scale = np.float32(2.0 / np.sqrt(np.prod(shape[:-1])))
    return np.asarray(centred * scale).astype(storage_dtype(dtype))
