"""Scopes, names and what the environment record says."""

from __future__ import annotations

import json
import os
import platform

import pytest

from bayesperf.measure import environment
from bayesperf.measure.doctor import diagnose
from bayesperf.measure.machine import Machine, cpu_devices, scope_environment
from bayesperf.specs import slug


def test_target_names_device_and_count() -> None:
    machine = Machine("gpu", slug("NVIDIA H200"), 8, 1e11, "jax-0.12")
    assert machine.target(machine.count("all")) == "nvidia-h200-x8"
    assert machine.target(machine.count("one")) == "nvidia-h200-x1"


def test_cpu_device_names_model_and_cores() -> None:
    description = {"platform": "cpu", "device_kind": "cpu", "local_devices": 1, "jax": "1", "jaxlib": "2"}
    machine = Machine.from_description(description)
    assert machine.device.endswith(f"{cpu_devices()}-core")
    assert machine.device == slug(machine.device)
    assert machine.stack == "jax-1+jaxlib-2"


def test_accelerator_is_named_by_its_kind() -> None:
    description = {
        "platform": "gpu", "device_kind": "NVIDIA A100-SXM4-40GB", "local_devices": 4, "jax": "1", "jaxlib": "2",
        "memory_bytes": 4e10,
    }  # fmt: skip
    machine = Machine.from_description(description)
    assert (machine.device, machine.devices, machine.memory_bytes) == ("nvidia-a100-sxm4-40gb", 4, 4e10)


def test_cpu_scope_asks_for_one_device_per_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x --xla_force_host_platform_device_count=7")
    flags = scope_environment("cpu", 3)["XLA_FLAGS"].split()
    assert flags == ["--xla_dump_to=x", "--xla_force_host_platform_device_count=3"]
    assert "XLA_FLAGS" not in scope_environment("gpu", 3)


def test_devices_respect_the_affinity_mask() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert cpu_devices() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_environment_record_is_json_and_names_nobody() -> None:
    record = {**environment.of_host(), **environment.state()}
    text = json.dumps(record)
    assert record["python"] == platform.python_version()
    assert platform.node() not in text or len(platform.node()) < 4
    assert os.path.expanduser("~") not in text or os.path.expanduser("~") == "/"


def test_unreadable_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    from pathlib import Path

    monkeypatch.setattr(environment, "_CPU", Path("/nowhere"))
    monkeypatch.setattr(environment, "_CGROUP", Path("/nowhere"))
    record = environment.of_host()
    assert record["cpu_governor"] is None
    assert record["cpu_caches"] is None
    assert record["cgroup_quota_cores"] is None
    assert environment.last_level_cache_bytes() is None


@pytest.mark.parametrize(("text", "cores"), [("max 100000", None), ("150000 100000", 1.5), ("200000 100000", 2.0)])
def test_cgroup_quota(text: str, cores: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_text", lambda path: text if path.name == "cpu.max" else None)
    assert environment.cgroup_quota_cores() == cores


def test_doctor_looks_at_everything_and_advises() -> None:
    findings = diagnose(seconds=0.05, ask_jax=False)
    topics = {f.topic for f in findings}
    assert {"clock governor", "processor quota", "affinity", "temperature", "memory", "other load"} <= topics
    for finding in findings:
        assert finding.level in ("ok", "note", "warning", "problem")
        assert finding.seen
        if finding.level in ("warning", "problem"):
            assert finding.advice


def test_doctor_warns_of_powersave_quota_and_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "cgroup_quota_cores", lambda: 1.5)
    real = environment.of_host
    monkeypatch.setattr(environment, "of_host", lambda: {**real(), "cpu_governor": "powersave"})
    monkeypatch.setattr(environment, "state", lambda: {"temperature_c": 97.0, "load_average": 9.0})
    by_topic = {f.topic: f for f in diagnose(seconds=0.01, ask_jax=False)}
    assert by_topic["clock governor"].level == "warning"
    assert by_topic["processor quota"].level == "warning"
    assert by_topic["temperature"].level == "warning"


def test_doctor_sees_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    by_topic = {f.topic: f for f in diagnose(seconds=0.01)}
    assert by_topic["JAX"].level == "ok"
    assert "cpu" in by_topic["JAX"].seen


def test_doctor_says_when_jax_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "no-such-platform")
    by_topic = {f.topic: f for f in diagnose(seconds=0.01)}
    assert by_topic["JAX"].level == "problem"
    assert by_topic["JAX"].advice
