"""Rules on tables made up to break them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesperf.dataset import Rule, apply_rules
from bayesperf.datasets import rules
from bayesperf.schema import has_flag, is_excluded


def _two_files(rows: int = 30, *, seed: int) -> pd.DataFrame:
    times = np.random.default_rng(seed).uniform(1e-5, 1e-3, size=(2, rows))
    return pd.DataFrame(
        {
            "file": ["a.csv"] * rows + ["h.csv"] * rows,
            "target": ["a100"] * rows + ["h100"] * rows,
            "message_bytes": [*range(1, rows + 1)] * 2,
            "time_s": times.ravel(),
        }
    )


def _mask(rule: Rule, table: pd.DataFrame) -> list[bool]:
    return [bool(x) for x in rule.test(table)]


def test_copied_table_marks_both_files() -> None:
    table = _two_files(seed=1)
    table.loc[30:, "time_s"] = table.loc[:29, "time_s"].to_numpy()
    # A copy in which a few rows were measured again is still a copy.
    table.loc[[35, 40], "time_s"] *= 1.1
    assert all(_mask(rules.copied_table(["message_bytes"]), table))


def test_different_measurements_are_no_copies() -> None:
    assert not any(_mask(rules.copied_table(["message_bytes"]), _two_files(seed=2)))


def test_a_few_equal_rows_are_no_copy() -> None:
    table = _two_files(10, seed=3)
    table["time_s"] = 1e-5
    assert not any(_mask(rules.copied_table(["message_bytes"]), table))


def test_repeats_of_one_target_are_no_copies() -> None:
    table = _two_files(seed=4)
    table["target"] = "a100"
    table.loc[30:, "time_s"] = table.loc[:29, "time_s"].to_numpy()
    assert not any(_mask(rules.copied_table(["message_bytes"]), table))


def test_repeated_key_keeps_the_first() -> None:
    table = pd.DataFrame({"file": ["a", "a", "b"], "m": [1, 1, 1], "time_s": [1.0, 2.0, 1.0]})
    assert _mask(rules.repeated_key(["m", "absent"]), table) == [False, True, False]


def test_keys_with_gaps_are_compared_too() -> None:
    table = pd.DataFrame({"file": ["a", "a"], "m": [np.nan, np.nan], "n": [1, 2], "time_s": [1.0, 2.0]})
    assert _mask(rules.repeated_key(["m", "n"]), table) == [False, False]


def test_zero_size_and_too_short() -> None:
    table = pd.DataFrame({"m": [0, 1, np.nan], "time_s": [1e-3, 9e-7, 1e-6]})
    assert _mask(rules.zero_size(["m", "n"]), table) == [True, False, False]
    assert _mask(rules.too_short(), table) == [False, True, False]


def test_apply_rules_records_what_it_found() -> None:
    table = pd.DataFrame({"m": [0, 1, 0], "time_s": [1e-3, 1e-3, 1e-7]})
    note = Rule("odd", "is odd", lambda t: (t["m"] == 1).to_numpy(), exclude=False)
    never = Rule("never", "never", lambda t: np.zeros(len(t), dtype=bool))
    marked, applied = apply_rules(table, [rules.zero_size(["m"]), rules.too_short(), note, never])
    assert marked["flags"].tolist() == ["excluded+zero-size", "odd", "excluded+too-short+zero-size"]
    assert is_excluded(marked).tolist() == [True, False, True]
    assert has_flag(marked, "too-short").tolist() == [False, False, True]
    assert [(r["flag"], r["rows"], r["excluded"]) for r in applied] == [
        ("zero-size", 2, True),
        ("too-short", 1, True),
        ("odd", 1, False),
    ]
    assert "flags" not in table, "the table given is left alone"
