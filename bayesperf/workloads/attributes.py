"""Attributes of HLO instructions: dimension lists, windows, layouts of convolutions, groups, backend configurations."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bayesperf.hlo import Instruction

__all__ = [
    "ConvLabels",
    "WindowDim",
    "backend_config",
    "conv_labels",
    "dimensions",
    "group_size",
    "minor",
    "number",
    "partitions",
    "runs_whole",
    "source",
    "window",
    "word",
]

_METADATA = re.compile(r'\b(metadata|frontend_attributes|sharding)=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}')


@lru_cache(maxsize=4096)
def _plain(attributes: str) -> str:
    """Attributes without what is free text: a name in it may look like an attribute."""
    return _METADATA.sub("", attributes)


def dimensions(instruction: Instruction, name: str) -> tuple[int, ...]:
    """A list such as ``lhs_batch_dims={0,1}``; empty where it is absent."""
    found = re.search(rf"\b{name}=\{{([\d,\s]*)\}}", _plain(instruction.attributes))
    return tuple(int(d) for d in found[1].split(",") if d.strip()) if found else ()


def minor(shape: str) -> int | None:
    """The dimension of an array whose values lie together in memory: the last, unless its layout says otherwise.

    Dimensions of a single value do not count; None where no other is left.
    """
    found = re.search(r"\[([\d,<=]*)\](?:\{([\d,]*))?", shape)
    sizes = [int(size.lstrip("<=")) for size in found[1].split(",") if size] if found else []
    stated = [int(at) for at in found[2].split(",") if at] if found and found[2] else []
    order = stated or list(reversed(range(len(sizes))))
    return next((at for at in order if at < len(sizes) and sizes[at] > 1), None)


def partitions(instruction: Instruction) -> float:
    """Parts that the compiler of CPUs cuts an instruction into, one for each thread; NaN where it does not say."""
    parts = backend_config(instruction).get("outer_dimension_partitions")
    if not isinstance(parts, list) or not parts:
        return math.nan
    return float(math.prod(int(part) for part in parts))


def runs_whole(call: Instruction) -> bool:
    """Whether the compiler of CPUs makes one piece of code of a call, which one thread runs from end to end."""
    return bool(re.search(r'\bxla_cpu_small_call="true"', call.attributes))


def word(instruction: Instruction, name: str) -> str | None:
    """A plain value such as ``fft_type=FFT``, or None."""
    found = re.search(rf"\b{name}=([\w.\-]+)", _plain(instruction.attributes))
    return found[1] if found else None


def number(instruction: Instruction, name: str, default: int = 1) -> int:
    """A whole number such as ``feature_group_count=4``."""
    found = word(instruction, name)
    return int(found) if found is not None and found.isdigit() else default


def source(instruction: Instruction) -> str:
    """Name of the JAX operation it was made from, or an empty text."""
    found = re.search(r'metadata=\{[^{}]*?op_name="((?:[^"\\]|\\.)*)"', instruction.attributes)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class WindowDim:
    """One spatial dimension of a window: its size, and the dilation (holes and values) of what it moves over."""

    size: int
    stride: int = 1
    pad_low: int = 0
    base_dilation: int = 1
    window_dilation: int = 1


def window(instruction: Instruction) -> list[WindowDim]:
    """Dimensions of ``window={size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=2x2}``; empty where there is none."""
    found = re.search(r"\bwindow=\{([^}]*)\}", _plain(instruction.attributes))
    fields = dict(part.split("=", 1) for part in found[1].split()) if found else {}
    if "size" not in fields:
        return []
    sizes = [int(v) for v in fields["size"].split("x")]

    def values(name: str, default: int) -> list[int]:
        return [int(v) for v in fields[name].split("x")] if name in fields else [default] * len(sizes)

    low = [int(v.partition("_")[0]) for v in fields["pad"].split("x")] if "pad" in fields else [0] * len(sizes)
    columns = zip(sizes, values("stride", 1), low, values("lhs_dilate", 1), values("rhs_dilate", 1), strict=True)
    return [WindowDim(*row) for row in columns]


@dataclass(frozen=True, slots=True)
class ConvLabels:
    """Positions of a convolution's dimensions, by letter: batch ``b``, feature ``f``, ``i``/``o`` of the filter.

    Spatial dimensions are the digits, in order.
    """

    lhs: Mapping[str, int]
    rhs: Mapping[str, int]
    out: Mapping[str, int]

    def spatial(self, part: Mapping[str, int]) -> list[int]:
        """Positions of the spatial dimensions of `part`."""
        return [part[letter] for letter in sorted(k for k in part if k.isdigit())]


def conv_labels(instruction: Instruction) -> ConvLabels | None:
    """``dim_labels=b01f_01io->b01f``, or None."""
    found = re.search(r"\bdim_labels=(\w+)_(\w+)->(\w+)", _plain(instruction.attributes))
    if found is None:
        return None
    lhs, rhs, out = ({letter: at for at, letter in enumerate(part)} for part in found.groups())
    return ConvLabels(lhs, rhs, out)


def backend_config(instruction: Instruction) -> Mapping[str, Any]:
    """The backend's configuration; empty where there is none, or where it is not JSON."""
    text = instruction.attributes
    at = text.find("backend_config=")
    if at < 0:
        return {}
    rest = text[at + len("backend_config=") :]
    decoder = json.JSONDecoder()
    try:
        found, _ = decoder.raw_decode(rest)
        # Older versions print it as a quoted text.
        found = json.loads(found) if isinstance(found, str) else found
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def group_size(instruction: Instruction, devices: int) -> int:
    """Ranks that take part in one group of a collective; all devices where its groups are not listed."""
    text = _plain(instruction.attributes)
    listed = re.search(r"\breplica_groups=\{\{([\d,\s]*)\}", text)
    if listed:
        return len([rank for rank in listed[1].split(",") if rank.strip()])
    mesh = re.search(r"\breplica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}", text)
    if mesh:
        return _mesh_group(mesh[1], mesh[2]) or devices
    iota = re.search(r"\breplica_groups=\[([\d,]+)\]<=", text)
    if iota:
        return int(iota[1].split(",")[-1])
    return devices


def _mesh_group(axes: str, over: str) -> int:
    """Ranks of a group over some axes of a mesh, such as ``'x'=2,'y'=4`` over ``'y'``; 0 where none is named.

    An axis may be split: ``'y':(2)2`` is the part of size 2 behind a part of size 2.
    """
    sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", axes)}
    size = 1
    named = re.findall(r"'([^']*)'(?::\(\d+\)(\d+))?", over)
    for name, part in named:
        size *= int(part) if part else sizes.get(name, 1)
    return size if named else 0
