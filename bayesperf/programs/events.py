"""What a trace of the profiler says of a program: which operation ran when, on which device, in which run.

Read through ``jax.profiler.ProfileData``. On CPU, operations are events of the host's threads that carry ``hlo_op``; on
GPU they are events of the streams of planes ``/device:GPU:n``, on TPU of the line ``XLA Ops`` of planes
``/device:TPU:n``. Runs are the events of an annotation that the host made around each.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bayesperf.errors import MeasurementError

__all__ = ["MARK", "Operation", "Run", "covered", "read_runs", "runs_of"]

MARK = "bayesperf_run"
"""Name of the annotation around one run."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One execution of one HLO instruction; times in seconds since the trace began."""

    name: str
    start_s: float
    end_s: float
    device: str


@dataclass(frozen=True)
class Run:
    """One run of the program as the host saw it, and the operations that ran in it; seconds since the trace began."""

    start_s: float
    end_s: float
    operations: tuple[Operation, ...]

    @property
    def seconds(self) -> float:
        """How long the host waited for it."""
        return self.end_s - self.start_s


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of intervals."""
    total, until = 0.0, -float("inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def read_runs(folder: Path, module: str) -> list[Run]:
    """Runs of a program in the trace that was written into a folder.

    Parameters
    ----------
    folder
        Where ``jax.profiler.trace`` wrote.
    module
        Name of the HLO module.

    Raises
    ------
    MeasurementError
        ``no-trace``: there is none, or it holds no run or no operation of this program.
    """
    from jax.profiler import ProfileData

    files = sorted(folder.rglob("*.xplane.pb"))
    if not files:
        raise MeasurementError("no-trace", "the profiler wrote no trace (*.xplane.pb)")
    runs = runs_of(ProfileData.from_file(str(files[-1])), module)
    if not any(run.operations for run in runs):
        raise MeasurementError(
            "no-trace", f"the trace holds no operation of {module}: this backend does not report them"
        )
    return runs


def runs_of(data: Any, module: str) -> list[Run]:
    """Runs of a program in a profile, in order; see `read_runs`."""
    seen = _Seen()
    with warnings.catch_warnings():
        # On first use JAX's bindings make types that Python 3.13 calls deprecated; where warnings are errors, that one
        # ends the process from inside of them.
        warnings.filterwarnings("ignore", message="builtin type .* has no __module__ attribute")
        for plane in data.planes:
            _collect(plane, module, seen)
    operations = [seen.ended(operation, key) for operation, key in seen.operations]
    operations.sort(key=lambda operation: operation.start_s)
    return [_run(start, end, operations) for start, end in sorted(seen.marks)]


def _run(start: float, end: float, operations: Sequence[Operation]) -> Run:
    """A run with the operations that began in it; that one has ended may be told when the host has its result."""
    own = (operation for operation in operations if start <= operation.start_s < end)
    return Run(start, end, tuple(replace(operation, end_s=min(operation.end_s, end)) for operation in own))


@dataclass
class _Seen:
    """What a trace holds: runs, operations with the key of their end, and when ends came where that is told."""

    marks: list[tuple[float, float]] = field(default_factory=list)
    operations: list[tuple[Operation, str]] = field(default_factory=list)
    ends: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def ended(self, operation: Operation, key: str) -> Operation:
        """The operation until the first end of its name and key that came after its start: keys are used again."""
        after = [end for end in self.ends.get((operation.name, key), ()) if end >= operation.start_s]
        return replace(operation, end_s=max(operation.end_s, min(after))) if after else operation


def _collect(plane: Any, module: str, seen: _Seen) -> None:
    device = plane.name if plane.name.startswith("/device:") else "/host"
    for line in plane.lines:
        if device != "/host" and not _has_operations(line.name):
            continue
        for event in line.events:
            if event.name == MARK or event.name.startswith(f"{MARK}#"):
                seen.marks.append((event.start_ns / 1e9, event.end_ns / 1e9))
                continue
            stats = dict(event.stats)
            if event.name.startswith("end: "):
                # On CPU an operation may hand its work to other threads; that it is done is an event of its own.
                seen.ends[event.name.removeprefix("end: "), str(stats.get("_c", ""))].append(event.start_ns / 1e9)
                continue
            found = _operation(event, stats, device, module)
            if found is not None:
                seen.operations.append((found, str(stats.get("_p", "none"))))


def _has_operations(line: str) -> bool:
    """Whether a device's line holds single operations: other lines repeat them, grouped by module or by name."""
    return line == "XLA Ops" or line.startswith("Stream") or "Async" in line


def _operation(event: Any, stats: Mapping[str, Any], device: str, module: str) -> Operation | None:
    name = stats.get("hlo_op")
    if name is None and device != "/host":
        # Traces of TPUs name an event by the text of its instruction.
        found = re.match(r"%?([\w.\-]+)\s*=", event.name)
        name = found[1] if found else None
    if name is None:
        return None
    of = str(stats.get("hlo_module", module))
    if not re.fullmatch(rf"{re.escape(module)}(\(.*\)|\.\d+)?", of):
        return None
    where = f"{device}:{stats['device_ordinal']}" if "device_ordinal" in stats else device
    return Operation(str(name).lstrip("%"), event.start_ns / 1e9, event.end_ns / 1e9, where)
