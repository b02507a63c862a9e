"""Numbers and units as tools print them: strict parsing, unit factors, how finely a number was printed.

Everything a file says passes through here, so a locale comma, ``1e999`` or ``nan`` is refused by name and never
becomes a wrong number.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

__all__ = [
    "DTYPE_BYTES",
    "BadValueError",
    "Printed",
    "byte_factor",
    "dtype_of",
    "number",
    "positive_integer",
    "printed",
    "rate_factor",
    "time_factor",
    "whole",
]

# [0-9] and not \d: other scripts' digits are not what any of these tools print.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,4}))?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")

SIZES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0}
TIMES |= {"seconds": 1.0, "microsecond": 1e-6, "millisecond": 1e-3, "nanosecond": 1e-9}

DTYPE_BYTES = {
    "float8_e4m3": 1,
    "float8_e5m2": 1,
    "int8": 1,
    "uint8": 1,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
    "float32": 4,
    "tf32": 4,
    "int32": 4,
    "uint32": 4,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
}
"""Bytes of one element by dtype."""

_DTYPES = {
    "float": "float32",
    "single": "float32",
    "fp32": "float32",
    "f32": "float32",
    "double": "float64",
    "fp64": "float64",
    "f64": "float64",
    "half": "float16",
    "half2": "float16",
    "fp16": "float16",
    "f16": "float16",
    "bf16": "bfloat16",
    "char": "int8",
    "mpi_char": "int8",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "u16": "uint16",
    "int": "int32",
    "mpi_int": "int32",
    "i32": "int32",
    "u32": "uint32",
    "mpi_float": "float32",
    "mpi_double": "float64",
    "i64": "int64",
    "u64": "uint64",
    "f8e4m3": "float8_e4m3",
    "fp8_e4m3": "float8_e4m3",
    "f8e5m2": "float8_e5m2",
    "fp8_e5m2": "float8_e5m2",
}


class BadValueError(ValueError):
    """A cell that is not what its column says; the message names the cell."""


class Printed(NamedTuple):
    """A number and the step of its last printed digit."""

    value: float
    step: float

    def scaled(self, factor: float) -> Printed:
        """Apply a unit factor.

        Raises
        ------
        BadValueError
            The product is not finite.
        """
        if not math.isfinite(self.value * factor):
            raise BadValueError(f"{self.value:g} in this unit is not a finite number")
        return Printed(self.value * factor, self.step * factor)

    @property
    def resolution(self) -> float:
        """Relative half step; infinite for a printed zero."""
        return 0.5 * self.step / abs(self.value) if self.value else math.inf

    def times(self, other: Printed) -> tuple[float, float]:
        """Smallest and largest product of two rounded non-negative numbers."""
        low = max(self.value - 0.5 * self.step, 0.0) * max(other.value - 0.5 * other.step, 0.0)
        return low, (self.value + 0.5 * self.step) * (other.value + 0.5 * other.step)


def printed(text: Any) -> Printed:
    """Parse a number and note how finely it is printed.

    Raises
    ------
    BadValueError
        Not a plain finite decimal number; a decimal comma is named as such.
    """
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise BadValueError(f"{_short(text)} is not a number")
    if not isinstance(text, str):
        value = _as_float(text)
        return Printed(value, 0.0)
    text = text.strip()
    match = _NUMBER.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        comma = re.fullmatch(r"[+-]?[0-9.]+,[0-9.,]+", text[:64])
        hint = " (a decimal or thousands comma? run the tool with LC_ALL=C)" if comma else ""
        raise BadValueError(f"{_short(text)} is not a number{hint}")
    value = _as_float(text)
    decimals = len(match.group(1) or match.group(2) or "")
    exponent = int(match.group(3) or 0)
    return Printed(value, 10.0 ** max(min(exponent - decimals, 300), -300))


def _as_float(text: str | int | float) -> float:
    try:
        value = float(text)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise BadValueError(f"{_short(text)} is not a finite number")
    return value


def number(text: Any) -> float:
    """Parse a finite decimal number; see `printed`."""
    return printed(text).value


def whole(text: Any) -> int:
    """Parse an integer of at most 19 digits.

    Raises
    ------
    BadValueError
        Anything else, such as ``1.5`` or ``1_000``.
    """
    if isinstance(text, int) and not isinstance(text, bool) and abs(text) < 2**63:
        return text
    if isinstance(text, str) and _WHOLE.fullmatch(text.strip()) and abs(int(text)) < 2**63:
        return int(text)
    raise BadValueError(f"{_short(text)} is not a whole number")


def positive_integer(text: Any, what: str) -> int:
    """Parse a whole number above zero; `what` names it in the message."""
    value = whole(text)
    if value <= 0:
        raise BadValueError(f"{what} {value} is not above zero")
    return value


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)[:60]
    return repr(text if len(text) <= 40 else text[:37] + "...")


def rate_factor(unit: str) -> float:
    """Bytes per second in one `unit`: ``GB/s`` is 1e9, ``GiB/s`` is 2**30, ``MBytes/sec`` is 1e6.

    Raises
    ------
    BadValueError
        Not a byte rate; bit rates are refused, since none of these tools means them.
    """
    match = re.fullmatch(r"([kKMGT]i?)?(?:B|Bytes|bytes|byte)(?:/s|/sec|/second|ps)", unit.strip().strip("()"))
    if match is None:
        raise BadValueError(f"{_short(unit)} is not a byte rate (B/s, kB/s, MB/s, MiB/s, GB/s, GiB/s, TB/s)")
    return SIZES[(match.group(1) or "").lower()]


def byte_factor(unit: str) -> float:
    """Bytes in one `unit`: ``MB`` is 1e6, ``MiB`` is 2**20.

    Raises
    ------
    BadValueError
        Not a byte unit.
    """
    match = re.fullmatch(r"([kKMGT]i?)?(?:B|Bytes|bytes|byte)", unit.strip().strip("()"))
    if match is None:
        raise BadValueError(f"{_short(unit)} is not a byte unit (B, kB, KiB, MB, MiB, GB, GiB)")
    return SIZES[(match.group(1) or "").lower()]


def time_factor(unit: str) -> float:
    """Seconds in one `unit`: ``ns``, ``us``, ``ms`` or ``s``.

    Raises
    ------
    BadValueError
        Not a time unit.
    """
    factor = TIMES.get(unit.strip().strip("()").strip())
    if factor is None:
        raise BadValueError(f"{_short(unit)} is not a time unit (ns, us, ms, s)")
    return factor


def dtype_of(name: str) -> str:
    """Name of an element type as the contract spells it; an unknown one is kept as it is, in lower case."""
    plain = name.strip().strip(".").lower()
    return _DTYPES.get(plain, plain)
