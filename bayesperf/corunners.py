"""What the column ``corunners`` says: ``op:count`` joined by ``+``, in one spelling, so that one mix has one name."""

from __future__ import annotations

import re

__all__ = ["canonical", "counts_of", "label_of"]

MOST = 100_000
"""Co-runners of one kind, at most."""

FORM = "write op:count joined by +, such as matmul:1+stream_triad:2, and leave the cell empty where nothing ran beside"

_NOBODY = frozenset({"alone", "false", "idle", "n/a", "na", "nan", "no", "nobody", "none", "nothing", "null", "true"})
"""Words that are no operation, whatever is meant by them."""

_BEFORE = re.compile(r"(\d+)\s*(?:[\u00d7*]|x(?=\s))\s*(\S.*)", re.ASCII)
_BEHIND = re.compile(r"(\S.*?)\s*(?:[\u00d7*]|(?<=\s)x)\s*(\d+)", re.ASCII)
"""A count before its operation or behind it, as people write it: ``2 x matmul``, ``matmul*2``. Without the blank an
``x`` is part of a name."""


def counts_of(label: str) -> dict[str, int]:
    """Operations beside a victim and how many of each; a count may be left out, stand first, or follow a comma.

    Raises
    ------
    ValueError
        It is not of that form; the message says what is.
    """
    found: dict[str, int] = {}
    for part in re.split(r"[+,]", label):
        op, count = _read(part.strip())
        if not any(c.isalpha() for c in op) or op.lower() in _NOBODY or not _is_count(count):
            raise ValueError(f"{label!r} does not say who ran beside: {FORM}")
        if int(count) > MOST:
            raise ValueError(f"{label!r}: at most {MOST} of a kind can run")
        found[op] = found.get(op, 0) + int(count)
    return found


def label_of(counts: dict[str, int]) -> str:
    """The label of operations and counts, in their order."""
    return "+".join(f"{op}:{count}" for op, count in counts.items())


def canonical(label: str) -> str:
    """The one spelling of a label: a count each, operations in alphabetical order.

    Raises
    ------
    ValueError
        As `counts_of`.
    """
    return label_of(dict(sorted(counts_of(label).items())))


def _read(part: str) -> tuple[str, str]:
    before = _BEFORE.fullmatch(part)
    if before:
        return before[2].strip(), before[1]
    behind = _BEHIND.fullmatch(part)
    if behind:
        return behind[1].strip(), behind[2]
    op, colon, count = part.rpartition(":")
    return (op.strip(), count.strip()) if colon else (part, "1")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text[:9]) > 0
