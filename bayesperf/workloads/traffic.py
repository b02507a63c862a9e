"""What one kernel computes, reads and writes: compulsory traffic, each buffer once.

A kernel is one instruction of the optimised program; a fusion is taken apart into the instructions it holds, whose
values between them do not leave the chip. How many values of each instruction are needed is found from the result
backwards: a slice or a gather needs what it yields and not what it is taken from, a broadcast needs its operand once.
Of an operand, the needed values are read; a result is written once, of a buffer that is updated in place (a
``dynamic-update-slice``, a ``scatter``) only the update.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from bayesperf.hlo import Computation, Instruction, Leaf, Module, leaves
from bayesperf.workloads.flops import Tally, tally
from bayesperf.workloads.products import Product, product_of

__all__ = ["Access", "Content", "body_of", "content_of", "in_place", "is_strided", "results_of"]

_SLICES = ("slice", "dynamic-slice", "gather")
_VIEWS = ("bitcast", "reshape", "copy", "convert", "transpose")
SCRATCH = ("u8", "s8")
"""Element types of the workspace that library calls return beside their result."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a kernel uses one buffer.

    Parameters
    ----------
    name
        Operand that is read; for a result, the operand in whose place it is written, or an empty text.
    bytes
        Read or written, byte.
    span
        What these lie in, byte: the whole buffer where they are spread over it (gather, scatter, strided slice), else
        what they are.
    moving
        Whether another part is used in every iteration of a loop.
    """

    name: str
    bytes: float
    span: float
    moving: bool = False


@dataclass
class Content:
    """What a kernel does.

    Parameters
    ----------
    tally
        FLOP.
    reads, writes
        Buffers.
    opcodes
        Operations by how many values they yield.
    products
        Products in it, with the element type of what they multiply as it is stored.
    reducers
        Operations of the scalar computations of its reductions.
    unknown
        Operations that no formula knows.
    """

    tally: Tally = field(default_factory=Tally)
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)
    opcodes: dict[str, float] = field(default_factory=dict)
    products: list[Product] = field(default_factory=list)
    reducers: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)


def content_of(module: Module, computation: Computation, instruction: Instruction) -> Content:
    """Take one kernel apart."""
    body, operand_of = _body(module, computation, instruction)
    needed, data = _needs(module, body)
    content = Content()
    for inner in body.instructions.values():
        if inner.opcode != "parameter" and needed.get(inner.name, 0.0) > 0:
            _count(module, body, inner, needed[inner.name], inner.name in data, content)
    _add_reads(body, operand_of, needed, content)
    content.writes.extend(_writes(body, operand_of))
    return content


def results_of(instruction: Instruction) -> list[Leaf]:
    """Arrays that an instruction yields, without the workspace of a library call or the context of a copy."""
    results = leaves(instruction.shape)
    if instruction.opcode == "copy-start":
        return results[:1]
    if len(results) > 1 and instruction.custom_call_target:
        last = results[-1]
        return results[:-1] if last.kind in SCRATCH and len(last.dims) == 1 else results
    return results


def _single(computation: Computation, instruction: Instruction) -> Computation:
    """An instruction as a computation of its own, whose parameters are named as its operands are."""
    known = computation.instructions
    parameters = {
        name: replace(known[name], opcode="parameter", operands=(), called=(), literal=str(at))
        for at, name in enumerate(dict.fromkeys(instruction.operands))
        if name in known
    }
    return Computation(instruction.name, {**parameters, instruction.name: replace(instruction, root=True)})


def body_of(module: Module, computation: Computation, instruction: Instruction) -> Computation:
    """The computation that a kernel runs: what a fusion holds, or the one instruction it is."""
    return _body(module, computation, instruction)[0]


def _body(module: Module, computation: Computation, instruction: Instruction) -> tuple[Computation, dict[str, str]]:
    """The computation a kernel runs, and the operand behind each of its parameters."""
    fused = dict(instruction.called).get("calls")
    if instruction.opcode != "fusion" or fused not in module.computations:
        body = _single(computation, instruction)
        return body, {p.name: p.name for p in body.parameters}
    body = _flattened(module, module.computations[fused])
    return body, {p.name: instruction.operands[p.index or 0] for p in body.parameters}


def _flattened(module: Module, computation: Computation) -> Computation:
    """A fused computation with what it calls (nested fusions, calls) put in its place."""
    if not any(i.opcode in ("fusion", "call") for i in computation.instructions.values()):
        return computation
    found: dict[str, Instruction] = {}
    names: dict[str, str] = {}
    for instruction in computation.instructions.values():
        renamed = replace(instruction, operands=tuple(names.get(o, o) for o in instruction.operands))
        called = dict(instruction.called)
        inner = module.computations.get(called.get("calls", called.get("to_apply", "")))
        if instruction.opcode not in ("fusion", "call") or inner is None:
            found[renamed.name] = renamed
            continue
        inside = {p.name: renamed.operands[p.index or 0] for p in inner.parameters}
        for each in _flattened(module, inner).instructions.values():
            if each.opcode == "parameter":
                continue
            name = renamed.name if each.root else f"{renamed.name}/{each.name}"
            inside[each.name] = name
            operands = tuple(inside.get(o, o) for o in each.operands)
            found[name] = replace(each, name=name, operands=operands, root=renamed.root and each.root)
    return Computation(computation.name, found)


def _roots(body: Computation) -> list[Instruction]:
    """Results of a computation, those of a tuple one by one."""
    root = body.root
    if root.opcode != "tuple":
        return [root]
    return [body.instructions[name] for name in root.operands if name in body.instructions]


def in_place(body: Computation, root: Instruction) -> Instruction | None:
    """The update in place that a result is, if it is one, seen through bitcasts."""
    while root.opcode == "bitcast" and root.operands and root.operands[0] in body.instructions:
        root = body.instructions[root.operands[0]]
    return root if root.opcode in ("dynamic-update-slice", "scatter") else None


def _needs(module: Module, body: Computation) -> tuple[dict[str, float], set[str]]:
    """Values needed of each instruction, and which of them are data and not indices or masks of them."""
    needed: dict[str, float] = {}
    data: set[str] = set()
    updated = set()
    for root in _roots(body):
        # A call that returns nothing (a print, a callback) is called for what it does.
        needed[root.name] = max(root.elements, float(root.opcode == "custom-call"))
        data.add(root.name)
        update = in_place(body, root)
        if update is not None:
            updated.add(update.name)
            needed[update.name] = update.elements
    order = _ordered(body)
    given = _given(order)
    for instruction in reversed(order):
        amount = needed.get(instruction.name, 0.0)
        if amount <= 0 or instruction.opcode == "tuple":
            continue
        for at, name in enumerate(instruction.operands):
            operand = body.instructions.get(name)
            if operand is None:
                continue
            if instruction.opcode in ("dynamic-update-slice", "scatter") and at == 0:
                more = _kept(module, body, instruction, amount, instruction.name in updated)
            else:
                more = _needed(body, instruction, at, operand, amount)
            needed[name] = min(operand.elements, needed.get(name, 0.0) + more)
            # Positions that are only compared (``iota < n``) make a mask.
            what = not _is_index(body, instruction, at) and (instruction.opcode != "compare" or name in given)
            if what and instruction.name in data:
                data.add(name)
    return needed, data


def _given(order: Sequence[Instruction]) -> set[str]:
    """Instructions that depend on arrays that the kernel is given, and not on positions alone."""
    found: set[str] = set()
    for instruction in order:
        array = instruction.opcode in ("parameter", "constant") and instruction.elements > 1
        if array or any(name in found for name in instruction.operands):
            found.add(instruction.name)
    return found


def _ordered(body: Computation) -> list[Instruction]:
    """Instructions with operands first; the text has them so, but texts written by hand may not."""
    placed: dict[str, Instruction] = {}

    def visit(instruction: Instruction) -> None:
        pending = [(instruction, iter(instruction.operands))]
        while pending:
            current, rest = pending[-1]
            following = next((n for n in rest if n in body.instructions and n not in placed), None)
            if following is None:
                placed[current.name] = current
                pending.pop()
            else:
                pending.append((body.instructions[following], iter(body.instructions[following].operands)))

    for instruction in body.instructions.values():
        if instruction.name not in placed:
            visit(instruction)
    return list(placed.values())


def _needed(body: Computation, user: Instruction, at: int, operand: Instruction, amount: float) -> float:
    """Values that `amount` values of `user` need of its operand number `at`."""
    if user.opcode in ("dynamic-update-slice", "scatter"):
        return operand.elements
    if _is_index(body, user, at):
        return operand.elements
    if user.opcode in (*_SLICES, "broadcast", "pad"):
        return min(amount, operand.elements)
    whole = user.elements
    return operand.elements * min(amount / whole, 1.0) if whole else operand.elements


def _kept(module: Module, body: Computation, update: Instruction, amount: float, updates: bool) -> float:
    """Values that an update needs of what it updates: in place, those it combines with; else all that it keeps."""
    source = body.instructions.get(update.operands[-1 if update.opcode == "scatter" else 1])
    size = source.elements if source is not None else 0.0
    combined = size if update.opcode == "scatter" and not _overwrites(module, update) else 0.0
    return combined if updates else max(amount - size, combined)


def _overwrites(module: Module, scatter: Instruction) -> bool:
    """Whether a scatter puts its updates in place of what was there: its computation returns a parameter."""
    reducer = module.computations.get(dict(scatter.called).get("to_apply", ""))
    return reducer is not None and reducer.root.opcode == "parameter"


def _is_index(body: Computation, user: Instruction, at: int) -> bool:
    """Whether operand `at` says where, and not what."""
    if user.opcode == "dynamic-slice":
        return at > 0
    if user.opcode == "dynamic-update-slice":
        return at > 1
    if user.opcode == "gather":
        return at == 1
    if user.opcode == "scatter":
        return at == (len(user.operands) - 1) // 2
    return False


def _count(
    module: Module, body: Computation, inner: Instruction, needed: float, is_data: bool, content: Content
) -> None:
    known = body.instructions
    shapes = [known[name].shape for name in inner.operands if name in known]
    update = inner.opcode in ("dynamic-update-slice", "scatter")
    whole = tally(module, inner, shapes)
    found = whole if update else tally(module, inner, shapes, needed)
    if not is_data:
        # Where things are, not what they are: no work of the program.
        found = Tally()
    # XLA counts both, and every value whether it is needed or not.
    content.tally += replace(found, xla=whole.xla)
    content.opcodes[inner.opcode] = content.opcodes.get(inner.opcode, 0.0) + needed
    if not whole.known:
        content.unknown.append(inner.custom_call_target or inner.opcode)
    if inner.opcode == "reduce":
        content.reducers |= {i.opcode for _, name in inner.called for i in module.within(name)}
    product = product_of(inner, shapes)
    if product is not None:
        content.products.append(replace(product, kind=_stored(body, inner)))


def _stored(body: Computation, product: Instruction) -> str:
    """Element type that a product's first operand is stored in, seen through conversions inside of the kernel."""
    current = body.instructions[product.operands[0]]
    while current.opcode in _VIEWS and current.operands and current.operands[0] in body.instructions:
        current = body.instructions[current.operands[0]]
    found = leaves(current.shape)
    return found[0].kind if found else ""


def _add_reads(body: Computation, operand_of: dict[str, str], needed: dict[str, float], content: Content) -> None:
    seen: dict[str, Access] = {}
    for parameter in body.parameters:
        amount, size = needed.get(parameter.name, 0.0), parameter.elements
        if amount <= 0 or not size:
            continue
        name = operand_of[parameter.name]
        moved = parameter.bytes * amount / size
        users = list(_users(body, parameter))
        spread = any(user.opcode in ("gather", "scatter") or is_strided(user) for user in users)
        moving = bool(users) and all(user.opcode == "dynamic-slice" for user in users)
        access = Access(name, moved, parameter.bytes if spread else moved, moving)
        if name not in seen or seen[name].bytes < moved:
            seen[name] = access
    content.reads.extend(seen.values())
    for constant in body.instructions.values():
        # Scalars are part of the code.
        if constant.opcode == "constant" and constant.elements > 1 and constant.name not in seen:
            amount = needed.get(constant.name, 0.0)
            if amount > 0:
                moved = constant.bytes * amount / constant.elements
                content.reads.append(Access(constant.name, moved, moved))


def is_strided(instruction: Instruction) -> bool:
    """Whether a slice leaves out elements between those that it takes."""
    steps = re.findall(r"\[\d+:\d+:(\d+)\]", instruction.attributes) if instruction.opcode == "slice" else []
    return any(int(step) > 1 for step in steps)


def _users(body: Computation, instruction: Instruction) -> Iterator[Instruction]:
    for user in body.users(instruction.name):
        if user.opcode in ("bitcast", "reshape"):
            yield from _users(body, user)
        else:
            yield user


def _writes(body: Computation, operand_of: dict[str, str]) -> Iterator[Access]:
    for root in _roots(body):
        update = in_place(body, root)
        if update is not None:
            yield _updated(body, operand_of, update)
            continue
        if root.opcode != "parameter":
            yield from (Access("", leaf.bytes, leaf.bytes) for leaf in results_of(root))


def _updated(body: Computation, operand_of: dict[str, str], update: Instruction) -> Access:
    scatter = update.opcode == "scatter"
    source = body.instructions.get(update.operands[-1 if scatter else 1])
    moved = source.bytes if source is not None else update.bytes
    target = body.instructions.get(update.operands[0])
    while target is not None and target.opcode in ("bitcast", "reshape") and target.operands:
        target = body.instructions.get(target.operands[0])
    alias = operand_of.get(target.name, "") if target is not None else ""
    return Access(alias, moved, update.bytes if scatter else moved, not scatter)
