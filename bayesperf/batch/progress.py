"""What a batch tells those who watch it: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["BatchProgress", "choose_progress"]

log = logging.getLogger("bayesperf.batch")


class BatchProgress(Protocol):
    """Told of a batch's events, in order."""

    def begin(self, total: int, kept: int) -> None:
        """A batch of `total` jobs begins; `kept` of them were complete already."""

    def started(self, task: Mapping[str, Any]) -> None:
        """A job was begun, where that is known."""

    def finished(self, record: Mapping[str, Any]) -> None:
        """A job ended, well or not."""

    def say(self, text: str) -> None:
        """Something worth a line."""

    def end(self) -> None:
        """The batch ends, complete or not."""


def line_of(record: Mapping[str, Any]) -> str:
    """One line for the end of a job."""
    seconds = record.get("seconds", {}).get("total")
    took = "" if seconds is None else f" after {seconds:.0f} s"
    reason = f": {record['reason']}" if record.get("reason") else ""
    return f"{record['name']}: {record['status']}{took}{reason}"


class _Silent:
    def begin(self, total: int, kept: int) -> None:
        """Nothing."""

    def started(self, task: Mapping[str, Any]) -> None:
        """Nothing."""

    def finished(self, record: Mapping[str, Any]) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class _Lines:
    def begin(self, total: int, kept: int) -> None:
        """Say what is to come."""
        self._total, self._done, self._since = total, kept, time.monotonic()
        log.info("%d jobs, %d of them complete already", total, kept)

    def started(self, task: Mapping[str, Any]) -> None:
        """Name it."""
        log.info("%s: started", task["name"])

    def finished(self, record: Mapping[str, Any]) -> None:
        """Count it, and say how it ended."""
        self._done += 1
        level = logging.WARNING if record.get("reason") else logging.INFO
        log.log(level, "%d of %d, %s", self._done, self._total, line_of(record))

    def say(self, text: str) -> None:
        """Log."""
        log.info("%s", text)

    def end(self) -> None:
        """Say how long it took."""
        log.info("%d of %d jobs, %.0f s", self._done, self._total, time.monotonic() - self._since)


class _Bar:
    def begin(self, total: int, kept: int) -> None:
        """Draw it."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._bar.start()
        self._task = self._bar.add_task("", total=total, completed=kept)

    def started(self, task: Mapping[str, Any]) -> None:
        """Show its name."""
        self._bar.update(self._task, description=str(task["name"]))

    def finished(self, record: Mapping[str, Any]) -> None:
        """Advance, and print how it ended."""
        style = "yellow" if record.get("reason") else None
        self._bar.console.print(line_of(record), style=style, markup=False, highlight=False)
        self._bar.update(self._task, advance=1)

    def say(self, text: str) -> None:
        """Print above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)

    def end(self) -> None:
        """Remove it."""
        self._bar.stop()


def choose_progress(wanted: bool | None) -> BatchProgress:
    """A bar if wanted and standard error is a terminal; log lines where it is not; nothing if not wanted."""
    if wanted is False:
        return _Silent()
    return _Bar() if sys.stderr.isatty() else _Lines()
