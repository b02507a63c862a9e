"""Digests of what a profile's file holds, written into it: later they say which row or variable was changed.

A digest without a key is no signature: it catches damage and edits, not somebody who computes the digests anew. That
one is found by fitting again (see `bayesperf.verify`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

__all__ = ["ATTRIBUTE", "ROWS", "changed", "digests"]

ATTRIBUTE = "digests"
"""Attribute of the file's root that holds them, as JSON."""

ROWS = "measurements"
"""The group of the fitted rows: digested by row as well as by column."""


def digests(tree: xr.DataTree) -> dict[str, Any]:
    """Digests of all that a profile's file holds.

    Returns
    -------
    dict
        ``variables`` by ``group/name``, ``attributes`` of the root by name, ``rows``: a list, one per fitted row.
    """
    groups = {name: node.to_dataset() for name, node in tree.children.items()}
    return {
        "variables": {
            f"{group}/{name}": _digest(str(values.dims), str(values.shape), _content(values.values))
            for group, data in groups.items()
            for name, values in {**data.data_vars, **data.coords}.items()
        },
        "attributes": {str(k): _digest(_attribute(v)) for k, v in tree.attrs.items() if k != ATTRIBUTE},
        "rows": _rows(groups[ROWS]) if ROWS in groups else [],
    }


def changed(tree: xr.DataTree) -> list[str] | None:
    """Say what of a file's content is not what was written: rows first, then variables, attributes.

    None where the file holds no digests: it was written by a version that made none.
    """
    if ATTRIBUTE not in tree.attrs:
        return None
    told, found = json.loads(tree.attrs[ATTRIBUTE]), digests(tree)
    if len(told["rows"]) != len(found["rows"]):
        rows = [f"{len(found['rows'])} fitted rows, {len(told['rows'])} were written"]
    else:
        pairs = zip(told["rows"], found["rows"], strict=True)
        ids = _ids(tree, len(found["rows"]))
        rows = [f"fitted row {at} ({ids[at]})" for at, (old, new) in enumerate(pairs) if old != new]
    return [
        *rows,
        *_differing(told["variables"], found["variables"], "variable"),
        *_differing(told["attributes"], found["attributes"], "attribute"),
    ]


def _differing(told: Mapping[str, str], found: Mapping[str, str], kind: str) -> list[str]:
    names = [*told, *(name for name in found if name not in told)]
    states = {name: "absent" if name not in found else "added" if name not in told else "changed" for name in names}
    return [f"{kind} {name}: {states[name]}" for name in names if told.get(name) != found.get(name)]


def _ids(tree: xr.DataTree, n: int) -> list[str]:
    data = tree[ROWS].to_dataset()
    return [str(i) for i in data["measurement_id"].values] if "measurement_id" in data else [""] * n


def _rows(data: xr.Dataset) -> list[str]:
    names = sorted(map(str, data.data_vars))
    numeric = [name for name in names if data[name].dtype.kind in "fiub"]
    numbers = np.stack([_canonical(data[name].values) for name in numeric], axis=1) if numeric else None
    texts = [list(map(str, data[name].values.tolist())) for name in names if name not in numeric]
    head = json.dumps([numeric, [name for name in names if name not in numeric]])
    n = next(iter(data.sizes.values()), 0)
    return [
        _digest(head, b"" if numbers is None else numbers[at].tobytes(), json.dumps([column[at] for column in texts]))
        for at in range(n)
    ]


def _canonical(values: np.ndarray) -> np.ndarray:
    numbers = np.array(values, dtype="<f8")
    numbers[np.isnan(numbers)] = np.nan  # one not-a-number, whatever its payload
    return numbers


def _content(values: np.ndarray) -> bytes:
    """Bytes that are the same before a file is written and after it is read."""
    if values.dtype.kind in "fiub":
        kept = _canonical(values) if values.dtype != np.float32 else values.astype("<f4")
        return np.ascontiguousarray(kept).tobytes()
    return json.dumps(list(map(str, values.ravel().tolist()))).encode()


def _attribute(value: Any) -> str:
    return str(value.item() if isinstance(value, np.generic) else value)


def _digest(*parts: str | bytes) -> str:
    hashed = hashlib.blake2b(digest_size=8)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode(errors="backslashreplace")
        hashed.update(len(data).to_bytes(8, "little") + data)
    return hashed.hexdigest()
