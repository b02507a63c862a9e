"""Each suite identifies what its TOML states, checked by design: rows are simulated, the truth is found again.

A deliberately plain machine: compute rate by probe and dtype, one bandwidth per level, a launch, one sharpness of the
corner, a latency per level, a link, a step and a wire for collectives, two stretches for contention. Its parameters
have the priors of the models' notes (standard deviations of logs 0.5, of overheads 0.8), rows 5 % noise; identified
means contraction of at least one half, and the truth within four posterior standard deviations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pytest
from scipy.optimize import least_squares

from bayesperf import plugins
from bayesperf.measure.machine import Machine
from bayesperf.measure.plan import make_plan
from bayesperf.measure.points import Point
from bayesperf.measure.suites import Quantity, available_suites, load_suite
from bayesperf.probe import Work

NOISE = 0.05
STRETCH = {"compute": 0.7, "bandwidth": 0.5}


@dataclass(frozen=True)
class Truth:
    """A machine: sizes in byte of each level but the last, and its rates."""

    machine: Machine
    levels: tuple[float, ...]
    bandwidths: tuple[float, ...]
    compute: float
    launch: float = 2e-5
    sharpness: float = 3.0

    def level(self, working_set: float) -> int:
        return int(np.searchsorted(self.levels, working_set))


MACHINES = {
    "cpu": Truth(
        Machine("cpu", "a-2-core", 2, 24e9, "jax", cache_bytes=3e7),
        (4e4, 1.6e6, 3e7),
        (1.5e11, 8e10, 3e10, 1.5e10),
        8e10,
    ),
    "gpu": Truth(Machine("gpu", "a-gpu", 4, 80e9, "jax"), (4e7,), (5e12, 2e12), 6e13, launch=1e-5),
}


def parameters_of(point: Point, work: Work, truth: Truth) -> dict[str, float]:
    """Names and true values of what the time of a point depends on."""
    op, dtype = str(point.config["op"]), str(point.config.get("dtype"))
    if work.ranks > 1 or op.startswith("copy_"):
        kind = "communication" if work.ranks > 1 and not op.startswith("copy_") else "transfer"
        return {f"{kind} step {op}": 1e-5, f"{kind} wire {op}": 1e10}
    if op == "pointer_chase":
        level = truth.level(work.working_set_bytes)
        return {f"latency {level}": 5e-9 * 4.0**level}
    found: dict[str, float] = {}
    level = truth.level(work.working_set_bytes)
    if work.bytes:
        name = "bandwidth main" if level == len(truth.levels) else f"levels {level}"
        found[name] = truth.bandwidths[level]
    if work.flops:
        found[f"compute {point.probe} {dtype}"] = truth.compute
    if work.flops and work.bytes:
        found["ridge"] = truth.sharpness - 1.0
    if plugins.load("probe", point.probe).mode == "launched":
        found["overhead"] = truth.launch
    if point.beside is not None:
        found |= {f"contention {resource}": stretch for resource, stretch in STRETCH.items()}
    return found


def seconds(point: Point, work: Work, value: dict[str, float], truth: Truth) -> float:
    """Time of one execution."""
    op = str(point.config["op"])
    if wires := [name for name in value if " wire " in name]:
        step = next(name for name in value if " step " in name)
        return value[step] + (work.message_bytes or 0.0) / value[wires[0]]
    if op == "pointer_chase":
        return float(point.config["hops"]) * next(value[name] for name in value if name.startswith("latency"))
    demand = _demand(point, truth)
    compute = work.flops / next((value[n] for n in value if n.startswith("compute")), np.inf)
    memory = work.bytes / next((value[n] for n in value if n.startswith(("bandwidth", "levels"))), np.inf)
    if demand is not None:
        compute *= 1 + value["contention compute"] * demand[0]
        memory *= 1 + value["contention bandwidth"] * demand[1]
    q = 1 + value.get("ridge", truth.sharpness - 1)
    return float((compute**q + memory**q) ** (1 / q)) + value.get("overhead", 0.0)


def _demand(point: Point, truth: Truth) -> tuple[float, float] | None:
    """Aggressors' use of compute and of memory beyond the inner caches, as shares of what there is."""
    if point.beside is None:
        return None
    compute = memory = 0.0
    for corunner in point.beside.corunners:
        work = plugins.load("probe", corunner.probe).work(corunner.config)
        level = truth.level(work.working_set_bytes)
        times = np.array([work.flops / truth.compute, work.bytes / truth.bandwidths[level]])
        share = times / times.max()
        compute += corunner.count * share[0]
        memory += corunner.count * share[1] * (level > 0 or len(truth.levels) == 1)
    return compute, memory


def design(name: str, truth: Truth) -> Iterator[tuple[Point, Work]]:
    for point in make_plan(load_suite(name), truth.machine, 1).points:
        work = plugins.load("probe", point.probe).work(point.config)
        plain = point.condition == "hot+burst" and point.mode != "pinned"
        # What the host takes to compile is no capability of the device.
        compiling = str(point.config["op"]).startswith("compile_")
        if point.process == 0 and point.role == "fit" and plain and not compiling:
            yield point, work


def identified(rows: list[tuple[Point, Work]], truth: Truth) -> dict[str, tuple[float, float]]:
    """Contraction, and distance from the truth in posterior standard deviations, of each parameter."""
    true: dict[str, float] = {}
    for point, work in rows:
        true |= parameters_of(point, work, truth)
    names = sorted(true)
    at = {parameter: k for k, parameter in enumerate(names)}
    prior = np.array([0.8 if "overhead" in n or " step " in n else 0.5 for n in names])
    own = [[(p, at[p]) for p in parameters_of(point, work, truth)] for point, work in rows]

    def times(logs: np.ndarray) -> np.ndarray:
        return np.log(
            [
                seconds(point, work, {p: float(np.exp(logs[k])) for p, k in ks}, truth)
                for (point, work), ks in zip(rows, own, strict=True)
            ]
        )

    rng = np.random.default_rng(3)
    centre = np.log([true[n] for n in names])
    seen = times(centre) + NOISE * rng.standard_normal(len(rows))
    # The prior is off by its own standard deviation, at random: what rows do not say stays off.
    mean = centre + prior * rng.choice([-1.0, 1.0], len(names))
    fit = least_squares(
        lambda logs: np.concatenate([(times(logs) - seen) / NOISE, (logs - mean) / prior]), mean, method="lm"
    )
    deviation = np.sqrt(np.diag(np.linalg.inv(fit.jac.T @ fit.jac)))
    contraction = 1 - (deviation / prior) ** 2
    return {n: (contraction[k], abs(fit.x[k] - centre[k]) / deviation[k]) for k, n in enumerate(names)}


FIRST_WORD = {
    "compute": "compute matmul", "bandwidth": "bandwidth", "levels": "levels", "overhead": "overhead",
    "ridge": "ridge", "latency": "latency", "transfer": "transfer", "communication": "communication",
    "contention": "contention",
}  # fmt: skip


def test_every_quantity_has_parameters() -> None:
    assert set(FIRST_WORD) == set(get_args(Quantity))


@pytest.mark.parametrize("platform", list(MACHINES))
@pytest.mark.parametrize("name", list(available_suites()))
def test_suite_identifies_what_it_states(name: str, platform: str) -> None:
    truth = MACHINES[platform]
    stated = load_suite(name).on(platform).identifies
    assert stated, f"{name} does not state what it identifies"
    found = identified(list(design(name, truth)), truth)
    for quantity in stated:
        own = {n: v for n, v in found.items() if n.startswith(FIRST_WORD[quantity])}
        assert own, f"{name} on {platform} has no row that depends on {quantity}"
        for parameter, (contraction, distance) in own.items():
            assert contraction >= 0.5, f"{name} on {platform}: {parameter} is not learned"
            assert distance < 4.0, f"{name} on {platform}: {parameter} is learned wrong"


@pytest.mark.parametrize("name", list(available_suites()))
@pytest.mark.parametrize("platform", list(MACHINES))
def test_sentinels_come_from_all_regimes(name: str, platform: str) -> None:
    truth = MACHINES[platform]
    regimes = set()
    for point, work in design(name, truth):
        if point.sentinel and point.beside is None and work.ranks == 1:
            value = parameters_of(point, work, truth)
            launched = plugins.load("probe", point.probe).mode == "launched"
            memory = work.bytes / truth.bandwidths[truth.level(work.working_set_bytes)]
            compute = work.flops / truth.compute
            regimes.add("overhead" if launched and "overhead" in value else "compute" if compute > memory else "memory")
    assert regimes == {"overhead", "compute", "memory"}


def test_a_design_without_the_rows_does_not_identify() -> None:
    """The check can fail: compute-bound rows say nothing of the bandwidth, nor of the corner."""
    truth = MACHINES["cpu"]
    rows = [
        (point, work)
        for point, work in design("standard", truth)
        if work.flops / truth.compute > 10 * work.bytes / truth.bandwidths[truth.level(work.working_set_bytes)]
    ]
    found = identified(rows, truth)
    assert found["compute matmul float32"][0] > 0.9
    assert found["ridge"][0] < 0.5
    assert all(contraction < 0.5 for name, (contraction, _) in found.items() if name.startswith(("band", "levels")))
