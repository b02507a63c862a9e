"""Numbers as people read them: SI prefixes for rates, times and sizes, intervals, percentages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bayesperf.schema import SHAPE_COLUMNS

__all__ = [
    "BINARY",
    "configuration",
    "count",
    "interval",
    "number",
    "percent",
    "quantity",
    "scale_of",
    "short",
    "shortened",
]

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
_BINARY = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"), (1, ""))
BINARY = "B"
"""Unit whose multiples are powers of two: memory is sold, and caches are built, that way."""

_NAMES = {"FLOP/s": "FLOP/s", "B/s": "B/s", "s": "s", "FLOP": "FLOP", "byte": "B"}


def scale_of(value: float, unit: str) -> tuple[float, str]:
    """Divisor and unit with prefix that make `value` readable.

    Parameters
    ----------
    value
        A magnitude in `unit`.
    unit
        ``FLOP/s``, ``B/s``, ``s``, ``FLOP``, ``B``; ``1`` and unknown units stay as they are.
    """
    size = abs(value)
    if not math.isfinite(size) or size == 0 or unit in ("1", ""):
        return 1.0, "" if unit == "1" else unit
    name = _NAMES.get(unit, unit)
    if unit == BINARY:
        factor, prefix = next(((f, p) for f, p in _BINARY if size >= f), (1, ""))
    elif unit == "s":
        factor, prefix = next(((f, p) for f, p in _SMALL if size >= 0.9995 * f), _SMALL[-1])  # type: ignore[assignment]
    elif unit in _NAMES:
        factor, prefix = next(((f, p) for f, p in _PREFIXES if size >= 0.9995 * f), (1.0, ""))  # type: ignore[assignment]
    else:
        return 1.0, name
    return float(factor), f"{prefix}{name}"


def number(value: float, digits: int = 3) -> str:
    """Round to significant digits, without an exponent between 0.001 and 99,999."""
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def quantity(value: float, unit: str, digits: int = 3) -> str:
    """Format a value with its unit, such as ``182 GFLOP/s``."""
    divisor, name = scale_of(value, unit)
    return f"{number(value / divisor, digits)} {name}".strip()


def interval(median: float, lower: float, upper: float, unit: str) -> str:
    """Format a median with its interval under one prefix: ``182 [170, 195] GFLOP/s``.

    An interval so wide that one prefix cannot write both ends (a vague prior's) has one for each.
    """
    divisor, name = scale_of(median, unit)
    if name != unit and (abs(upper / divisor) >= 1e5 or 0 < abs(lower / divisor) < 1e-3):
        return f"{quantity(median, unit)} [{quantity(lower, unit)}, {quantity(upper, unit)}]"
    return f"{number(median / divisor)} [{number(lower / divisor)}, {number(upper / divisor)}] {name}".strip()


def percent(share: float, digits: int = 0, *, signed: bool = False) -> str:
    """Format a share as a percentage."""
    if share is None or not math.isfinite(share):
        return "-"
    return f"{100 * share:{'+' if signed else ''}.{digits}f} %"


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun: ``1 row``, ``1,024 rows``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


_SHAPES = ("batch", *(name for name in SHAPE_COLUMNS if name != "batch"))


def configuration(row: Mapping[str, Any]) -> str:
    """Say in short what was run: operation, element type, shape, or work where there is no shape."""
    parts = [str(row["op"])]
    if isinstance(row.get("dtype"), str):
        parts.append(row["dtype"])
    shape = [f"{name} {_whole(row[name])}" for name in _SHAPES if _is_number(row.get(name))]
    if shape:
        parts.append(", ".join(shape))
    elif _is_number(row.get("working_set_bytes")):
        parts.append(quantity(float(row["working_set_bytes"]), BINARY))
    elif _is_number(row.get("bytes")) and row["bytes"]:
        parts.append(quantity(float(row["bytes"]), BINARY))
    for name in ("condition", "corunners"):
        if isinstance(row.get(name), str):
            parts.append(row[name])
    return " · ".join(parts)


def short(text: str, most: int = 40) -> str:
    """Cut a text that a figure has no room for."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shortened(text: str, most: int = 40) -> str:
    """Cut the middle of a text: beginning and end tell configurations apart."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:g}"
