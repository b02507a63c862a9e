"""One table of nccl-tests: which collective it is, its checks, its rows in the contract's columns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bayesperf.errors import InputError
from bayesperf.formats.base import Options, Parsed, flag
from bayesperf.formats.collectives import COLLECTIVES, bus_factor, collective_name, named_in, size_per_count, traffic
from bayesperf.formats.source import Source
from bayesperf.formats.units import DTYPE_BYTES, Printed

__all__ = ["Measured", "Table", "emit", "version_of"]

NO_REDUCTION = ("", "none")

# Collectives that print a reduction, and those that print a root.
REDUCING = ("all_reduce", "reduce_scatter", "reduce", "send_recv")
ROOTED = ("broadcast", "reduce", "gather", "scatter")


@dataclass(frozen=True, slots=True)
class Measured:
    """One placement of one line."""

    line: int | None
    size: int
    count: int
    dtype: str
    redop: str | None
    root: int | None
    placement: str
    time: Printed
    cpu_time: bool
    algbw: Printed
    busbw: Printed
    wrong: float
    spread: float | None = None
    extra: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Table:
    """What the lines above a table say of it, and its rows."""

    columns: list[str] = field(default_factory=list)
    ranks: set[tuple[int, int]] = field(default_factory=set)
    devices: dict[str, int] = field(default_factory=dict)
    per_process: int | None = None
    n: int | None = None
    iterations: int | None = None
    stated: str | None = None
    stack: str | None = None
    unit: float = 1e-6
    rows: list[Measured] = field(default_factory=list)

    def following(self) -> Table:
        """A further table of the same program run, such as the next data type."""
        return Table(
            ranks=self.ranks,
            devices=self.devices,
            per_process=self.per_process,
            n=self.n,
            iterations=self.iterations,
            stated=self.stated,
            stack=self.stack,
        )

    def n_ranks(self) -> int | None:
        """Ranks of one communicator, as far as the header says."""
        if self.n is not None:
            return self.n
        if self.ranks:
            groups = {group for group, _ in self.ranks}
            counted = sum(group == min(groups) for group, _ in self.ranks)
            # The list of ranks is cut after 2 KiB a process.
            return counted if len(groups) > 1 else max(counted, self.per_process or 0)
        return self.per_process


def version_of(code: int) -> str:
    """NCCL's version from its number: 22803 is 2.28.3, and before 2.9, 2708 was 2.7.8."""
    if code < 10_000:
        return f"{code // 1000}.{code % 1000 // 100}.{code % 100}"
    return f"{code // 10_000}.{code % 10_000 // 100}.{code % 100}"


def emit(parsed: Parsed, source: Source, table: Table, options: Options, ordinal: int) -> None:
    """Turn a table into rows; see the module's text on how the collective is found.

    Raises
    ------
    InputError
        The collective or the number of ranks cannot be told.
    """
    if not table.rows:
        parsed.notes.add("cut off", f"table {ordinal}: a header without rows")
        return
    n = options.n_devices or table.n_ranks() or None
    if n is None:
        n = _ranks_from_factor(table, options)
    if n is None:
        raise InputError(f"{source.path}: table {ordinal} does not say how many ranks it has; give n_devices")
    op = _collective(parsed, source, table, options, n, ordinal)
    _check_factor(parsed, table, op, n)
    for row in table.rows:
        _emit_row(parsed, table, row, op, n, ordinal)


def _ratio(table: Table) -> float | None:
    """Median busbw / algbw over the lines that print both with three digits."""
    ratios = [r.busbw.value / r.algbw.value for r in table.rows if min(r.algbw.value, r.busbw.value) >= 1e9]
    return median(ratios) if ratios else None


def _ranks_from_factor(table: Table, options: Options) -> int | None:
    """An all_reduce's factor 2(n-1)/n tells n."""
    ratio, name = _ratio(table), collective_name(options.op or table.stated or "")
    if ratio is None or name != "all_reduce" or not 1 <= ratio < 1.97:
        return None
    return round(2 / (2 - ratio))


def _collective(parsed: Parsed, source: Source, table: Table, options: Options, n: int, ordinal: int) -> str:
    possible = _possible(table, n)
    if options.op:
        op = collective_name(options.op)
        if op not in COLLECTIVES:
            raise InputError(f"op {options.op!r} is no collective of this tool; there are: {', '.join(COLLECTIVES)}")
    elif (named := named_in(table.stated or "")) is not None:
        op = named
    elif len(possible) == 1:
        op = possible[0]
    else:
        hint = named_in(source.stem)
        if hint is None or (possible and hint not in possible):
            listing = ", ".join(possible or COLLECTIVES)
            raise InputError(f"{source.path}: table {ordinal} may be any of: {listing}; say which with op")
        op = hint
        parsed.notes.add("collective", f"table {ordinal}: {op}, by the file's name; it may be {', '.join(possible)}")
    if possible and op not in possible:
        detail = f"table {ordinal} is called {op}, but its columns and factors are those of {', '.join(possible)}"
        parsed.notes.add("collective contradicted", detail)
    return op


def _possible(table: Table, n: int) -> list[str]:
    """Collectives whose columns, sizes and bus factor the table fits."""
    ratio = _ratio(table)
    first = next((r for r in table.rows if r.count > 0), table.rows[0])
    per_count = first.size / (first.count * DTYPE_BYTES.get(first.dtype, 1)) if first.count else None
    reduces = first.redop is not None and first.redop.lower() not in NO_REDUCTION
    rooted = first.root is not None and first.root >= 0
    fits = []
    for op in COLLECTIVES:
        # Releases differ in whether send_recv prints a reduction.
        if op != "send_recv" and reduces != (op in REDUCING):
            continue
        if rooted != (op in ROOTED):
            continue
        # Releases with a column per collective print a reduction for all_to_all, left blank, and none for all_gather.
        if (first.redop is None and op in ("all_to_all", "hypercube")) or (first.redop == "" and op != "all_to_all"):
            continue
        if per_count is not None and first.dtype in DTYPE_BYTES and abs(per_count - size_per_count(op, n)) > 1e-6 * n:
            continue
        if ratio is not None and n > 1 and abs(ratio - bus_factor(op, n)) > 0.02:
            continue
        fits.append(op)
    return fits


def _check_factor(parsed: Parsed, table: Table, op: str, n: int) -> None:
    ratio = _ratio(table)
    if ratio is not None and abs(ratio - bus_factor(op, n)) > 0.02:
        detail = f"{op} on {n} ranks: busbw / algbw is {ratio:.3f}, not {bus_factor(op, n):.3f}"
        parsed.notes.add("bus factor", detail)


def _emit_row(parsed: Parsed, table: Table, row: Measured, op: str, n: int, ordinal: int) -> None:
    # hypercube's bandwidth leaves out a rank's own block.
    moved = row.size * ((n - 1) / n if op == "hypercube" else 1.0)
    low, high = row.algbw.times(row.time)
    agrees = row.cpu_time or low * (1 - 2e-3) <= moved <= high * (1 + 2e-3)
    seconds, basis = row.time.value, "time"
    if row.cpu_time:
        # The column then is the time to launch; only the bandwidth still is of the whole.
        if row.algbw.value <= 0:
            parsed.skipped.add("launch time only", f"{op}: the bandwidth is too small to be printed", row.line)
            return
        seconds, basis = moved / row.algbw.value, "rate"
    error = None
    if row.spread is not None and table.iterations:
        error = row.spread * seconds / math.sqrt(table.iterations)
    device = next(iter(table.devices), None) if len(table.devices) == 1 else None
    taken = parsed.add(
        {
            "op": op,
            "dtype": row.dtype,
            "flops": 0.0,
            "bytes": traffic(op, row.size, n),
            "time_s": seconds,
            "statistic": "mean",
            "time_se_s": error,
            "time_source": basis,
            "time_resolution_s": row.time.step or None,
            "message_bytes": float(row.size),
            "n_devices": float(n),
            "placement": row.placement,
            "algbw_bytes_per_s": row.algbw.value,
            "busbw_bytes_per_s": row.busbw.value,
            "redop": row.redop if row.redop and row.redop.lower() not in NO_REDUCTION else None,
            "root": None if row.root is None or row.root < 0 else float(row.root),
            "repetitions": None if table.iterations is None else float(table.iterations),
            "launch_s": row.time.value if row.cpu_time else None,
            "stack": table.stack,
            "process": str(ordinal),
            "device_name": device,
            "device_count": n,
            **row.extra,
        },
        row.line,
    )
    if taken is None:
        return
    if row.wrong:
        flag(taken, "wrong-results")
        parsed.notes.add("failed validation", f"{op} of {row.size} bytes: {row.wrong:g} wrong elements", row.line)
    _check_size(parsed, taken, row, op, n)
    if not agrees:
        flag(taken, "inconsistent")
        detail = (
            f"{op}: {row.size} bytes in {row.time.value * 1e6:g} us is {moved / row.time.value / 1e9:.4g} GB/s, "
            f"but algbw {row.algbw.value / 1e9:g} is printed"
        )
        parsed.notes.add("rate and time disagree", detail, row.line)


def _check_size(parsed: Parsed, taken: dict[str, Any] | None, row: Measured, op: str, n: int) -> None:
    element = DTYPE_BYTES.get(row.dtype)
    if element is None or row.size == row.count * element * size_per_count(op, n):
        return
    flag(taken, "inconsistent")
    detail = f"{op}: size {row.size} is not {row.count} elements of {row.dtype} on {n} ranks"
    parsed.notes.add("size and count disagree", detail, row.line)
