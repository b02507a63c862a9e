"""A worker: ``python -m bayesperf.measure.worker``, one fresh process that measures the points it is handed.

It reads one JSON line, the job, from standard input and writes one JSON line per event to what was its standard output
when it started; prints of libraries go to standard error. It ends when its parent does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import IO, TYPE_CHECKING, Any

from bayesperf import plugins
from bayesperf.errors import BayesperfError, MeasurementError
from bayesperf.measure.points import Point
from bayesperf.measure.suites import Budget

if TYPE_CHECKING:
    from bayesperf.measure.cluster import Cluster

__all__ = ["main"]


def main() -> int:
    """Entry point."""
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    job = json.loads(sys.stdin.readline())
    if job.get("cpus") is not None:
        # Before JAX starts, so that its threads are as many as its processors, and inherit them.
        os.sched_setaffinity(0, job["cpus"])
    cluster = None
    if job.get("cluster") is not None:
        from bayesperf.measure.cluster import Cluster

        cluster = Cluster.join(job["cluster"], job["platform"])
    if job["mode"] != "help":
        threading.Thread(target=_end_with_parent, args=(sys.stdin,), daemon=True).start()
    from bayesperf.measure import environment

    _send(events, {"event": "ready", "jax": environment.of_jax(), "host": environment.of_host(), "state": _state()})
    if job["mode"] == "help":
        from bayesperf.measure.helpers import serve

        serve(sys.stdin, lambda message: _send(events, message), _reason)
    if job["mode"] == "measure":
        _measure(job, events, cluster)
    _send(events, {"event": "end", "state": _state()})
    return 0


def _state() -> dict[str, Any]:
    from bayesperf.measure import environment

    return environment.state()


def _end_with_parent(stdin: IO[str]) -> None:
    stdin.read()
    os._exit(3)


def _send(events: IO[str], message: dict[str, Any]) -> None:
    events.write(json.dumps(message) + "\n")
    events.flush()


def _measure(job: dict[str, Any], events: IO[str], cluster: Cluster | None) -> None:
    import jax

    from bayesperf.measure.company import Company
    from bayesperf.measure.point import Session, measure_point

    points = [Point.model_validate(p) for p in job["points"]]
    local, count = jax.local_devices(), job["n_devices"]
    session = Session(
        devices=local[:count],
        budget=Budget.model_validate(job["budget"]),
        memory_bytes=job["memory_bytes"],
        shared_memory=local[0].platform == "cpu",
        company=Company(local[:count], local[count:], local[0].platform, job.get("other_cpus")),
        flush_bytes=job.get("flush_bytes"),
        cluster=cluster,
        companions=job.get("companions", ()),
    )
    for point in points:
        _send(events, {"event": "start", "point": point.id})
        try:
            probe = plugins.load("probe", point.probe)
            record = measure_point(probe, point, session, check_large=job["check_large"])
        except MeasurementError as error:
            failure = {"reason": error.reason, "detail": error.detail}
        # A probe may raise anything; the point becomes a typed failure and the rest goes on.
        except Exception as error:  # noqa: BLE001
            failure = {"reason": _reason(error), "detail": f"{type(error).__name__}: {str(error)[:2000]}"}
        else:
            _send(events, {"event": "done", "point": point.id, "record": record})
            continue
        _send(events, {"event": "failed", "point": point.id, **failure})


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in text or "out of memory" in text.lower():
        return "out-of-memory"
    if isinstance(error, NotImplementedError) or "UNIMPLEMENTED" in text:
        return "unsupported"
    return "error" if isinstance(error, BayesperfError) else "probe-error"


if __name__ == "__main__":
    sys.exit(main())
