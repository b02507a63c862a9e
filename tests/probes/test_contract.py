"""One contract for the whole catalogue, third parties' probes included: formulas, result, program, traces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from bayesperf import plugins
from bayesperf.errors import MeasurementError
from bayesperf.measure.chain import build, check
from bayesperf.measure.machine import Machine
from bayesperf.measure.plan import make_plan
from bayesperf.measure.point import check_result
from bayesperf.measure.suites import available_suites, load_suite
from bayesperf.probe import Config, Kernel, Probe
from tests.probes.examples import EXAMPLES

MACHINE = Machine("cpu", "test-2-core", 2, 64e9, "jax")


def measured() -> Iterator[tuple[str, Config]]:
    """What any installed suite measures."""
    for suite in available_suites():
        yield from ((point.probe, point.config) for point in make_plan(load_suite(suite), MACHINE, 0).points)


def configurations() -> Iterator[tuple[str, Config]]:
    """What any installed suite measures, and the examples."""
    yield from measured()
    for name, sweep in EXAMPLES.items():
        yield from ((name, config) for config in plugins.load("probe", name).configurations(sweep))


def small_configurations() -> Iterator[tuple[str, Config]]:
    """One small configuration per probe, op and dtype, and those with a batch beside those without."""
    seen = set()
    for name, config in configurations():
        key = (name, config["op"], config.get("dtype"), "batch" in config)
        if key not in seen:
            seen.add(key)
            if is_supported(name, config):
                yield name, plugins.load("probe", name).small(config)


def is_supported(name: str, config: Config) -> bool:
    """Whether this device has the dtype; that it is refused otherwise is tested with its probe."""
    if config.get("dtype") not in ("tf32", "float8"):
        return True
    probe: Probe = plugins.load("probe", name)
    try:
        build(probe, probe.small(config), jax.local_devices()[:1], np.random.default_rng(0)).release()
    except MeasurementError as error:
        if error.reason != "unsupported-dtype":
            raise
        return False
    return True


def devices(probe: Probe, config: Config) -> list[Any]:
    """As many as an iteration spans."""
    return list(jax.local_devices()[: probe.work(config).ranks])


CASES = [
    pytest.param(name, config, id="-".join(map(str, (config["op"], config.get("dtype"), config.get("batch", 1)))))
    for name, config in small_configurations()
]


def test_every_installed_probe_is_in_a_suite() -> None:
    assert {name for name, _ in measured()} == set(plugins.available("probe"))


@pytest.mark.parametrize(("name", "config"), CASES)
def test_describes_itself(name: str, config: Config) -> None:
    probe: Probe = plugins.load("probe", name)
    assert probe.name == name
    assert probe.role in ("fit", "heldout")
    assert config["op"] in probe.ops
    assert json.loads(json.dumps(config)) == config
    work = probe.work(config)
    assert work.flops >= 0
    assert 0 <= work.bytes <= work.write_allocate_bytes
    assert work.working_set_bytes > 0
    assert work.parallelism >= 1
    # Each sweep over a grid waits for the one before, so that it moves the grid again.
    assert work.bytes <= work.working_set_bytes * config.get("sweeps", 1)


@pytest.mark.parametrize(("name", "config"), CASES)
def test_arrays_are_what_the_formulas_say(name: str, config: Config) -> None:
    probe: Probe = plugins.load("probe", name)
    kernel: Kernel | None = probe.kernel(config, np.random.default_rng(0))
    work = probe.work(config)
    while kernel is not None:
        # The work is one rank's, the arrays are those of all ranks.
        ranks = 1 if probe.mode == "hosted" else work.ranks
        held = sum(array.nbytes for array in (*kernel.operands, *kernel.carry)) / ranks
        # Scores and hidden activations are in the working set but no operand; offsets and scalars are in neither.
        assert held <= 1.1 * work.working_set_bytes + 256
        # A step of its own form may update its carry in place: then it is read as well as written.
        twice = sum(array.nbytes for array in kernel.carry) / ranks if kernel.form == "own" else 0
        assert held + twice >= 0.9 * work.bytes / config.get("sweeps", 1) - 256
        for array in kernel.operands:
            assert np.count_nonzero(array) > 0.99 * array.size
        kernel = kernel.fallback


@pytest.mark.parametrize(("name", "config"), CASES)
def test_result_program_and_traces(name: str, config: Config) -> None:
    probe: Probe = plugins.load("probe", name)
    traces = 0

    class Counting:
        """The probe, with a step that counts how often it is traced."""

        mode, work, reference, tolerance = probe.mode, probe.work, probe.reference, probe.tolerance

        def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
            kernel = probe.kernel(config, rng)

            def step(*arguments: Any) -> Any:
                nonlocal traces
                traces += 1
                return kernel.step(*arguments)

            return replace(kernel, step=step, fallback=None)

    counting: Any = Counting()
    program = build(counting, config, devices(probe, config), np.random.default_rng(0))
    built = traces
    assert check_result(counting, config, program, iterations=3) <= probe.tolerance(config)
    for iterations in (1, 2, 5):
        program.run(iterations)
    assert traces == built, "the probe is traced again when the number of iterations changes"
    assert built <= 2
    check(program, probe.work(config).bytes)


@pytest.mark.parametrize(("name", "config"), CASES)
def test_doing_nothing_is_refused(name: str, config: Config) -> None:
    probe: Probe = plugins.load("probe", name)
    if probe.mode == "hosted":
        pytest.skip("its routine guards itself")

    class Idle:
        """The probe, its step replaced by one that hands its carry on."""

        mode, work = probe.mode, probe.work

        def kernel(self, config: Config, rng: np.random.Generator) -> Kernel:
            return replace(probe.kernel(config, rng), step=lambda i, carry, *operands: carry, fallback=None)

    idle: Any = Idle()
    with pytest.raises(MeasurementError, match=r"folded|hoisted"):
        build(idle, config, devices(probe, config), np.random.default_rng(0))


@pytest.mark.parametrize(("name", "config"), CASES)
def test_data_come_from_the_seed(name: str, config: Config) -> None:
    probe: Probe = plugins.load("probe", name)
    first, again, other = (probe.kernel(config, np.random.default_rng(seed)) for seed in (1, 1, 2))
    for a, b in zip((*first.operands, *first.carry), (*again.operands, *again.carry), strict=True):
        np.testing.assert_array_equal(a, b)
    if first.operands:
        assert any(np.any(a != b) for a, b in zip(first.operands, other.operands, strict=True))


@pytest.mark.parametrize(("name", "config"), CASES)
def test_fallback_forms_do_the_same_work(name: str, config: Config) -> None:
    probe: Probe = plugins.load("probe", name)
    kernel = probe.kernel(config, np.random.default_rng(0)).fallback
    while kernel is not None:
        form = kernel

        class Fallback:
            """The probe in one of its other forms."""

            mode, work, reference, tolerance = probe.mode, probe.work, probe.reference, probe.tolerance

            def kernel(self, config: Config, rng: np.random.Generator, form: Kernel = form) -> Kernel:
                return replace(form, fallback=None)

        other: Any = Fallback()
        check_result(other, config, build(other, config, devices(probe, config), np.random.default_rng(0)))
        kernel = kernel.fallback


def test_float32_tolerance_tells_tf32() -> None:
    probe = plugins.load("probe", "matmul")
    config = {"op": "matmul", "dtype": "float32", "m": 64, "n": 64, "k": 64}
    kernel = probe.kernel(config, np.random.default_rng(0))
    _, exact = probe.reference(config, kernel, 1)

    def tf32(array: np.ndarray) -> np.ndarray:
        return (np.ascontiguousarray(array).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)

    a, b = kernel.carry[0], kernel.operands[0]
    lowered = tf32(a).astype(np.float64) @ tf32(b)
    full = (a @ b).astype(np.float64)
    scale = np.abs(exact).max()
    assert np.abs(full - exact).max() / scale < probe.tolerance(config) < np.abs(lowered - exact).max() / scale
