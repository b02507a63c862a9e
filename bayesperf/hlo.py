"""Reads the text of optimised HLO modules: computations, instructions, shapes, what calls what."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from bayesperf.errors import InputError

__all__ = [
    "Computation",
    "Instruction",
    "Leaf",
    "Module",
    "leaves",
    "parse",
    "shape_bytes",
    "shape_elements",
    "text_hash",
]

_BITS = {
    "pred": 8, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "s8": 8, "u8": 8, "s16": 16, "u16": 16, "s32": 32, "u32": 32,
    "s64": 64, "u64": 64, "bf16": 16, "f16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128, "f4e2m1fn": 4,
}  # fmt: skip

_SHAPE = re.compile(r"\b([a-z][a-z0-9]*)\[([0-9,<=]*)\]")
_HEADER = re.compile(r"^\s*(ENTRY\s+)?%?([\w.\-]+)\s*(?:\(.*\)\s*->\s*.*)?\{\s*$")
_START = re.compile(r"^\s+(ROOT\s+)?%?([\w.\-]+)\s*=\s*")
_CALLED = re.compile(
    r"\b(calls|body|condition|to_apply|branch_computations|true_computation|false_computation|called_computations)"
    r"=(\{[^}]*\}|%?[\w.\-]+)"
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    name, opcode
        As in the text, without ``%``.
    shape
        Text of its result type, such as ``f32[4,8]{1,0}`` or a tuple of such.
    operands
        Names of its operands.
    called
        Role (``body``, ``calls``, ...) and name of each computation it calls.
    attributes
        Everything after the operand list, as text.
    literal
        What stands between the parentheses, as text: the number of a ``parameter``, the value of a ``constant``.
    root
        Whether it is the result of its computation.
    """

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    called: tuple[tuple[str, str], ...]
    attributes: str
    literal: str
    root: bool

    @property
    def index(self) -> int | None:
        """Element number of a ``get-tuple-element``, parameter number of a ``parameter``, else None."""
        if self.opcode == "parameter":
            return int(self.literal)
        found = re.search(r"\bindex=(\d+)", self.attributes)
        return int(found[1]) if self.opcode == "get-tuple-element" and found else None

    @property
    def bytes(self) -> float:
        """Size of its result in byte."""
        return shape_bytes(self.shape)

    @property
    def elements(self) -> float:
        """Elements of its result."""
        return shape_elements(self.shape)

    @property
    def custom_call_target(self) -> str | None:
        """Target of a ``custom-call``, else None."""
        found = re.search(r'custom_call_target="([^"]*)"', self.attributes)
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Computation:
    """A named list of instructions, in schedule order."""

    name: str
    instructions: dict[str, Instruction]

    @property
    def root(self) -> Instruction:
        """Its result."""
        return next(i for i in reversed(self.instructions.values()) if i.root)

    @property
    def parameters(self) -> list[Instruction]:
        """Its parameters, by number."""
        return sorted((i for i in self.instructions.values() if i.opcode == "parameter"), key=lambda i: i.index or 0)

    def users(self, name: str) -> list[Instruction]:
        """Instructions that read the result of `name`."""
        return [i for i in self.instructions.values() if name in i.operands]


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed module: its computations by name, the entry's name, and the line that begins it."""

    computations: dict[str, Computation]
    entry: str
    header: str = ""

    @property
    def devices(self) -> int:
        """Devices that run it together: partitions times replicas."""
        found = (re.search(rf"\b{name}=(\d+)", self.header) for name in ("num_partitions", "replica_count"))
        partitions, replicas = (int(count[1]) if count else 1 for count in found)
        return partitions * replicas

    def reachable(self, name: str) -> Iterator[Computation]:
        """A computation and all that it calls, directly or not, each once."""
        pending, seen = [name], set()
        while pending:
            current = pending.pop()
            if current in seen or current not in self.computations:
                continue
            seen.add(current)
            computation = self.computations[current]
            yield computation
            pending.extend(called for i in computation.instructions.values() for _, called in i.called)

    def within(self, name: str) -> Iterator[Instruction]:
        """Instructions of a computation and of all that it calls, each computation once."""
        for computation in self.reachable(name):
            yield from computation.instructions.values()

    def whiles(self) -> list[tuple[Computation, Instruction]]:
        """Outermost loops: every ``while`` reachable from the entry without passing another, with where it stands."""
        found, pending, seen = [], [self.entry], set()
        while pending:
            current = pending.pop()
            if current in seen or current not in self.computations:
                continue
            seen.add(current)
            computation = self.computations[current]
            for instruction in computation.instructions.values():
                if instruction.opcode == "while":
                    found.append((computation, instruction))
                else:
                    pending.extend(called for _, called in instruction.called)
        return found


@dataclass(frozen=True, slots=True)
class Leaf:
    """One array of a result type.

    Parameters
    ----------
    kind
        HLO element type, such as ``f32``.
    dims
        Size of each dimension.
    """

    kind: str
    dims: tuple[int, ...]

    @property
    def elements(self) -> float:
        """How many elements."""
        return float(math.prod(self.dims))

    @property
    def item_bytes(self) -> float:
        """Bytes of one element."""
        return _bits(self.kind) / 8

    @property
    def bytes(self) -> float:
        """Bytes of all."""
        return self.elements * self.item_bytes


def leaves(shape: str) -> list[Leaf]:
    """Arrays of a result type, those of nested tuples in order; tokens and opaque values are none."""
    found = ((kind, dims) for kind, dims in _SHAPE.findall(shape) if _bits(kind))
    return [Leaf(kind, tuple(int(d.lstrip("<=")) for d in dims.split(",") if d)) for kind, dims in found]


def shape_elements(shape: str) -> float:
    """Elements of a result type; those of a tuple are added."""
    return sum(_count(dims) for _, dims in _SHAPE.findall(shape))


def shape_bytes(shape: str) -> float:
    """Bytes of a result type; those of a tuple are added. Tokens and opaque values count nothing."""
    return sum(_count(dims) * _bits(kind) / 8 for kind, dims in _SHAPE.findall(shape))


def _bits(kind: str) -> int:
    return _BITS.get(kind, 8 if kind.startswith("f8") else 0)


def _count(dims: str) -> float:
    count = 1.0
    for dim in filter(None, dims.split(",")):
        count *= int(dim.lstrip("<="))
    return count


def text_hash(text: str) -> str:
    """Hash of a module's text without what varies from build to build (source locations, ids)."""
    body = [re.sub(r", (metadata|frontend_attributes)=\{[^}]*\}", "", line) for line in _code_lines(text)]
    return hashlib.sha256("\n".join(body).encode()).hexdigest()[:16]


def _code_lines(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if _HEADER.match(line):
            inside = True
        if inside:
            yield line
        if line.startswith("}"):
            inside = False


def parse(text: str) -> Module:
    """Parse the text of an optimised module (``compiled.as_text()``).

    Raises
    ------
    InputError
        The text has no entry computation.
    """
    computations: dict[str, Computation] = {}
    entry, current, first = None, None, ""
    for line in text.splitlines():
        if line.startswith("HloModule"):
            first = line
            continue
        header = _HEADER.match(line)
        if header and current is None:
            current = Computation(header[2], {})
            computations[header[2]] = current
            entry = header[2] if header[1] else entry
        elif line.lstrip().startswith("}"):
            current = None
        elif current is not None:
            instruction = _instruction(line)
            if instruction is not None:
                current.instructions[instruction.name] = instruction
    if entry is None:
        raise InputError("not the text of an HLO module: it has no ENTRY computation")
    return Module(computations, entry, first)


def _instruction(line: str) -> Instruction | None:
    start = _START.match(line)
    if start is None:
        return None
    rest = line[start.end() :]
    shape, rest = _take_shape(rest)
    found = re.match(r"\s*([\w\-]+)\(", rest)
    if found is None:
        return None
    inside, attributes = _take_parenthesis(rest[found.end() - 1 :])
    names = tuple(re.findall(r"%([\w.\-]+)", inside)) or _bare_names(inside, found[1])
    called = tuple((role, name) for role, names_ in _CALLED.findall(attributes) for name in _names_in(names_))
    return Instruction(start[2], found[1], shape, names, called, attributes, inside, bool(start[1]))


def _bare_names(inside: str, opcode: str) -> tuple[str, ...]:
    # Text printed without "%": operands are the last word of each top-level item.
    if opcode in ("parameter", "constant", "iota"):
        return ()
    items = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", inside).split(",")
    return tuple(item.split()[-1] for item in items if item.split())


def _names_in(text: str) -> list[str]:
    return re.findall(r"[\w.\-]+", text.replace("%", ""))


def _take_shape(rest: str) -> tuple[str, str]:
    if rest.startswith("("):
        inside, after = _take_parenthesis(rest)
        return f"({inside})", after
    found = re.match(r"[^\s]+", rest)
    return (found[0], rest[found.end() :]) if found else ("", rest)


def _take_parenthesis(text: str) -> tuple[str, str]:
    """Split text that starts with "(" into what is inside it and what follows."""
    depth, quoted = 0, False
    for at, character in enumerate(text):
        if character == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif not quoted and character == "(":
            depth += 1
        elif not quoted and character == ")":
            depth -= 1
            if depth == 0:
                return text[1:at], text[at + 1 :]
    return text[1:], ""
