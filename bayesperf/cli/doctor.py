"""``bayesperf doctor``: what of this machine would spoil a measurement."""

from __future__ import annotations

import typer

from bayesperf.cli.options import Json, Quiet
from bayesperf.cli.output import Output

__all__ = ["HELP", "run"]

HELP = """Say what of this machine would spoil a measurement, and what to do about it.

Looks at load, clock governor, quotas, affinity, memory, temperature and the devices that JAX sees; changes nothing.
Exit code 1 when nothing can be measured here, else 0.

\b
    bayesperf doctor
    bayesperf doctor --json
"""


def run(json: Json = False, quiet: Quiet = False) -> None:
    """Inspect this machine."""
    from bayesperf.measure.doctor import diagnose

    output = Output(json=json, quiet=quiet)
    findings = diagnose()
    output.document([{"level": f.level, "topic": f.topic, "seen": f.seen, "advice": f.advice} for f in findings])
    output.table(["", "topic", "seen", "what to do"], [(f.level, f.topic, f.seen, f.advice) for f in findings])
    if any(f.level == "problem" for f in findings):
        raise typer.Exit(1)
