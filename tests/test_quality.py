"""The quality gate: the traps of published tables, each made synthetically."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesperf.quality import gate, inspect
from bayesperf.schema import is_excluded, validate
from bayesperf.specs import check_targets

RNG = 20


def sheet(**columns: Any) -> pd.DataFrame:
    base = {"device": ["gpu"], "bandwidth_bytes_per_s": [1e12], "cache_bytes": [1e6], "peak_flops_float32": [1e13]}
    return check_targets(pd.DataFrame(base | columns))


def stream(target: str, rows: int = 20, *, seed: int = RNG, spread: float = 0.02, **columns: Any) -> pd.DataFrame:
    """A bandwidth-bound sweep at 80 % of 1e12 B/s."""
    rng = np.random.default_rng(seed)
    size = 2.0 ** np.linspace(24, 33, rows)
    base = {
        "target": [target] * rows,
        "device": ["gpu"] * rows,
        "op": ["stream_copy"] * rows,
        "dtype": ["float32"] * rows,
        "flops": [0.0] * rows,
        "bytes": size,
        "time_s": size / 0.8e12 * rng.lognormal(0, spread, rows),
        "elements": size / 8,
    }
    return validate(pd.DataFrame(base | columns))


def join(*tables: pd.DataFrame) -> pd.DataFrame:
    return validate(pd.concat(tables, ignore_index=True))


def checks(findings: Any) -> set[str]:
    return {finding.check for finding in findings}


def test_a_clean_table_passes_without_a_word() -> None:
    table, report = gate(join(stream("a", seed=1), stream("b", seed=2)), sheet())
    assert report.findings == []
    assert report.rules == []
    assert report.excluded == 0
    assert report.unchecked == []
    assert report.text() == ""
    assert not is_excluded(table).any()


def test_rates_above_the_ceiling_are_left_out_by_a_recorded_rule() -> None:
    table = stream("a")
    table["time_s"] /= np.where(table.index == 3, 10, 1)
    marked, report = gate(table, sheet())
    assert np.flatnonzero(is_excluded(marked)).tolist() == [3]
    assert marked["flags"][3] == "above-ceiling+excluded"
    assert report.rules[0]["flag"] == "above-ceiling"
    assert report.rules[0]["rows"] == 1
    finding = next(f for f in report.findings if f.check == "above-ceiling")
    assert (finding.rows, finding.total, finding.excluded) == (1, 20, True)
    assert "row 3" in finding.examples[0]
    assert "rule: above-ceiling: 1 rows left out of fits" in report.text()


def test_a_table_that_is_above_the_ceiling_throughout_asks_for_the_unit() -> None:
    table = stream("a")
    table["time_s"] /= 1000
    report = gate(table, sheet())[1]
    assert "is time_s in seconds?" in report.findings[0].message


def test_without_a_sheet_it_says_that_ceilings_were_not_checked() -> None:
    report = gate(stream("a"), None)[1]
    assert report.unchecked == ["gpu"]
    assert "ceilings were not checked" in report.text()


def test_zero_shapes_and_messages() -> None:
    table = stream("a", m=[0.0] + [1.0] * 19, message_bytes=[1.0] * 19 + [0.0])
    marked, report = gate(table)
    assert np.flatnonzero(is_excluded(marked)).tolist() == [0, 19]
    assert {"zero-size"} == checks(report.findings)
    barrier = stream("a", op=["barrier"] * 20, message_bytes=[0.0] * 20, elements=[1.0] * 20)
    assert not is_excluded(gate(barrier)[0]).any()


def test_times_no_execution_can_have() -> None:
    table = stream("a")
    table.loc[5, "time_s"] = 1e-12
    assert gate(table)[0]["flags"][5] == "excluded+impossible-time"


def test_copied_rows_are_left_out_and_repeated_keys_are_only_said() -> None:
    table = join(stream("a"), stream("a").iloc[:3], stream("a", seed=9).iloc[5:9])
    marked, report = gate(table)
    assert np.flatnonzero(is_excluded(marked)).tolist() == [20, 21, 22]
    found = {f.check: f for f in report.findings}
    assert found["duplicate-row"].rows == 3
    assert found["repeated-key"].rows == 8
    assert not found["repeated-key"].excluded


def test_repeats_that_agree_in_few_digits_are_measurements() -> None:
    times = np.full(20, 1.25e-3)
    table = stream("a", bytes=[1e6] * 20, elements=[1e5] * 20, time_s=times)
    assert not is_excluded(gate(table)[0]).any()
    fine = table.assign(time_s=np.full(20, 1.23456789012e-3))
    assert is_excluded(gate(fine)[0]).sum() == 19
    coarse = fine.assign(time_resolution_s=[1e-6] * 20)
    assert not is_excluded(gate(coarse)[0]).any()


def test_repeats_with_their_own_samples_are_no_copies() -> None:
    table = stream("a", 2, bytes=[1e6] * 2, elements=[1.0] * 2, time_s=[1.23456789012e-3] * 2)
    table["samples_s"] = [[1.0, 2.0], [1.0, 3.0]]
    assert not is_excluded(gate(table)[0]).any()
    table["samples_s"] = [[1.0, 2.0], [1.0, 2.0]]
    assert is_excluded(gate(table)[0]).tolist() == [False, True]


def test_a_table_copied_to_another_target_is_found() -> None:
    copied = join(stream("a"), stream("b"), stream("c", seed=3))
    findings = [f for f in inspect(copied) if f.check == "copied-table"]
    assert len(findings) == 1
    assert findings[0].group == {"target": "a", "op": "stream_copy"}
    assert findings[0].rows == 20
    assert "equal to b" in findings[0].message


def test_a_half_copied_table_is_found_and_coarse_times_are_no_copy() -> None:
    one, other = stream("a", 100), stream("b", 100, seed=3)
    other.loc[:49, "time_s"] = one.loc[:49, "time_s"]
    assert "partly-copied-table" in checks(inspect(join(one, other)))
    one["time_s"], other["time_s"] = 1e-3, 1e-3
    assert not checks(inspect(join(one, other))) & {"copied-table", "partly-copied-table"}


def test_columns_that_are_equal_in_every_row() -> None:
    table = stream("a")
    table["time_min_s"], table["time_max_s"] = table["time_s"], table["time_s"] * 1.1
    findings = [f for f in inspect(table) if f.check == "identical-columns"]
    assert [f.group for f in findings] == [{"columns": "time_s, time_min_s"}]


@pytest.mark.parametrize("factor", [1e3, 1e-3, 1e6])
def test_a_unit_mixed_up_between_tables(factor: float) -> None:
    other = stream("b", seed=2)
    other["time_s"] *= factor
    findings = [f for f in inspect(join(stream("a", seed=1), other)) if f.check == "unit-scale"]
    assert len(findings) == 1
    assert findings[0].rows == 20


def test_two_machines_that_differ_are_not_a_unit() -> None:
    other = stream("b", seed=2)
    other["time_s"] *= 40
    assert "unit-scale" not in checks(inspect(join(stream("a", seed=1), other)))


def test_gb_for_gib_between_two_tables_of_one_machine() -> None:
    one, other = stream("a", seed=1), stream("b", seed=1)
    other["time_s"] *= 1.073741824
    assert "binary-units" in checks(inspect(join(one, other)))
    # Two machines may well differ by seven per cent.
    other = stream("b", spread=0.0, seed=5)
    other["time_s"] *= 1.0745
    assert "binary-units" not in checks(inspect(join(one, other)))


def test_a_unit_mixed_up_within_a_table_marks_the_rows() -> None:
    table = stream("a", 40)
    table["time_s"] *= np.where(table.index.isin([11, 30]), 1000, 1)
    marked, report = gate(table)
    assert marked.index[marked["flags"].notna()].tolist() == [11, 30]
    assert set(marked["flags"].dropna()) == {"scale-jump"}
    assert next(f for f in report.findings if f.check == "scale-jump").rows == 2


def test_rates_a_thousandfold_below_the_ceiling() -> None:
    table = stream("a")
    table["time_s"] *= 1000
    assert "unit-scale" in checks(inspect(table, sheet()))
    # Small workloads are slow because of launches, not units.
    small = stream("a", bytes=[1e4] * 20, time_s=[1e-5] * 20)
    assert "unit-scale" not in checks(inspect(small, sheet()))


def test_an_element_count_taken_for_bytes_shows_between_types() -> None:
    # Trap: message sizes in elements agree with bytes for one-byte types only.
    one, other = stream("a", seed=1), stream("b", seed=2)
    other["bytes"] *= 4
    assert "unit-scale" not in checks(inspect(join(one, other)))
    marked = gate(join(one, other), sheet())[0]
    assert set(marked.loc[is_excluded(marked), "target"]) == {"b"}


def test_flags_that_were_there_are_kept_and_nothing_is_deleted() -> None:
    table = stream("a", flags=["disturbed"] * 20)
    table["time_s"] /= np.where(table.index == 0, 10, 1)
    marked = gate(table, sheet())[0]
    assert len(marked) == 20
    assert marked["flags"][0] == "above-ceiling+disturbed+excluded"
    assert marked["flags"][1] == "disturbed"


def test_no_rules_exclude_nothing_but_findings_stay() -> None:
    table = stream("a")
    table["time_s"] /= np.where(table.index == 0, 10, 1)
    marked, report = gate(table, sheet(), rules=())
    assert not is_excluded(marked).any()
    finding = next(f for f in report.findings if f.check == "above-ceiling")
    assert not finding.excluded


def test_a_fleet_that_runs_at_half_the_rate_of_its_device() -> None:
    slow = stream("slow", seed=4)
    slow["time_s"] *= 2.4
    findings = inspect(join(stream("a", seed=1), stream("b", seed=2), stream("c", seed=3), slow))
    assert [(f.check, f.group["target"]) for f in findings] == [("unlike-its-device", "slow")]
    assert "2.4 times slower" in findings[0].message


def test_messages_travel_as_far_as_the_target_says() -> None:
    far = stream("far", seed=4, message_bytes=[1.0] * 20)
    far["time_s"] *= 10
    near = [stream(name, seed=at, message_bytes=[1.0] * 20) for at, name in enumerate("abc")]
    assert "unlike-its-device" not in checks(inspect(join(*near, far)))


def test_thousands_of_repeats_agree_by_chance_and_are_no_copies() -> None:
    rng = np.random.default_rng(8)
    rows = 2000
    tables = [
        stream(
            name, rows, bytes=[1e9] * rows, elements=[1e8] * rows, time_s=1.33e-3 + rng.integers(0, 900, rows) * 1e-8
        )
        for name in ("a", "b")
    ]
    table = join(*tables)
    assert not is_excluded(gate(table)[0]).any()
    assert not checks(inspect(table)) & {"copied-table", "partly-copied-table", "binary-units"}


def test_a_block_pasted_twice_is_a_copy_whatever_its_digits() -> None:
    block = stream("a", 12)
    block["time_s"] = block["time_s"].map(lambda value: float(f"{value:.3g}"))
    table = join(block, block)
    assert np.flatnonzero(is_excluded(gate(table)[0])).tolist() == list(range(12, 24))
