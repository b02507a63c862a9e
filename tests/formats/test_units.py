from __future__ import annotations

import math

import pytest

from bayesperf.formats.units import (
    BadValueError,
    byte_factor,
    dtype_of,
    number,
    printed,
    rate_factor,
    time_factor,
    whole,
)


@pytest.mark.parametrize(
    ("text", "value", "step"),
    [("12.50", 12.5, 0.01), (".5", 0.5, 0.1), ("63896", 63896.0, 1.0), ("2.3e+04", 23000.0, 1000.0), ("-1", -1.0, 1.0)],
)
def test_printed_numbers_keep_the_step_of_their_last_digit(text: str, value: float, step: float) -> None:
    assert printed(text).value == value
    assert math.isclose(printed(text).step, step)


@pytest.mark.parametrize(
    "text",
    [
        "1,234.5",
        "0,25",
        "1e999",
        "-1e999",
        "nan",
        "inf",
        "1_000",
        "0x10",
        "",
        "١٢",
        "1" * 100,
        "1.2.3",
        None,
        True,
        [1],
    ],
)
def test_what_is_no_finite_decimal_number_is_refused(text: object) -> None:
    with pytest.raises(BadValueError):
        number(text)


def test_a_decimal_comma_is_named() -> None:
    with pytest.raises(BadValueError, match="comma"):
        number("0,25")


@pytest.mark.parametrize("text", ["1.0", "1e3", "", "99999999999999999999", "1_0", True, 1.5, None])
def test_whole_numbers_are_strict(text: object) -> None:
    with pytest.raises(BadValueError):
        whole(text)


def test_binary_and_decimal_units_differ() -> None:
    assert rate_factor("GB/s") == 1e9
    assert rate_factor("GiB/s") == 2**30
    assert rate_factor("MBytes/sec") == 1e6
    assert rate_factor("MiBytes/sec") == 2**20
    assert rate_factor("(MB/s)") == 1e6
    assert byte_factor("KiB") == 1024
    assert byte_factor("kB") == 1000
    assert time_factor("us") == time_factor("µs") == 1e-6


@pytest.mark.parametrize("unit", ["Gb/s", "Gbit/s", "GB", "furlongs", ""])
def test_bit_rates_and_nonsense_are_no_byte_rates(unit: str) -> None:
    with pytest.raises(BadValueError):
        rate_factor(unit)


def test_minutes_are_no_time_unit_of_a_tool() -> None:
    with pytest.raises(BadValueError):
        time_factor("min")


def test_types_are_spelt_as_the_contract_does() -> None:
    assert [dtype_of(t) for t in ("float", "half", "F64", "MPI_CHAR", "bf16", "complex")] == [
        "float32",
        "float16",
        "float64",
        "int8",
        "bfloat16",
        "complex",
    ]
