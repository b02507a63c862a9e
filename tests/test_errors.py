from __future__ import annotations

import pytest

from bayesperf import errors

CASES = [
    (errors.BayesperfError("x"), 1),
    (errors.InputError("x"), 2),
    (errors.TableError("x"), 2),
    (errors.UnknownNameError("probe", "x", []), 2),
    (errors.MissingExtraError("x", "dask", "pip install 'bayesperf[dask]'"), 2),
    (errors.UnsupportedFileError("x"), 2),
    (errors.MeasurementError("folded", "x"), 1),
    (errors.CeilingError("x"), 2),
    (errors.InferenceError("x"), 1),
    (errors.UnconvergedError("x"), 1),
]


@pytest.mark.parametrize(("error", "code"), CASES)
def test_every_error_is_ours_and_knows_its_exit_code(error: errors.BayesperfError, code: int) -> None:
    assert isinstance(error, errors.BayesperfError)
    assert error.exit_code == code


def test_every_public_error_is_covered_above() -> None:
    covered = {type(error).__name__ for error, _ in CASES}
    assert covered == {name for name in errors.__all__ if name.endswith("Error")}


def test_bad_input_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no such"):
        raise errors.InputError("no such file")


def test_table_error_names_file_row_and_column() -> None:
    error = errors.TableError("-1 is not greater than 0 s", source="a.csv", row=7, column="time_s")
    assert str(error) == "a.csv, row 7, column time_s: -1 is not greater than 0 s"
    assert (error.source, error.row, error.column) == ("a.csv", 7, "time_s")


def test_table_error_of_row_zero_names_it() -> None:
    assert "row 0" in str(errors.TableError("x", row=0))


def test_unknown_name_lists_what_exists_nearest_first() -> None:
    error = errors.UnknownNameError("suite", "quik", ["tiny", "standard", "quick"])
    assert error.known[0] == "quick"
    assert set(error.known) == {"tiny", "standard", "quick"}
    assert "'quik'" in str(error)
    assert str(error).index("quick") < str(error).index("tiny")


def test_unknown_name_among_nothing() -> None:
    assert str(errors.UnknownNameError("probe", "x", [], hint="Install some")).endswith("none. Install some")


def test_missing_extra_says_the_install_command() -> None:
    error = errors.MissingExtraError("batch", "dask", "pip install 'bayesperf[dask]'")
    assert "pip install 'bayesperf[dask]'" in str(error)


def test_measurement_error_keeps_its_reason() -> None:
    error = errors.MeasurementError("nonlinear", "the time does not grow with the work")
    assert error.reason == "nonlinear"
    assert "does not grow" in str(error)


def test_nearest_first_ignores_case_and_breaks_ties_by_name() -> None:
    assert errors.nearest_first("MATMUL", ["stream", "matmul"]) == ["matmul", "stream"]
    assert errors.nearest_first("zz", ["b", "a"]) == ["a", "b"]


@pytest.mark.parametrize("value", [0, 1, -0.1, float("nan"), "0.9", None, True, [0.5]])
def test_what_is_no_number_between_is_refused_by_name(value: object) -> None:
    with pytest.raises(errors.InputError, match="alpha must be a number between 0 and 1, not "):
        errors.check_between(0, 1, alpha=value)
    errors.check_between(0, 1, alpha=0.05)
