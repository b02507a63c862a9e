"""Helper processes that hold aggressors: started when first needed, asked by lines of JSON, ended with their worker."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from bayesperf.errors import MeasurementError
from bayesperf.measure.machine import scope_environment
from bayesperf.measure.overlap import Launches
from bayesperf.measure.points import Corunner
from bayesperf.measure.supervise import START_TIMEOUT_S, Worker

__all__ = ["Helpers", "ProcessAggressor", "serve"]

ANSWER_S = 90.0
"""Longest wait for a helper's answer."""


class Helpers:
    """A worker's helper processes.

    Parameters
    ----------
    platform
        Of the devices they use.
    cpus
        Processors, one each in turn; None: as the system likes.
    """

    def __init__(self, platform: str, cpus: list[int] | None):
        self._platform, self._cpus = platform, cpus
        self._workers: dict[int, Worker] = {}

    def aggressor(self, at: int, corunner: Corunner, *, device: int, seed: int) -> ProcessAggressor:
        """Build an aggressor in the helper number `at`.

        Raises
        ------
        MeasurementError
            It cannot be built, for its reason; ``corunner-failed``: the helper died, hangs, or has another clock.
        """
        if at not in self._workers:
            self._workers[at] = self._start(at)
        return ProcessAggressor(self._workers[at], lambda: self._drop(at), corunner, device, seed)

    def _start(self, at: int) -> Worker:
        pinned = None if self._cpus is None else [self._cpus[at % len(self._cpus)]]
        # Of the worker's process group, so that the watchdog that ends the worker ends its helpers too.
        helper = Worker({"mode": "help", "cpus": pinned}, scope_environment(self._platform, 1), own_group=False)
        try:
            message = helper.next(START_TIMEOUT_S)
        except TimeoutError:
            message = None
        if message is None or message["event"] != "ready":
            helper.kill()
            raise MeasurementError("corunner-failed", f"a helper process did not start:\n{helper.log().strip()}")
        return helper

    def _drop(self, at: int) -> None:
        """End a helper that is not to be trusted any more; the next point starts another."""
        helper = self._workers.pop(at, None)
        if helper is not None:
            helper.kill()


class ProcessAggressor:
    """An aggressor in a helper process."""

    def __init__(self, helper: Worker, drop: Callable[[], None], corunner: Corunner, device: int, seed: int):
        self._helper, self._drop, self._lost = helper, drop, ""
        self.pid: int | None = helper.pid
        built = self._ask("build", corunner=corunner.model_dump(mode="json"), device=device, seed=seed)
        self.cpus: list[int] | None = built["cpus"]
        self._check_clock()

    def start(self) -> None:
        """Begin; returns at once."""
        self._helper.send({"do": "start"})

    def await_running(self) -> None:
        """Return when its first launch has ended."""
        self._answer()

    def stop(self) -> Launches:
        """End, and tell what was done."""
        message = self._ask("stop")
        return Launches(tuple((begin, end) for begin, end in message["spans"]), message["iterations"])

    def release(self) -> None:
        """Give its memory back."""
        try:
            self._ask("release")
        except MeasurementError:
            self._lose("it could not release its memory")

    def _check_clock(self) -> None:
        """Time stamps of two processes can be compared only if their clocks are one."""
        before = time.perf_counter()
        there = self._ask("clock")["now"]
        if not before <= there <= time.perf_counter():
            raise MeasurementError("corunner-failed", "clocks of two processes differ here: overlap cannot be verified")

    def _ask(self, what: str, **details: Any) -> dict[str, Any]:
        self._helper.send({"do": what, **details})
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        message = None
        if not self._lost:
            try:
                message = self._helper.next(ANSWER_S)
            except TimeoutError:
                self._lose(f"it gave no answer within {ANSWER_S:.0f} s and was ended")
            else:
                if message is None:
                    self._lose(self._helper.death())
        if message is None:
            raise MeasurementError("corunner-failed", f"an aggressor's process was lost: {self._lost}")
        if message["event"] == "failed":
            raise MeasurementError(message["reason"], f"aggressor: {message['detail']}")
        return message

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        self._drop()


def serve(stdin: IO[str], send: Callable[[dict[str, Any]], None], reason: Callable[[Exception], str]) -> None:
    """Do what the lines on `stdin` ask, in a helper process, until there are no more.

    Parameters
    ----------
    stdin
        Lines ``{"do": "build" | "clock" | "start" | "stop" | "release", ...}``.
    send
        Sends an answer.
    reason
        Names the kind of an error.
    """
    lines: queue.Queue[dict[str, Any]] = queue.Queue()

    def listen() -> None:
        for line in stdin:
            lines.put(json.loads(line))
        os._exit(3)  # the worker is gone, whatever is under way here

    threading.Thread(target=listen, daemon=True).start()
    helper = _Helper()
    while True:
        message = lines.get()
        try:
            answer = helper.do(message)
        except MeasurementError as error:
            answer = {"event": "failed", "reason": error.reason, "detail": error.detail}
        # A probe may raise anything; its worker makes it the point's failure.
        except Exception as error:  # noqa: BLE001
            answer = {"event": "failed", "reason": reason(error), "detail": f"{type(error).__name__}: {error}"[:2000]}
        send(answer)


class _Helper:
    def __init__(self) -> None:
        from bayesperf.measure.company import ThreadAggressor

        self._aggressor: ThreadAggressor | None = None

    def do(self, message: dict[str, Any]) -> dict[str, Any]:
        what = message["do"]
        if what == "clock":
            return {"event": "clock", "now": time.perf_counter()}
        if what == "build":
            self._build(message)
            return {"event": what, "cpus": self._aggressor.cpus if self._aggressor is not None else None}
        if what == "release":
            self._release()
        else:
            assert self._aggressor is not None
            if what == "stop":
                done = self._aggressor.stop()
                return {"event": "stop", "spans": done.spans, "iterations": done.iterations}
            self._aggressor.start()
            self._aggressor.await_running()
        return {"event": what}

    def _build(self, message: dict[str, Any]) -> None:
        import jax

        from bayesperf.measure.company import ThreadAggressor

        self._release()
        devices = jax.local_devices()
        device = devices[message["device"] % len(devices)]
        self._aggressor = ThreadAggressor(Corunner.model_validate(message["corunner"]), device, message["seed"])

    def _release(self) -> None:
        if self._aggressor is not None:
            self._aggressor.release()
        self._aggressor = None
