"""NVML on a made-up binding: what is read, what is unknown, what doctor says of it."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from bayesperf.measure import doctor, environment, gpu


class NVMLError(Exception):
    """As the binding's."""


def binding(devices: int = 1, **answers: Any) -> Any:
    """A module like pynvml; an answer that is an exception is raised."""
    module: Any = types.ModuleType("pynvml")
    module.NVMLError = NVMLError
    module.NVML_CLOCK_SM, module.NVML_CLOCK_MEM, module.NVML_TEMPERATURE_GPU = 1, 2, 0
    module.shut = 0
    given: dict[str, Any] = {
        "nvmlDeviceGetName": "NVIDIA Test",
        "nvmlDeviceGetClockInfo": 1500,
        "nvmlDeviceGetPowerUsage": 250_000,
        "nvmlDeviceGetTemperature": 60,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
        "nvmlDeviceGetMigMode": NVMLError("not supported"),
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetComputeRunningProcesses": [],
        **answers,
    }

    def answering(answer: Any) -> Any:
        def function(*arguments: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return function

    for name, answer in given.items():
        setattr(module, name, answering(answer))
    module.nvmlInit = answering(answers.get("nvmlInit"))
    module.nvmlShutdown = lambda: setattr(module, "shut", module.shut + 1)
    module.nvmlDeviceGetCount = lambda: devices
    module.nvmlDeviceGetHandleByIndex = lambda index: index
    module.nvmlDeviceGetHandleByUUID = lambda name: name
    return module


@pytest.fixture(autouse=True)
def _all_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def install(monkeypatch: pytest.MonkeyPatch, module: Any) -> Any:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def test_absent_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    assert gpu.gpu_state() is None
    assert set(gpu.summary(None).values()) == {None}
    assert environment.state()["gpus"] is None


def test_without_a_driver_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    module = install(monkeypatch, binding(nvmlInit=NVMLError("no driver")))
    assert gpu.gpu_state() is None
    assert module.shut == 0


def test_what_a_device_tells_and_what_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    module = install(monkeypatch, binding())
    found = gpu.gpu_state()
    assert found is not None
    assert found[0]["power_w"] == 250.0
    assert found[0]["throttle"] == ["idle"]
    assert found[0]["mig"] is None  # not supported there
    assert found[0]["ecc"] is None  # not in this binding
    assert module.shut == 1
    assert gpu.summary(found) == {"clock_mhz": 1500, "temperature_c": 60.0, "power_w": 250.0, "throttle": ""}


def test_throttle_reasons_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, binding(devices=2, nvmlDeviceGetCurrentClocksEventReasons=0x4 | 0x40))
    assert gpu.summary(gpu.gpu_state())["throttle"] == "power-cap+thermal-hardware"


def test_older_bindings_call_them_throttle_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    module = install(monkeypatch, binding(nvmlDeviceGetCurrentClocksThrottleReasons=0x8))
    del module.nvmlDeviceGetCurrentClocksEventReasons
    assert gpu.summary(gpu.gpu_state())["throttle"] == "hardware-slowdown"


@pytest.mark.parametrize(("visible", "count"), [("", 0), ("1", 1), ("0,GPU-abc", 2)])
def test_only_visible_devices_are_read(visible: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, binding(devices=4))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = gpu.gpu_state()
    assert found is not None
    assert len(found) == count


def findings(monkeypatch: pytest.MonkeyPatch, module: Any) -> dict[str, doctor.Finding]:
    install(monkeypatch, module)
    return {f.topic: f for f in doctor._gpus({"platform": "gpu"})}


def test_doctor_says_what_spoils_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    process = types.SimpleNamespace(pid=1)
    found = findings(
        monkeypatch,
        binding(
            nvmlDeviceGetCurrentClocksEventReasons=0x20, nvmlDeviceGetMigMode=(1, 1), nvmlDeviceGetPersistenceMode=0,
            nvmlDeviceGetComputeRunningProcesses=[process],
        ),
    )  # fmt: skip
    assert found["device clocks"].level == "warning"
    assert "thermal-software" in found["device clocks"].seen
    assert found["device users"].level == "warning"
    assert found["device partitions"].level == "note"
    assert found["device persistence"].advice
    assert all(f.advice for f in found.values() if f.level in ("warning", "problem"))


def test_doctor_is_content_with_a_free_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings(monkeypatch, binding())
    assert {f.level for f in found.values()} == {"ok"}


def test_doctor_says_how_to_see_more(monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings(monkeypatch, None)
    assert "pip install" in found["device state"].advice
