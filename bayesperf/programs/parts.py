"""Where the time of one run went: each second in one of five parts, measured from intervals and never as a remainder.

============ ================================================================================================
part         what it is
============ ================================================================================================
``dispatch`` from the host's call to the first operation of the device
``kernels``  the union of the intervals in which a kernel of the program ran
``control``  inside of a loop, a call or a branch, but in none of its kernels: its condition and its bookkeeping
``idle``     the gaps between operations, from the first to the last
``return``   from the last operation until the host had the result
============ ================================================================================================

Of several devices, the mean. What the host's clock measured beyond these is ``unattributed``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from bayesperf.programs.events import Operation, Run

__all__ = ["PARTS", "by_name", "gaps", "merged", "parts_of"]

PARTS = ("dispatch", "kernels", "control", "idle", "return")

Span = tuple[float, float]


def merged(spans: Iterable[Span]) -> list[Span]:
    """Union of intervals, as intervals that do not touch."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def gaps(spans: Sequence[Span]) -> list[Span]:
    """What lies between intervals that do not touch."""
    return [(end, start) for (_, end), (start, _) in pairwise(spans)]


def parts_of(run: Run, kernels: frozenset[str]) -> dict[str, float]:
    """Seconds of each part of a run.

    Parameters
    ----------
    run
        The run.
    kernels
        Instructions that are kernels; other operations hold kernels, or none.
    """
    devices: dict[str, list[Operation]] = defaultdict(list)
    for operation in run.operations:
        devices[operation.device].append(operation)
    every = [_of_device(run, operations, kernels) for operations in devices.values()]
    return {part: sum(each[part] for each in every) / max(len(every), 1) for part in PARTS}


def _of_device(run: Run, operations: Sequence[Operation], kernels: frozenset[str]) -> dict[str, float]:
    def clipped(some: Iterable[Operation]) -> list[Span]:
        return merged((max(o.start_s, run.start_s), min(o.end_s, run.end_s)) for o in some)

    busy, working = clipped(operations), clipped(o for o in operations if o.name in kernels)
    inside = [gap for span in busy for gap in _uncovered(span, working)]
    return {
        "dispatch": busy[0][0] - run.start_s,
        "kernels": _length(working),
        "control": _length(inside),
        "idle": _length(gaps(busy)),
        "return": run.end_s - busy[-1][1],
    }


def _uncovered(span: Span, covers: Sequence[Span]) -> list[Span]:
    """Parts of an interval that none of the sorted intervals `covers` covers."""
    start, end = span
    inside = [(max(a, start), min(b, end)) for a, b in covers if b > start and a < end]
    edges = [(start, start), *inside, (end, end)]
    return [gap for gap in gaps(edges) if gap[1] > gap[0]]


def _length(spans: Iterable[Span]) -> float:
    return sum(end - start for start, end in spans)


def by_name(run: Run) -> Mapping[str, tuple[int, float]]:
    """Executions and seconds of each instruction in a run; of several devices, the mean."""
    count: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    devices = {operation.device for operation in run.operations}
    for operation in run.operations:
        count[operation.name] += 1
        seconds[operation.name] += operation.end_s - operation.start_s
    share = max(len(devices), 1)
    return {name: (round(count[name] / share), seconds[name] / share) for name in count}
