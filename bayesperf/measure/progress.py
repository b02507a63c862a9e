"""What a run tells those who watch it: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from typing import Protocol

from bayesperf.measure.plan import Plan
from bayesperf.measure.points import Point

__all__ = ["BarProgress", "LogProgress", "Progress", "SilentProgress", "choose_progress"]

logger = logging.getLogger("bayesperf.measure")


class Progress(Protocol):
    """Told of a run's events, in order."""

    def begin(self, plan: Plan, done: int) -> None:
        """A run begins, of whose points `done` are done already."""

    def finished(self, point: Point, failure: str | None) -> None:
        """A point was measured, or failed for the reason given."""

    def say(self, text: str) -> None:
        """Something worth a line."""

    def end(self) -> None:
        """The run ends, complete or not."""


class SilentProgress:
    """Tells nothing but warnings, which go to the log."""

    def begin(self, plan: Plan, done: int) -> None:
        """Nothing."""

    def finished(self, point: Point, failure: str | None) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Log."""
        logger.info(text)

    def end(self) -> None:
        """Nothing."""


SHOWN = 3
"""Failures of one reason that are told one by one; the rest are counted at the end."""


class _Failures:
    """Words for failures, without telling hundreds of the same one."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def line(self, point: Point, failure: str) -> str | None:
        """Words for a failure, None where enough of its kind were told."""
        reason = failure.partition(":")[0]
        self._seen[reason] += 1
        return f"{point.config['op']} failed: {failure}" if self._seen[reason] <= SHOWN else None

    def rest(self) -> list[str]:
        """What was not told one by one."""
        more = {reason: count - SHOWN for reason, count in self._seen.items() if count > SHOWN}
        return [f"{count} more failed: {reason} (see the failures table)" for reason, count in more.items()]


class LogProgress(SilentProgress):
    """A log line every tenth of the run, and one per failure while they are few."""

    def begin(self, plan: Plan, done: int) -> None:
        """Say what is to come."""
        self._failures = _Failures()
        self._total, self._done, self._started = len(plan.points), done, time.monotonic()
        self._next = done + max(1, self._total // 10)
        logger.info(
            "measuring suite %s: %d points, %d done, about %.0f s", plan.suite.name, self._total, done, plan.seconds()
        )

    def finished(self, point: Point, failure: str | None) -> None:
        """Count."""
        self._done += 1
        line = None if failure is None else self._failures.line(point, failure)
        if line:
            logger.warning("%s", line)
        if self._done >= self._next or self._done == self._total:
            self._next += max(1, self._total // 10)
            logger.info("%d of %d points, %.0f s", self._done, self._total, time.monotonic() - self._started)

    def end(self) -> None:
        """Count the failures that were not told."""
        for line in self._failures.rest():
            logger.warning("%s", line)


class BarProgress:
    """A bar on a terminal."""

    def begin(self, plan: Plan, done: int) -> None:
        """Draw it."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._failures = _Failures()
        self._bar = RichProgress(
            TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
            TextColumn("{task.description}"), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._bar.start()
        self._task = self._bar.add_task("", total=len(plan.points), completed=done)

    def finished(self, point: Point, failure: str | None) -> None:
        """Advance."""
        line = None if failure is None else self._failures.line(point, failure)
        if line:
            self._bar.console.print(line, style="yellow", markup=False)
        self._bar.update(self._task, advance=1, description=str(point.config["op"]))

    def say(self, text: str) -> None:
        """Print above the bar, if there is one yet."""
        bar = getattr(self, "_bar", None)
        if bar is None:
            print(text, file=sys.stderr)
        else:
            bar.console.print(text, markup=False)

    def end(self) -> None:
        """Remove it, count the failures that were not told."""
        for line in self._failures.rest():
            self._bar.console.print(line, style="yellow", markup=False)
        self._bar.stop()


def choose_progress(wanted: bool | None) -> Progress:
    """A bar if wanted and standard error is a terminal; log lines where it is not; nothing if not wanted."""
    if wanted is False:
        return SilentProgress()
    return BarProgress() if sys.stderr.isatty() else LogProgress()
