"""Working sets inside a program: what is touched between two uses of the same data.

A kernel that is repeated by itself, as a probe is, touches its own footprint between two uses of the same byte, and
that is its working set. In a program other kernels run between, so a weight that is small in itself may be used once a
step and come from main memory each time. Here the working set of a kernel is the mean, in the logarithm and weighted by
traffic, over what it reads and writes, of the bytes that the program touches between two uses; never less than the
kernel's own footprint. Programs and the bodies of loops count as repeated. What moves over a larger buffer from one
iteration to the next (a layer's slice of stacked weights) is used once a run of the program. Where a kernel writes a
buffer that nothing had used before, it takes memory that others have left: its own footprint counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bayesperf.workloads.schedule import Buffer, Kernel, Loop

__all__ = ["WorkingSet", "working_sets"]


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """Of one kernel: its own footprint, and what is touched between two uses of its data; byte."""

    footprint: float
    reuse: float


@dataclass(frozen=True, slots=True)
class _Event:
    """One kernel or loop of a level: spans of the buffers it touches, and the kernel where it is one."""

    spans: dict[Buffer, float]
    kernel: Kernel | None


def working_sets(program: Loop) -> dict[int, WorkingSet]:
    """Working set of every kernel that has buffers, by the kernel's ``id``."""
    found: dict[int, WorkingSet] = {}
    whole = sum(_spans(program).values())
    _level(program, whole, found)
    return found


def _spans(loop: Loop) -> dict[Buffer, float]:
    """Bytes of every buffer that a loop touches in all its iterations, as the level around it knows them."""
    spans: dict[Buffer, float] = {}
    trips = loop.trips if math.isfinite(loop.trips) else 1.0
    for item in loop.items:
        if isinstance(item, Loop):
            inner = _spans(item)
        else:
            inner = _touched(item)
            for touch in item.touches:
                if touch.access.moving and touch.buffer in loop.outer:
                    inner[touch.buffer] = max(inner[touch.buffer], touch.access.span * trips)
        for buffer, span in inner.items():
            known = loop.outer.get(buffer, buffer)
            spans[known] = max(spans.get(known, 0.0), span)
    return spans


def _touched(kernel: Kernel) -> dict[Buffer, float]:
    spans: dict[Buffer, float] = {}
    for touch in kernel.touches:
        spans[touch.buffer] = max(spans.get(touch.buffer, 0.0), touch.access.span)
    return spans


def _level(loop: Loop, whole: float, found: dict[int, WorkingSet]) -> None:
    """Kernels of one level, whose events follow each other in a circle."""
    events = [
        _Event(_spans(item), None) if isinstance(item, Loop) else _Event(_touched(item), item) for item in loop.items
    ]
    together: dict[Buffer, float] = {}
    for event in events:
        for buffer, span in event.spans.items():
            together[buffer] = max(together.get(buffer, 0.0), span)
    level = sum(together.values())
    passed, last = 0.0, dict[Buffer, float]()
    first: set[Buffer] = set()
    for again in (False, True):
        used: set[Buffer] = set()
        for event in events:
            own = sum(event.spans.values())
            if again and event.kernel is not None:
                gaps = {b: min(passed - last[b] + own, level) for b in event.spans}
                fresh = {b for b in event.spans if b not in used and b in first}
                found[id(event.kernel)] = _combined(event.kernel, own, gaps, fresh, whole)
            for buffer in event.spans:
                if not again and buffer not in used and _written_first(event.kernel, buffer):
                    first.add(buffer)
                used.add(buffer)
                last[buffer] = passed + own
            passed += own
    for item in loop.items:
        if isinstance(item, Loop):
            _level(item, whole, found)


def _written_first(kernel: Kernel | None, buffer: Buffer) -> bool:
    """Whether a kernel writes a buffer without reading it."""
    touches = [touch for touch in kernel.touches if touch.buffer == buffer] if kernel else []
    return bool(touches) and all(touch.written for touch in touches)


def _combined(kernel: Kernel, own: float, gaps: dict[Buffer, float], fresh: set[Buffer], whole: float) -> WorkingSet:
    weight = total = 0.0
    for touch in kernel.touches:
        gap = own if touch.buffer in fresh else whole if touch.access.moving else gaps[touch.buffer]
        weight += touch.access.bytes
        total += touch.access.bytes * math.log(max(gap, own, 1.0))
    return WorkingSet(own, math.exp(total / weight) if weight else max(own, 1.0))
