"""Which rows are fitted, what is derived where a column is missing, and what is said of the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bayesperf.collectives import traffic
from bayesperf.errors import InputError, TableError
from bayesperf.models.communication import Communication
from bayesperf.models.communication.encode import encode, messages
from bayesperf.schema import validate, with_ids
from tests.messages import messages_table
from tests.tables import roofline_table


def _rows(**columns: object) -> pd.DataFrame:
    given = {"target": "node", "op": "all_reduce", "flops": 0.0, "bytes": 2e6, "time_s": [1e-4, 2e-4], "n_devices": 2}
    return with_ids(validate(pd.DataFrame({**given, **columns})), source="rows")


def test_kernels_are_left_out_and_the_other_model_is_named() -> None:
    both = pd.concat([messages_table(1), roofline_table(1)], ignore_index=True)
    encoded = encode(both)
    assert len(encoded.log_time) == len(encode(messages_table(1)).log_time)
    (reason,) = encoded.left_out
    assert "matmul" in reason
    assert "roofline" in reason
    assert any(reason in line for line in Communication().caveats(encoded))
    with pytest.raises(InputError, match=r"no rows to fit.*roofline.*all_reduce"):
        encode(roofline_table(1))


def test_sizes_follow_from_the_traffic_where_they_are_not_said() -> None:
    table = messages_table(1, ops=("all_reduce", "all_gather"))
    bare = table.assign(
        bytes=[traffic(op, s, int(n)) for op, s, n in zip(table.op, table.message_bytes, table.n_devices, strict=True)]
    )
    stated, derived = encode(table), encode(bare.drop(columns="message_bytes"))
    np.testing.assert_allclose(stated.codes.log_message, derived.codes.log_message)


def test_rows_without_ranks_or_size_are_left_out_with_the_reason() -> None:
    some = _rows(n_devices=[2.0, np.nan])
    assert encode(some).left_out == {"rows that do not say how many ranks took part (n_devices)": 1}
    with pytest.raises(InputError, match="n_devices"):
        encode(_rows(n_devices=[np.nan, np.nan]))
    with pytest.raises(InputError, match="neither message_bytes nor bytes"):
        encode(_rows(bytes=0.0))


def test_a_message_without_ranks_has_two_ends() -> None:
    encoded = encode(_rows(op="send_recv").drop(columns="n_devices"))
    assert [label[3] for label in encoded.labels.of("cell")] == ["2"]
    np.testing.assert_allclose(np.exp(encoded.codes.log_message), 1e6)


def test_an_empty_message_is_latency() -> None:
    encoded = encode(_rows(op="send_recv", message_bytes=[0.0, 8.0], bytes=[0.0, 16.0]))
    assert np.isfinite(encoded.codes.log_message).all()
    assert encoded.codes.log_message[0] < -70


def test_element_types_matter_to_reductions_only() -> None:
    table = messages_table(1, processes=1)
    both = pd.concat([table, table.assign(dtype="int8", measurement_id=[f"x{k}" for k in range(len(table))])])
    encoded = encode(both.reset_index(drop=True))
    ops = [label[1] for label in encoded.labels.of("pair")]
    assert sorted(ops) == ["all_gather", "all_reduce", "all_reduce", "all_to_all"]
    moved = np.array([ops[pair] != "all_reduce" for pair in encoded.codes.pair])
    assert {len(ids) for ids, m in zip(encoded.ids, moved, strict=True) if m} == {2}
    assert {len(ids) for ids, m in zip(encoded.ids, moved, strict=True) if not m} == {1}


def test_caveats_name_what_the_table_cannot_teach() -> None:
    said = " ".join(Communication().caveats(encode(messages_table(1, ranks=(4,), sizes=(2.0**28, 2.0**29)))))
    assert "One number of ranks seen of node" in said
    assert "small enough to show the latency" in said
    assert "show the bandwidth" not in said
    assert "campaign seen" in said
    said = " ".join(Communication().caveats(encode(messages_table(1, sizes=(64.0, 128.0)))))
    assert "large enough to show the bandwidth" in said
    assert "show the latency" not in said


def test_one_rank_and_collectives_of_nothing_are_left_out_and_refused_to_predict() -> None:
    sent = {"message_bytes": [0.0, 1024.0]}
    assert encode(_rows(**sent)).left_out == {"collectives of nothing (message_bytes = 0), which libraries skip": 1}
    (reason,) = encode(_rows(n_devices=[1.0, 2.0])).left_out
    assert "one rank" in reason
    with pytest.raises(InputError, match="one rank sends nothing"):
        messages(_rows(n_devices=1))
    with pytest.raises(InputError, match="above 0"):
        messages(_rows(**sent))


@pytest.mark.parametrize("ranks", [2.5, 1e9])
def test_what_is_no_number_of_ranks_is_refused(ranks: float) -> None:
    for read in (encode, messages):
        with pytest.raises(TableError, match="n_devices"):
            read(_rows(n_devices=[2.0, ranks]))
