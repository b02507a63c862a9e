"""From a measurement table to coded observations: which rows are messages, their sizes and ranks, what repeats tell.

Repeats of one configuration (fresh processes, and element types where nothing is computed) become one observation: the
median of their log times, with the scatter kept apart. They share what the model gets wrong about that configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayesperf.collectives import between_ranks, is_collective
from bayesperf.configurations import configurations
from bayesperf.errors import InputError, TableError
from bayesperf.model import Floats
from bayesperf.models.common.observed import scatter_of
from bayesperf.models.communication.coded import Codes, Encoded, Labels
from bayesperf.models.communication.hierarchy import LEAST_RANKS
from bayesperf.models.communication.physics import ABSENT, REDUCING, message_of, walks
from bayesperf.models.communication.start import informed_members

__all__ = ["code_rows", "described", "encode", "messages", "text"]


LEAST_OF_RANKS, MOST_RANKS = 2, 1_000_000
"""Numbers of ranks between which anything is sent; the largest machines have some hundred thousand."""


def described(table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows that are messages between ranks, and how many others there were, by reason."""
    left_out = {}
    collective = between_ranks(table)
    others = sorted(table.loc[~collective, "op"].unique())
    named = ", ".join(others[:6]) + (f" and {len(others) - 6} more" if len(others) > 6 else "")
    left_out[f"rows of {named}, which are no collectives (model 'roofline' fits kernels)"] = int((~collective).sum())
    table = table[collective]
    if "corunners" in table:
        alone = table["corunners"].isna().to_numpy()
        left_out["rows beside co-runners"] = int((~alone).sum())
        table = table[alone]
    unknown = ~np.isfinite(_ranks(table))
    left_out["rows that do not say how many ranks took part (n_devices)"] = int(unknown.sum())
    table = table[~unknown]
    _check_ranks(table)
    single = _ranks(table) < LEAST_OF_RANKS
    left_out["rows of one rank (n_devices = 1), which sends nothing"] = int(single.sum())
    table = table[~single]
    empty = (_column(table, "message_bytes") == 0) & table["op"].map(walks).to_numpy(bool)
    left_out["collectives of nothing (message_bytes = 0), which libraries skip"] = int(empty.sum())
    table = table[~empty]
    unknown = ~np.isfinite(_sizes(table))
    left_out["rows that say neither message_bytes nor bytes"] = int(unknown.sum())
    return table[~unknown].reset_index(drop=True), {what: n for what, n in left_out.items() if n}


def messages(table: pd.DataFrame) -> tuple[Floats, Floats]:
    """Bytes of the message and number of ranks of each workload, (row,) each.

    Raises
    ------
    InputError
        A workload that is no collective, or does not say its ranks or its size.
    """
    for op in table["op"].unique():
        if not is_collective(op):
            raise InputError(
                f"operation {op!r} is no collective, and this profile knows only those: predict it with a profile of "
                "model 'roofline'"
            )
    ranks, sizes = _ranks(table), _sizes(table)
    for values, what in ((ranks, "n_devices"), (sizes, "message_bytes (or bytes)")):
        lacking = np.flatnonzero(~np.isfinite(values))
        if len(lacking):
            raise InputError(
                f"workload {lacking[0]} ({table['op'].iloc[lacking[0]]}) has no {what}: add the column; collectives "
                "depend on the number of ranks and the bytes of a rank's larger buffer"
            )
    _check_ranks(table)
    # From one rank to another an empty message is sent all the same: it is latency.
    empty = (sizes <= 0) & table["op"].map(walks).to_numpy(bool)
    for at in np.flatnonzero((ranks < LEAST_OF_RANKS) | empty):
        op, n, size = table["op"].iloc[at], ranks[at], sizes[at]
        if n < LEAST_OF_RANKS:
            raise InputError(
                f"workload {at} ({op}) has n_devices = {n:g}: one rank sends nothing; give the number of ranks that "
                "take part, at least 2"
            )
        raise InputError(
            f"workload {at} ({op}) has message_bytes = {size:g}, a collective of nothing: give the bytes of a rank's "
            "larger buffer, above 0"
        )
    return sizes, ranks


def _check_ranks(table: pd.DataFrame) -> None:
    """Refuse what is no number of ranks.

    Raises
    ------
    TableError
        It is a fraction, or above `MOST_RANKS`: bytes, perhaps, in the wrong column.
    """
    ranks = _ranks(table)
    for at in np.flatnonzero((ranks != np.round(ranks)) | (ranks > MOST_RANKS)):
        if np.isfinite(ranks[at]):
            raise TableError(
                f"{ranks[at]:g} ranks of {table['op'].iloc[at]}: n_devices counts the ranks that take part, a whole "
                f"number of at most {MOST_RANKS:,}; sizes belong into message_bytes",
                source="table", row=int(at), column="n_devices",
            )  # fmt: skip


def _column(table: pd.DataFrame, name: str) -> Floats:
    values = table[name].to_numpy(dtype=np.float64, na_value=np.nan) if name in table else np.nan
    return np.array(np.broadcast_to(values, len(table)))


def _ranks(table: pd.DataFrame) -> Floats:
    """Number of ranks, (row,); two where a message has two ends and no more is said, NaN where it is unknown."""
    stated = _column(table, "n_devices")
    two = np.array([not walks(op) for op in table["op"]], dtype=bool)
    return np.where(two & ~np.isfinite(stated), 2.0, stated)


def _sizes(table: pd.DataFrame) -> Floats:
    """Bytes of a message, (row,): from the traffic where the size is not said, NaN where neither is known."""
    size, moved, ranks = _column(table, "message_bytes"), _column(table, "bytes"), _ranks(table)
    for op in table["op"].unique():
        rows = np.flatnonzero((table["op"] == op).to_numpy() & ~np.isfinite(size) & (moved > 0) & np.isfinite(ranks))
        size[rows] = message_of(op, moved[rows], ranks[rows])
    return size


def encode(table: pd.DataFrame) -> Encoded:
    """Code a checked measurement table.

    Raises
    ------
    InputError
        No row is left to fit.
    """
    table, left_out = described(table)
    if not len(table):
        reasons = "; ".join(f"{count} {what}" for what, count in left_out.items())
        raise InputError(f"no rows to fit: left out were {reasons}; give collectives measured alone (all_reduce, ...)")
    summary = configurations(table, _configuration(table))
    labels = Labels()
    codes = code_rows(summary.first, labels)
    scatter = scatter_of(summary, codes.pair)
    return Encoded(
        codes=codes,
        scatter=scatter,
        log_time=summary.log_time,
        within=summary.within * summary.weight,
        repeat_weight=summary.weight,
        ids=summary.ids,
        labels=labels,
        anchor=_anchors(codes, labels),
        informed=informed_members(codes, labels, summary.log_time, scatter),
        left_out=left_out,
    )


def _configuration(table: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Configuration of each row: what the model tells apart, and the timing, (row,)."""
    sizes, ranks = messages(table)
    parts = {
        "target": table["target"].to_numpy(),
        "op": _operations(table),
        "dtype": _dtypes(table),
        "size": sizes,
        "ranks": ranks,
        **{name: text(table, name) for name in ("campaign", "stack", "statistic")},
    }
    return np.asarray(pd.DataFrame(parts).groupby(list(parts), sort=False).ngroup(), dtype=np.intp)


def code_rows(table: pd.DataFrame, labels: Labels) -> Codes:
    """Code rows against `labels`, extending them.

    Parameters
    ----------
    table
        Described measurements, or workloads that carry a ``target``.
    labels
        Extended in place.

    Raises
    ------
    InputError
        As `messages`.
    """
    sizes, ranks = messages(table)
    target, op, dtype = table["target"].tolist(), _operations(table), _dtypes(table)
    number = [f"{n:g}" for n in ranks]
    labels.add("op", zip(op))
    return Codes(
        target=labels.add("target", zip(target)),
        pair=labels.add("pair", zip(target, op, dtype, strict=True)),
        cell=labels.add("cell", zip(target, op, dtype, number, strict=True)),
        campaign=labels.add("campaign", zip(target, text(table, "campaign"), text(table, "stack"), strict=True)),
        log_message=np.log(np.maximum(sizes, np.exp(ABSENT))),
    )


def text(table: pd.DataFrame, name: str) -> list[str]:
    """A column of texts; "" where there is none."""
    return [v if isinstance(v, str) else "" for v in table[name]] if name in table else [""] * len(table)


def _operations(table: pd.DataFrame) -> list[str]:
    """Operation labels; conditions other than hot and burst behave like operations of their own."""
    special = ["+".join(sorted(set(c.split("+")) - {"hot", "burst", ""})) for c in text(table, "condition")]
    return [f"{op}@{name}" if name else op for op, name in zip(table["op"], special, strict=True)]


def _dtypes(table: pd.DataFrame) -> list[str]:
    """Element types of collectives that compute; to the others, bytes are bytes."""
    return [dtype if op in REDUCING else "" for op, dtype in zip(table["op"], text(table, "dtype"), strict=True)]


def _anchors(codes: Codes, labels: Labels) -> Floats:
    """Log of the geometric mean of the numbers of ranks measured of each target, (target,)."""
    cells: Sequence[Any] = labels.of("cell")
    ranks = np.array([max(float(label[3]), LEAST_RANKS) for label in cells])
    target = labels.parents("cell", "target", slice(0, 1))
    n = len(labels.of("target"))
    return np.asarray(np.bincount(target, np.log(ranks), minlength=n) / np.bincount(target, minlength=n))
