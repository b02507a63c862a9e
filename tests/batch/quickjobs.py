"""Jobs that take no time, for tests of what runs them; worker processes import this by its own name."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayesperf.batch.job import run_job

GATE = [{"name": "R-hat", "value": 1.3, "limit": 1.01, "passed": False, "where": "x", "remedy": "more draws"}]
VERDICT = {
    "target": "a<script>alert(1)</script>", "regime": "memory, inside", "n_rows": 3, "shift": 0.25, "shift_lower": 0.2,
    "shift_upper": 0.3, "coverage_90": 0.1, "advice": "measure again",
}  # fmt: skip


def steps(task: Mapping[str, Any], at: Mapping[str, Path], folder: Path, seconds: dict[str, float]) -> dict[str, Any]:
    """Do what the job's name says: words of it are ``raise``, ``kill``, ``once``, ``warn``, ``slow``, ``interrupt``."""
    table = task["tables"][0]
    words = task["name"].split()
    first = _first_time(Path(table["path"]).parent / f"{task['id']}.tried")
    if "raise" in words:
        raise ZeroDivisionError("a\nmodel of <b>somebody</b>")
    if "kill" in words and (first or "once" not in words):
        os.kill(os.getpid(), signal.SIGKILL)
    if "interrupt" in words and first:
        raise KeyboardInterrupt
    if "warn" in words:
        warnings.warn("something to know", stacklevel=1)
    if "slow" in words:
        time.sleep(0.3)
    (folder / "profile.nc").write_bytes(at[table["path"]].read_bytes())
    seconds["fit"] = 0.5
    verdict = "fails" if "shifted" in words else "transfers"
    return {
        "status": "unconverged" if "unconverged" in words else "done",
        "converged": "unconverged" not in words,
        "gate": GATE if "unconverged" in words else [],
        "process": os.getpid(),
        "effective": {"n_rows": 3, "n_targets": 1, "n_stacks": 0, "n_campaigns": {"a": 1}},
        "validation": {"verdicts": [{**VERDICT, "verdict": verdict}], "coverage_90": 0.5},
    }


def _first_time(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        # A copy of the inputs: nobody else's.
        return True
    return True


def quick(task: Mapping[str, Any], contents: Mapping[str, bytes] | None = None) -> dict[str, Any]:
    """Run a quick job as a real one is run."""
    return run_job(task, contents, steps)
