"""Columns of the measurement table, with units and meanings. Written once, used by every room.

One row is one workload on one target under one condition in one process. Everything is in SI base units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["COLUMNS", "SAMPLES", "SHAPE_COLUMNS", "Column", "Kind"]

Kind = Literal["text", "number", "integer", "numbers", "integers"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the measurement table.

    Parameters
    ----------
    name
        Column name; the unit is its suffix where there is one.
    kind
        ``text``, ``number``, ``integer``, or a list of them (``numbers``, ``integers``).
    unit
        SI unit, ``-`` for none.
    meaning
        What it holds.
    required
        Whether a table without it is refused.
    lower
        Smallest value allowed, or None.
    strict
        Whether `lower` itself is excluded.
    choices
        The only values allowed, or empty.
    labels
        Sets of labels, of each of which a value may hold one, joined by ``+``; empty where anything goes.
    """

    name: str
    kind: Kind
    unit: str
    meaning: str
    required: bool = False
    lower: float | None = None
    strict: bool = False
    choices: tuple[str, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()


COLUMNS: tuple[Column, ...] = (
    Column("target", "text", "-", "what was measured: device, count, software stack, sharing mode", required=True),
    Column("device", "text", "-", "key into the spec sheets; absent means `target` is the key"),
    Column("op", "text", "-", "operation family", required=True),
    Column("dtype", "text", "-", "element type, or precision mode where it differs"),
    Column("flops", "number", "FLOP", "work of one execution, by formula; 0: no compute term", True, 0.0),
    Column("bytes", "number", "byte", "compulsory memory traffic of one execution; 0: no memory term", True, 0.0),
    Column("time_s", "number", "s", "central time of one execution", True, 0.0, strict=True),
    Column("statistic", "text", "-", "what time_s is: slope, median, min, mean, ..."),
    Column("time_se_s", "number", "s", "standard error of time_s", lower=0.0),
    Column("samples_s", "numbers", "s", "every raw sample"),
    Column("samples_iterations", "integers", "-", "chained iterations of each raw sample"),
    Column(
        "alone_s",
        "number",
        "s",
        "the same work alone, in the same process just before and after",
        lower=0.0,
        strict=True,
    ),
    Column(
        "alone_se_s", "number", "s", "standard error of alone_s, what lay between before and after included", lower=0.0
    ),
    Column("alone_samples_s", "numbers", "s", "every raw sample of it"),
    Column("alone_samples_iterations", "integers", "-", "chained iterations of each of those"),
    Column("intercept_s", "number", "s", "launch and allocation, from the same slope fit"),
    Column("intercept_se_s", "number", "s", "standard error of intercept_s", lower=0.0),
    Column("working_set_bytes", "number", "byte", "footprint", lower=0.0),
    Column("parallelism", "number", "-", "independent output elements", lower=0.0),
    Column("message_bytes", "number", "byte", "bytes per rank", lower=0.0),
    Column("n_devices", "number", "-", "ranks", lower=1.0),
    Column("campaign", "text", "-", "measurements made together (a day, a boot, a source's collection run)"),
    Column("stack", "text", "-", "software stack and version, where it varies within a target"),
    Column("role", "text", "-", "fit (when absent) or heldout", choices=("fit", "heldout")),
    Column(
        "condition",
        "text",
        "-",
        "hot or cold, burst or sustained, joined by +; absent: hot+burst",
        labels=(("hot", "cold"), ("burst", "sustained")),
    ),
    Column("corunners", "text", "-", "what ran beside it, op:count joined by +; absent: alone"),
    Column("process", "text", "-", "which fresh process"),
    Column("flags", "text", "-", "labels (disturbed, outlier, above-ceiling, ...) joined by +"),
    Column("stop_reason", "text", "-", "why sampling stopped"),
    Column("measurement_id", "text", "-", "content hash of the row with its source and ordinal"),
    Column("provenance_id", "text", "-", "key into the provenance records stored in the same file"),
)

SHAPE_COLUMNS = (
    "m", "n", "k", "batch", "rows", "cols", "heads", "sequence", "head_dim", "hidden", "elements", "chain", "ilp",
    "height", "width", "channels", "c_in", "c_out", "kernel_size", "sweeps", "vocabulary",
)  # fmt: skip
"""Shape columns our own probes use. Any other numeric column of a table may serve as a shape as well."""

SAMPLES = tuple(column.name for column in COLUMNS if column.kind in ("numbers", "integers"))
"""Columns of raw samples: they stay with the measurements, which profiles refer to by id."""
