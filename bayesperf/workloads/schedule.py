"""The kernels of an optimised program in the order they run, with loops, branches and the buffers they share.

- A ``while`` runs its body as often as `bayesperf.workloads.loops` finds out; where nobody can say, the count is NaN.
- Of a ``conditional`` the branch with the most FLOP and bytes is taken: an upper bound, marked.
- A ``call`` and an asynchronous pair are the kernels of what they call. On CPU the compiler makes one piece of code of
  small loops, marked at the call around them: what is in it is not cut into parts for several threads, even where the
  compiler had planned to.
- What only names or regroups buffers (``tuple``, ``bitcast``, ...) is no kernel.
- The condition of a loop runs once more often than its body; where XLA knows the count, it is not evaluated at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bayesperf.hlo import Computation, Instruction, Module, leaves
from bayesperf.workloads.attributes import runs_whole
from bayesperf.workloads.collectives import Message, message_of
from bayesperf.workloads.loops import trip_count
from bayesperf.workloads.traffic import Access, Content, content_of, in_place

__all__ = ["Buffer", "Kernel", "Loop", "Touch", "schedule"]

NO_KERNEL = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id"),
        *("optimization-barrier", "add-dependency", "domain", "get-dimension-size", "set-dimension-size"),
        *("copy-done", "async-update", "async-done", "send-done", "recv-done"),
    }
)
"""Instructions that nothing runs for."""

NO_CALL = frozenset(
    {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "AllocateBuffer", "PinToDevice", "MoveToDevice"}
)
"""Targets of custom calls that are marks."""

Buffer = tuple[object, ...]
"""Identity of a buffer."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A buffer that a kernel uses."""

    buffer: Buffer
    access: Access
    written: bool


@dataclass
class Kernel:
    """One kernel: an instruction and what it does, with how often it runs.

    Parameters
    ----------
    instruction, computation
        Which, and where it stands.
    content
        What it does; None for collectives.
    message
        The collective it is, or None.
    touches
        Buffers it uses.
    count
        Executions in one run of the program; NaN where a loop around it runs nobody knows how often.
    loops
        Names of the loops around it whose trip count is unknown.
    branch
        The conditional it stands in, or an empty text.
    within
        Names of all loops and calls around it, outermost first.
    whole
        Whether it stands in a call that one thread runs from end to end.
    """

    instruction: Instruction
    computation: Computation
    content: Content | None
    message: Message | None
    touches: list[Touch]
    count: float
    loops: tuple[str, ...] = ()
    branch: str = ""
    within: tuple[str, ...] = ()
    whole: bool = False


@dataclass
class Loop:
    """A loop: what it runs, how often, and the outer buffer behind each element of its tuple."""

    name: str
    trips: float
    items: list[Kernel | Loop] = field(default_factory=list)
    outer: dict[Buffer, Buffer] = field(default_factory=dict)

    def kernels(self) -> Iterator[Kernel]:
        """All kernels in it, in order."""
        for item in self.items:
            if isinstance(item, Loop):
                yield from item.kernels()
            else:
                yield item


@dataclass(frozen=True)
class _Place:
    """Where the walk is: how often this is run, in which loops, and what stands behind parameters.

    `behind` holds, for each parameter of a called computation, the operand it is given and where that stands.
    """

    count: float
    behind: Mapping[int, tuple[Computation, str, _Place]] = field(default_factory=dict)
    scope: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    branch: str = ""
    loop: str = ""
    within: tuple[str, ...] = ()
    whole: bool = False


def schedule(module: Module, trips: Mapping[str, float] | float | None = None) -> Loop:
    """Walk a program; the result is a loop that runs once.

    Parameters
    ----------
    module
        The optimised program.
    trips
        Trip counts, by name or one for all, of loops whose count the text does not say.
    """
    walk = _Walk(module, trips)
    top = Loop(module.entry, 1.0)
    walk.run(module.computations[module.entry], _Place(1.0), top)
    return top


class _Walk:
    def __init__(self, module: Module, trips: Mapping[str, float] | float | None):
        self._module, self._trips, self._devices = module, trips, module.devices

    def run(self, computation: Computation, place: _Place, into: Loop) -> None:
        """Add the kernels of a computation to `into`."""
        for instruction in computation.instructions.values():
            opcode = instruction.opcode
            if opcode in NO_KERNEL or opcode.endswith("-done") or instruction.custom_call_target in NO_CALL:
                continue
            if opcode == "while":
                self._loop(computation, instruction, place, into)
            elif opcode == "conditional":
                self._branches(computation, instruction, place, into)
            elif opcode in ("call", "async-start"):
                self._call(computation, instruction, place, into)
            else:
                into.items.append(self._kernel(computation, instruction, place))

    def _kernel(self, computation: Computation, instruction: Instruction, place: _Place) -> Kernel:
        message = message_of(computation, instruction, self._devices)
        content = None if message else content_of(self._module, computation, instruction)
        touches = []
        for access in content.reads if content else ():
            touches.append(Touch(self._buffer(computation, access.name, place), access, False))
        for at, access in enumerate(content.writes if content else ()):
            own = (place.scope, instruction.name, at)
            buffer = self._buffer(computation, access.name, place) if access.name else own
            touches.append(Touch(buffer, access, True))
        return Kernel(
            instruction, computation, content, message, touches, place.count, place.loops, place.branch, place.within,
            place.whole,
        )  # fmt: skip

    def _loop(self, computation: Computation, loop: Instruction, place: _Place, into: Loop) -> None:
        found = trip_count(self._module, computation, loop)
        stated = found is not None
        if found is None:
            given = self._trips.get(loop.name) if isinstance(self._trips, Mapping) else self._trips
            found = math.nan if given is None else float(given)
        called, scope = dict(loop.called), (*place.scope, loop.name)
        inner = Loop(loop.name, found)
        unknown = [loop.name] if math.isnan(found) else []
        inside = replace(
            place, count=place.count * found, behind={}, scope=scope, loops=(*place.loops, *unknown), loop=loop.name,
            within=(*place.within, loop.name),
        )  # fmt: skip
        if not stated and called.get("condition") in self._module.computations:
            again = replace(inside, count=place.count * (found + 1.0))
            self.run(self._module.computations[called["condition"]], again, inner)
        if called.get("body") in self._module.computations:
            self.run(self._module.computations[called["body"]], inside, inner)
        for at in range(len(leaves(loop.shape))):
            inner.outer[(scope, "element", at)] = self._buffer(computation, loop.operands[0], place, (at,))
        into.items.append(inner)

    def _branches(self, computation: Computation, conditional: Instruction, place: _Place, into: Loop) -> None:
        taken: Loop | None = None
        branches = [name for _, name in conditional.called if name in self._module.computations]
        for name, operand in zip(branches, conditional.operands[1:], strict=False):
            inside = replace(
                place,
                behind={0: (computation, operand, place)},
                scope=(*place.scope, conditional.name, name),
                branch=conditional.name,
                loop="",
            )
            candidate = Loop(name, 1.0)
            self.run(self._module.computations[name], inside, candidate)
            if taken is None or _weight(candidate) > _weight(taken):
                taken = candidate
        into.items.extend(taken.items if taken else [])

    def _call(self, computation: Computation, call: Instruction, place: _Place, into: Loop) -> None:
        called = dict(call.called)
        name = called.get("to_apply", called.get("calls", called.get("called_computations", "")))
        if name not in self._module.computations:
            return
        behind = {at: (computation, operand, place) for at, operand in enumerate(call.operands)}
        within = (*place.within, call.name) if call.opcode == "call" else place.within
        whole = place.whole or runs_whole(call)
        inside = replace(place, behind=behind, scope=(*place.scope, call.name), loop="", within=within, whole=whole)
        self.run(self._module.computations[name], inside, into)

    def _buffer(self, computation: Computation, name: str, place: _Place, path: tuple[int, ...] = ()) -> Buffer:
        """Identity of the buffer behind a name: seen through views, tuples, calls and updates in place.

        `path` says which element of a (nested) tuple, innermost first.
        """
        instruction = computation.instructions.get(name)
        while instruction is not None:
            opcode = instruction.opcode
            if opcode == "get-tuple-element":
                path = (*path, instruction.index or 0)
                instruction = computation.instructions.get(instruction.operands[0])
            elif opcode == "tuple" and path:
                instruction = computation.instructions.get(instruction.operands[path[-1]])
                path = path[:-1]
            elif opcode in ("bitcast", "optimization-barrier", "copy-done", "async-done", "domain"):
                instruction = computation.instructions.get(instruction.operands[0])
            elif opcode == "parameter":
                return self._parameter(instruction, path, place)
            else:
                alias = self._alias(instruction, path)
                if alias is None:
                    return (place.scope, instruction.name, path[-1] if path else 0)
                path = ()
                instruction = computation.instructions.get(alias)
        return (place.scope, name, 0)

    def _parameter(self, parameter: Instruction, path: tuple[int, ...], place: _Place) -> Buffer:
        number = parameter.index or 0
        if number in place.behind:
            computation, operand, outside = place.behind[number]
            return self._buffer(computation, operand, outside, path)
        if place.loop:
            return (place.scope, "element", path[-1] if path else 0)
        return (place.scope, parameter.name, *path)

    def _alias(self, instruction: Instruction, path: tuple[int, ...]) -> str | None:
        """Operand in whose place an instruction writes its result, or None."""
        if instruction.opcode in ("dynamic-update-slice", "scatter"):
            return instruction.operands[0]
        fused = self._module.computations.get(dict(instruction.called).get("calls", ""))
        if instruction.opcode != "fusion" or fused is None:
            return None
        root = fused.root
        if root.opcode == "tuple":
            root = fused.instructions.get(root.operands[path[-1]] if path else root.operands[0], root)
        update = in_place(fused, root)
        target = fused.instructions.get(update.operands[0]) if update else None
        while target is not None and target.opcode in ("bitcast", "reshape"):
            target = fused.instructions.get(target.operands[0])
        return instruction.operands[target.index or 0] if target is not None and target.opcode == "parameter" else None


def _weight(loop: Loop) -> float:
    """FLOP and bytes of all that a branch runs; an unknown number of times counts as once."""
    total = 0.0
    for kernel in loop.kernels():
        count = kernel.count if math.isfinite(kernel.count) else 1.0
        if kernel.content is not None:
            accesses = [*kernel.content.reads, *kernel.content.writes]
            total += count * (kernel.content.tally.flops + sum(access.bytes for access in accesses))
        elif kernel.message is not None:
            total += count * kernel.message.bytes
    return total
