"""Checks the optimised program that is about to be timed: is the work still in the loop, and nothing else?

XLA folds what is constant, hoists what does not change, and copies what it cannot update in place. Each of the three
once made a wrong number; each is refused here, by the text of the very executable that runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bayesperf.errors import MeasurementError
from bayesperf.hlo import Computation, Instruction, Module, parse
from bayesperf.probe import LoopExpectation

__all__ = ["check_launch", "check_loop"]

_TRANSPARENT = frozenset({"bitcast", "copy", "reshape", "get-tuple-element", "tuple", "optimization-barrier"})
_INNER = frozenset({"while", "call", "conditional"})
COPY_FLOOR_BYTES = 1024.0
"""Copies below this size cost nothing that could be seen."""


def check_loop(text: str, expectation: LoopExpectation, *, carries: int, operands: int, work_bytes: float) -> None:
    """Refuse a chained program that does not do its work in every iteration.

    Parameters
    ----------
    text
        Optimised HLO; its entry takes the trip count, the carry's leaves and the operands, in this order.
    expectation
        What the body must hold.
    carries, operands
        Number of leaves of the carry and of operands.
    work_bytes
        Compulsory bytes of an iteration on one device, to judge the size of copies.

    Raises
    ------
    MeasurementError
        ``folded``, ``hoisted`` or ``copied``.
    """
    module = parse(text)
    entry = module.computations[module.entry]
    found = len(entry.parameters)
    if found < 1 + carries + operands:
        raise MeasurementError(
            "folded", f"the optimised program takes {found} inputs where {1 + carries + operands} were given"
        )
    loops = module.whiles()
    if not loops:
        raise MeasurementError("folded", "the optimised program has no loop: its work was folded away or unrolled")
    owner, loop = max(loops, key=lambda pair: pair[1].bytes)
    body = module.computations[dict(loop.called)["body"]]
    _check_operations(module, body.name, expectation)
    for operand in range(operands):
        _check_read(module, owner, loop, body, parameter=1 + carries + operand, operand=operand)
    _check_copies(module, body, expectation, work_bytes)


def check_launch(text: str, expectation: LoopExpectation) -> None:
    """Refuse a launched program whose expected operations are gone.

    Raises
    ------
    MeasurementError
        ``folded``.
    """
    module = parse(text)
    _check_operations(module, module.entry, expectation)


def _check_operations(module: Module, name: str, expectation: LoopExpectation) -> None:
    counts = Counter(i.opcode for i in module.within(name))
    if expectation.operand_type is not None:
        _check_operand_type(module, name, expectation.operations[0], expectation.operand_type)
    for alternatives in expectation.operations:
        if not any(counts[opcode] for opcode in alternatives):
            raise MeasurementError(
                "folded", f"the timed part of the optimised program has no {' or '.join(alternatives)}"
            )
    for opcode, least in expectation.at_least.items():
        if counts[opcode] < least:
            raise MeasurementError(
                "folded", f"the timed part of the optimised program has {counts[opcode]} {opcode}, not {least}"
            )


def _check_operand_type(module: Module, name: str, opcodes: tuple[str, ...], wanted: str) -> None:
    for computation in module.reachable(name):
        for instruction in computation.instructions.values():
            shapes = (computation.instructions[o].shape for o in instruction.operands if o in computation.instructions)
            if instruction.opcode in opcodes and any(shape.startswith(f"{wanted}[") for shape in shapes):
                return
    raise MeasurementError(
        "unsupported-dtype",
        f"no {' or '.join(opcodes)} of the optimised program takes {wanted} operands: they are widened beforehand, "
        f"since the device does not have this type",
    )


def _check_read(
    module: Module, owner: Computation, loop: Instruction, body: Computation, parameter: int, operand: int
) -> None:
    """Is entry parameter `parameter` an element of the loop's tuple, and does the body use that element?"""
    initial = owner.instructions[loop.operands[0]]
    elements = _elements(module, owner, initial)
    at = [k for k, source in enumerate(elements) if source == parameter]
    if not at:
        raise MeasurementError(
            "hoisted", f"operand {operand} does not enter the loop: what needs it was computed once, outside"
        )
    for instruction in body.instructions.values():
        taken = instruction.opcode == "get-tuple-element" and instruction.index in at
        if taken and any(_reads(body, user) for user in body.users(instruction.name)):
            return
    raise MeasurementError("hoisted", f"operand {operand} enters the loop but its body never reads it")


def _reads(body: Computation, user: Instruction) -> bool:
    """Whether a user of an element does more than hand it on to the next iteration: an inner loop does."""
    return user.opcode != "tuple" or any(inner.opcode in _INNER for inner in body.users(user.name))


def _elements(module: Module, owner: Computation, initial: Instruction) -> list[int | None]:
    """Entry parameter that each element of the loop's initial tuple comes from, or None."""
    if initial.opcode == "tuple":
        return [_origin(module, owner, name) for name in initial.operands]
    if initial.opcode == "parameter":
        caller = _caller(module, owner)
        if caller is not None:
            computation, call = caller
            return _elements(module, computation, computation.instructions[call.operands[initial.index or 0]])
    if initial.opcode in _TRANSPARENT and initial.operands:
        return _elements(module, owner, owner.instructions[initial.operands[0]])
    return []


def _origin(module: Module, owner: Computation, name: str) -> int | None:
    instruction = owner.instructions.get(name)
    while instruction is not None:
        if instruction.opcode == "parameter":
            if owner.name == module.entry:
                return instruction.index
            caller = _caller(module, owner)
            if caller is None:
                return None
            owner, call = caller
            instruction = owner.instructions.get(call.operands[instruction.index or 0])
        elif instruction.opcode in _TRANSPARENT and len(instruction.operands) == 1:
            instruction = owner.instructions.get(instruction.operands[0])
        else:
            return None
    return None


def _caller(module: Module, computation: Computation) -> tuple[Computation, Instruction] | None:
    for candidate in module.computations.values():
        for instruction in candidate.instructions.values():
            if instruction.opcode == "call" and any(name == computation.name for _, name in instruction.called):
                return candidate, instruction
    return None


def _check_copies(module: Module, body: Computation, expectation: LoopExpectation, work_bytes: float) -> None:
    copied = sum(max(0.0, i.bytes) for i in _materialised(module, body.name) if _is_copy(i))
    allowed = max(COPY_FLOOR_BYTES, expectation.copied_share * work_bytes)
    if copied > allowed:
        raise MeasurementError(
            "copied",
            f"the compiler copies {copied:.3g} bytes in every iteration, of which the work's {work_bytes:.3g} bytes "
            f"know nothing (allowed: {allowed:.3g})",
        )


def _is_copy(instruction: Instruction) -> bool:
    if instruction.opcode == "async-start":
        return "copy" in instruction.attributes
    return instruction.opcode in ("copy", "copy-start")


def _materialised(module: Module, name: str) -> Iterator[Instruction]:
    """Instructions whose results are written to memory: inside a fusion only the result of the whole."""
    reachable = list(module.reachable(name))
    fused = {
        called
        for computation in reachable
        for instruction in computation.instructions.values()
        if instruction.opcode == "fusion"
        for _, called in instruction.called
    }
    for computation in reachable:
        written = _results(computation)
        for instruction in computation.instructions.values():
            if computation.name not in fused or instruction.name in written:
                yield instruction


def _results(computation: Computation) -> set[str]:
    """Names of its root and of what the root only regroups."""
    found, pending = set(), [computation.root.name]
    while pending:
        name = pending.pop()
        found.add(name)
        instruction = computation.instructions.get(name)
        if instruction is not None and instruction.opcode in ("tuple", "bitcast"):
            pending.extend(instruction.operands)
    return found
