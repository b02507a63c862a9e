"""Suites: every installed one is valid and identifies its regimes; bad ones are refused by key."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bayesperf import plugins
from bayesperf.errors import InputError, UnknownNameError
from bayesperf.measure.machine import Machine
from bayesperf.measure.plan import make_plan
from bayesperf.measure.suites import available_suites, load_suite

CPU = Machine("cpu", "test-2-core", 2, 24e9, "jax", cache_bytes=3e7)
GPU = Machine("gpu", "test-gpu", 1, 80e9, "jax")


def test_available_suites_are_listed_shortest_first_without_jax() -> None:
    assert list(available_suites()) == ["tiny", "quick", "standard", "full", "contention", "collectives"]
    assert all(available_suites().values())
    code = (
        "import sys; from bayesperf.measure.suites import available_suites; available_suites(); "
        "print([m for m in ('jax', 'pandas', 'pymc') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unknown_suite_lists_the_known_nearest_first() -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_suite("quik")
    assert caught.value.known[0] == "quick"


@pytest.mark.parametrize("name", list(available_suites()))
@pytest.mark.parametrize("machine", [CPU, GPU], ids=["cpu", "gpu"])
def test_plan_of_an_installed_suite(name: str, machine: Machine) -> None:
    plan = make_plan(load_suite(name), machine, 1)
    assert len({p.id for p in plan.points}) == len(plan.points)
    assert [p.order for p in plan.points] == list(range(len(plan.points)))
    limits = {"tiny": 30, "quick": 160, "standard": 900, "contention": 900, "collectives": 900}
    assert plan.seconds() < limits.get(name, 3600) * (1 if machine is CPU else 2)
    described = plan.describe()
    assert len(described) == len(plan.points)
    assert (described[["seconds", "memory_bytes", "disk_bytes"]] > 0).all().all()


@pytest.mark.parametrize("name", ["tiny", "quick", "standard", "full"])
def test_each_suite_covers_its_regimes_for_fit_and_heldout(name: str) -> None:
    points = [p for p in make_plan(load_suite(name), CPU, 1).points if p.process == 0 and p.scope == "all"]
    regimes: Counter[tuple[str, str]] = Counter()
    for point in points:
        work = plugins.load("probe", point.probe).work(point.config)
        # A rough core: 80 GFLOP/s, 15 GB/s, 1 us: enough to tell the regimes' middles.
        times = {"compute": work.flops / 80e9, "memory": work.bytes / 15e9, "overhead": 1e-6}
        regimes[point.role, max(times, key=times.__getitem__)] += 1
    least = {"tiny": 1}.get(name, 6)
    for role in ("fit", "heldout"):
        assert regimes[role, "compute"] >= least
        assert regimes[role, "memory"] >= least
    assert regimes["fit", "overhead"] >= 1
    assert any(p.sentinel for p in points)


def test_one_device_means_one_scope() -> None:
    plan = make_plan(load_suite("quick"), GPU, 1)
    assert {p.scope for p in plan.points} == {"all"}
    assert {p.n_devices for p in plan.points} == {1}


def test_main_memory_follows_the_reported_caches() -> None:
    big = Machine("cpu", "test", 2, 64e9, "jax", cache_bytes=1e9)
    sets = [p.working_set_bytes * p.n_devices for p in make_plan(load_suite("tiny"), big, 1).points]
    assert max(sets) == pytest.approx(2.5e9, rel=0.01)


BAD = {
    "description = 1\nprobe = []": "description",
    'description = "x"\n': "probe",
    'description = "x"\nspeed = 9\n[[probe]]\nname = "matmul"\nsweep = {}\n': "speed",
    'description = "x"\nscopes = ["some"]\n[[probe]]\nname = "matmul"\nsweep = {}\n': "scopes",
    'description = "x"\n[budget]\npoint_s = -1\n[[probe]]\nname = "matmul"\nsweep = {}\n': "point_s",
    'description = "x': "TOML",
}


@pytest.mark.parametrize(("text", "names"), BAD.items(), ids=BAD.values())
def test_bad_suite_is_refused_by_key(text: str, names: str, tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=names):
        load_suite(path)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('name = "matmull"\nsweep = {}', "matmul"),
        ('name = "matmul"\nsweep = { dtypes = ["float32"] }', "shapes"),
        ('name = "matmul"\nsweep = { dtypes = ["float32"], shapes = "big" }', "shape"),
    ],
)
def test_bad_probe_or_sweep_is_refused_by_name(entry: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f'description = "x"\n[[probe]]\n{entry}\n')
    with pytest.raises(InputError, match=says):
        make_plan(load_suite(path), CPU, 1)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_suite(tmp_path / "none.toml")


def test_platform_override(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'description = "x"\nprocesses = 2\n'
        '[[probe]]\nname = "matmul"\nsweep = { dtypes = ["float32"], shapes = [64] }\n'
        '[platform.gpu]\nprocesses = 4\n[[platform.gpu.probe]]\nname = "matmul"\n'
        'sweep = { dtypes = ["bfloat16"], shapes = [4096] }\n'
    )
    suite = load_suite(path)
    assert {p.config["m"] for p in make_plan(suite, CPU, 1).points} == {64}
    on_gpu = make_plan(suite, GPU, 1)
    assert {p.config["m"] for p in on_gpu.points} == {4096}
    assert len(on_gpu.points) == 4
