from __future__ import annotations

import math

import pytest

from bayesperf.report import words


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.82e11, "FLOP/s", "182 GFLOP/s"),
        (999.6e9, "FLOP/s", "1.00 TFLOP/s"),
        (2e10, "B/s", "20.0 GB/s"),
        (5e-6, "s", "5.00 µs"),
        (1.5, "s", "1.50 s"),
        (75.0, "s", "75.0 s"),
        (3e-13, "s", "0.300 ps"),
        (8 * 2**20, "B", "8.00 MiB"),
        (0.71, "1", "0.710"),
        (0.0, "s", "0 s"),
        (math.nan, "s", "- s"),
        (12.0, "furlong", "12.0 furlong"),
    ],
)
def test_quantities(value: float, unit: str, text: str) -> None:
    assert words.quantity(value, unit) == text


def test_an_interval_has_one_prefix() -> None:
    assert words.interval(1.2e9, 0.8e9, 1.5e9, "B/s") == "1.20 [0.800, 1.50] GB/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234.5, "1,230"), (98765.0, "98,800"), (0.012345, "0.0123"), (1e7, "1.00e+07"), (-2.5, "-2.50")],
)
def test_numbers(value: float, text: str) -> None:
    assert words.number(value) == text


def test_percentages() -> None:
    assert words.percent(0.934) == "93 %"
    assert words.percent(0.05, 1, signed=True) == "+5.0 %"
    assert words.percent(math.nan) == "-"


def test_counts() -> None:
    assert words.count(1, "row") == "1 row"
    assert words.count(2048, "row") == "2,048 rows"


def test_the_middle_of_a_long_name_is_cut() -> None:
    assert words.shortened("matmul", 8) == "matmul"
    assert words.shortened("stream_triad · float32 · elements 33792", 20) == "stream_tri…nts 33792"


def test_a_vague_interval_has_a_prefix_for_each_end() -> None:
    assert words.interval(8.74e11, 1.22e10, 1.18e17, "FLOP/s") == "874 GFLOP/s [12.2 GFLOP/s, 118 PFLOP/s]"


def test_a_configuration_is_its_shape_or_its_size() -> None:
    assert words.configuration({"op": "matmul", "dtype": "float32", "m": 512.0, "n": 64, "bytes": 1}) == (
        "matmul · float32 · m 512, n 64"
    )
    assert words.configuration({"op": "stream", "dtype": None, "m": math.nan, "working_set_bytes": 2**20}) == (
        "stream · 1.00 MiB"
    )
    assert words.configuration({"op": "empty", "flops": 0.0, "bytes": 0.0, "condition": "cold"}) == "empty · cold"
