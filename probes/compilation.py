"""What a program costs before it runs: tracing, lowering and compiling, each apart.

The stated program: `layers` times ``x = tanh(x w_k) + x / 4`` on float32 arrays of 64 x 64, then the sum of squares and
a constant that no program before had, so that no cache of JAX or XLA answers.

=================== ==================================================================
op                  one iteration
=================== ==================================================================
``compile_trace``   ``jax.jit(f).trace(...)``: Python function to jaxpr
``compile_lower``   ``Traced.lower()``: jaxpr to StableHLO
``compile_backend`` ``Lowered.compile()``: StableHLO to an executable
=================== ==================================================================

flops = bytes = 0: overhead. What comes before is prepared outside the timed region. In-process caches of a backend that
do not go by the whole program (autotuned kernels) are warm after the first: ``first_run_s`` holds the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesperf.errors import InputError
from bayesperf.probe import Config, Kernel, Probe, Routine, Work, hosted

SIDE = 64


class Compilation(Probe):
    """Sweep: ``ops`` and ``layers``."""

    name = "compilation"
    ops = ("compile_trace", "compile_lower", "compile_backend")
    mode = "hosted"

    def configurations(self, sweep: Mapping[str, Any]) -> list[Config]:
        """One per op and number of layers."""
        unknown = [op for op in sweep["ops"] if op not in self.ops]
        if unknown:
            raise InputError(f"compilation: no op named {unknown[0]!r}; there are: {', '.join(self.ops)}")
        return [
            {"op": op, "dtype": "float32", "layers": int(layers)} for op in sweep["ops"] for layers in sweep["layers"]
        ]

    def work(self, config: Config) -> Work:
        """No work of the device; the working set is the program's operands."""
        return Work(0.0, 0.0, 0.0, 4.0 * SIDE * SIDE * (config["layers"] + 1), 1)

    def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
        """Centred weights, scaled so that activations stay of order one."""
        shape = (config["layers"] + 1, SIDE, SIDE)
        x, *weights = (rng.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(SIDE))).astype(np.float32)

        def routine(devices: Sequence[Any], kernel: Kernel) -> Routine:
            return _Compiler(config["op"], devices[0], x, weights)

        return hosted((x, *weights), (), routine)

    def reference(self, config: Config, kernel: Kernel, iterations: int) -> tuple[np.ndarray, ...]:
        """The program's result without its constant, in float64."""
        x, *weights = (np.asarray(o, dtype=np.float64) for o in kernel.operands)
        for w in weights:
            x = np.tanh(x @ w) + x / 4
        return (np.array([np.square(x).sum()]),)

    def tolerance(self, config: Config) -> float:
        """Products are in the backend's default precision."""
        return 1e-2

    def small(self, config: Config) -> Config:
        """At most two layers."""
        return {**config, "layers": min(config["layers"], 2)}


class _Compiler(Routine):
    """Makes programs that no cache knows, up to one step before the op; the op's step is timed."""

    _constants = itertools.count(1)

    def __init__(self, op: str, device: Any, x: np.ndarray, weights: list[np.ndarray]):
        import jax

        self._step = {"compile_trace": _trace, "compile_lower": _lower, "compile_backend": _compile}[op]
        self._before = {"compile_trace": [], "compile_lower": [_trace], "compile_backend": [_trace, _lower]}[op]
        self._arguments = tuple(jax.device_put(a, device) for a in (x, *weights))
        self._ready: list[Any] = []
        self._last: tuple[Any, float] = (None, 0.0)

    def prepare(self, iterations: int) -> None:
        """A new function for each iteration."""
        while len(self._ready) < iterations:
            # Distinct in float32, and lost against the sum where it is compared.
            constant = float(next(self._constants)) * 2.0**-20
            made: Any = (_function(constant), self._arguments)
            for step in self._before:
                made = step(made)
            self._ready.append((made, constant))

    def run(self, iterations: int) -> None:
        self.prepare(iterations)
        for _ in range(iterations):
            made, constant = self._ready.pop()
            self._last = (self._step(made), constant)

    def result(self) -> list[np.ndarray]:
        made, constant = self._last
        for step in (_trace, _lower, _compile)[len(self._before) + 1 :]:
            made = step(made)
        executable, arguments = made
        return [np.asarray(executable(*arguments))[None] - constant]

    def release(self) -> None:
        for array in self._arguments:
            array.delete()
        self._ready, self._last = [], (None, 0.0)


def _function(constant: float) -> Any:
    def stated(x: Any, *weights: Any) -> Any:
        import jax.numpy as jnp

        for w in weights:
            x = jnp.tanh(x @ w) + x / 4
        return (x * x).sum() + constant

    return stated


def _trace(made: Any) -> Any:
    import jax

    function, arguments = made
    return jax.jit(function).trace(*arguments), arguments


def _lower(made: Any) -> Any:
    traced, arguments = made
    return traced.lower(), arguments


def _compile(made: Any) -> Any:
    lowered, arguments = made
    return lowered.compile(), arguments


probe = Compilation()
