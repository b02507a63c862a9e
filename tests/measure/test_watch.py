"""The interference watch, on made-up counters and on the real ones."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bayesperf.measure.watch import Disturbance, Reading, disturbance, read


def reading(
    wall: float, own: float, busy: float | None, steal: float | None = 0.0, waited: float | None = 0.0
) -> Reading:
    return Reading(wall, own, busy, steal, waited, 2)


def test_shares() -> None:
    seen = disturbance(reading(0, 0, 0), reading(1, 1.2, 1.6, 0.1, 0.2))
    assert seen.others == pytest.approx(0.2)
    assert seen.steal == pytest.approx(0.05)
    assert seen.waited == pytest.approx(0.1)
    assert seen.threads == pytest.approx(1.2)
    assert seen.total == pytest.approx(0.25)
    assert seen.disturbed()


def test_quiet_machine_is_not_disturbed() -> None:
    assert not disturbance(reading(0, 0, 0), reading(1, 1.9, 1.95, 0.0, 0.01)).disturbed()


def test_own_crowding_is_not_blamed_on_others() -> None:
    assert not disturbance(reading(0, 0, 0), reading(1, 2.0, 2.0, 0.0, 1.5)).disturbed()


def test_waiting_counts_where_ticks_are_too_coarse() -> None:
    short = disturbance(reading(0, 0, 0), reading(0.05, 0.05, 0.06, 0.0, 0.02))
    assert short.others == pytest.approx(0.1)
    assert short.disturbed()


def test_resolution_of_ticks_is_allowed_for() -> None:
    assert not disturbance(reading(0, 0, 0), reading(0.05, 0.05, 0.06, 0.0, 0.0)).disturbed()


def test_unknown_is_none_and_no_disturbance() -> None:
    seen = disturbance(reading(0, 0, None, None, None), reading(1, 1, None, None, None))
    assert (seen.others, seen.steal, seen.waited) == (None, None, None)
    assert not seen.disturbed()
    assert seen == Disturbance(None, None, None, 1.0, 1.0)


def test_reads_counters(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 10 20 900 5 1 2 30 0 0\ncpu0 50 5 10 450 3 1 1 15 0 0\ncpu1 50 5 10 450 2 0 1 15 0 0\n")
    found = read(stat, tmp_path / "none")
    assert found.busy_s == pytest.approx(1.33)
    assert found.steal_s == pytest.approx(0.30)
    assert found.processors == 2
    assert found.waited_s is None


def test_absent_counters_are_unknown(tmp_path: Path) -> None:
    found = read(tmp_path / "none", tmp_path / "none")
    assert (found.busy_s, found.steal_s, found.waited_s) == (None, None, None)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not tell")
def test_a_hidden_co_runner_is_seen() -> None:
    burn = "import time\nend = time.time() + 20\nwhile time.time() < end: pass"
    burners = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(2)]
    try:
        time.sleep(0.2)
        before = read()
        time.sleep(0.5)
        seen = disturbance(before, read())
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert seen.disturbed()
    assert seen.others is not None
    assert seen.others > 0.05


def test_what_our_aggressors_use_is_ours() -> None:
    burn = "import time\nend = time.time() + 60\nwhile time.time() < end: pass"
    burner = subprocess.Popen([sys.executable, "-c", burn])
    try:
        alone, together = read(), read(beside=[burner.pid])
        # However little a busy machine leaves it.
        deadline = time.monotonic() + 50
        while (ours := read(beside=[burner.pid])).own_s - read().own_s < together.own_s - alone.own_s + 0.3:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        seen, blamed = disturbance(together, ours), disturbance(alone, read())
    finally:
        burner.kill()
        burner.wait()
    assert seen.threads > blamed.threads
    if blamed.others is not None and seen.others is not None:
        assert seen.others < blamed.others
    assert read(beside=[burner.pid]).own_s == pytest.approx(read().own_s, abs=0.1)
