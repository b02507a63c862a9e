"""How often a loop runs: what XLA found out, else what its counter, its step and its bound say."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from bayesperf.hlo import Computation, Instruction, Module
from bayesperf.workloads.attributes import backend_config, word

__all__ = ["trip_count"]


def trip_count(module: Module, owner: Computation, loop: Instruction) -> float | None:
    """Iterations of a ``while``, or None where the program's text does not say.

    Parameters
    ----------
    module
        The program.
    owner
        Computation that the loop stands in.
    loop
        The loop.
    """
    known = backend_config(loop).get("known_trip_count", {})
    if isinstance(known, dict) and str(known.get("n", "")).isdigit():
        return float(known["n"])
    # Text of older versions, whose configuration is not JSON.
    found = re.search(r"known_trip_count\D{1,10}(\d+)", loop.attributes)
    if found:
        return float(found[1])
    return _counted(module, owner, loop)


@dataclass(frozen=True, slots=True)
class _Bound:
    element: int
    limit: float
    direction: str


def _counted(module: Module, owner: Computation, loop: Instruction) -> float | None:
    called = dict(loop.called)
    condition, body = (module.computations.get(called.get(role, "")) for role in ("condition", "body"))
    if condition is None or body is None or not loop.operands:
        return None
    bound = _bound(module, condition)
    start = _initial(owner, loop.operands[0], bound.element) if bound else None
    step = _step(module, body, bound.element) if bound else None
    if bound is None or start is None or not step:
        return None
    # `i < n` ends at the first i that is not; `i <= n` one later; a counter may also run down.
    distance = (bound.limit - start) / step
    if bound.direction in ("LE", "GE"):
        return max(math.floor(distance) + 1.0, 0.0)
    return max(float(math.ceil(distance)), 0.0) if bound.direction in ("LT", "GT", "NE") else None


def _bound(module: Module, condition: Computation) -> _Bound | None:
    """The comparison of one element of the loop's tuple with a constant that a condition is."""
    computation, root, element_of = condition, condition.root, _elements(condition)
    called = dict(root.called)
    inner = module.computations.get(called.get("calls", called.get("to_apply", "")))
    if root.opcode in ("fusion", "call") and inner is not None:
        element_of = {
            p.name: element_of[root.operands[p.index or 0]]
            for p in inner.parameters
            if root.operands[p.index or 0] in element_of
        }
        constants = {p.name: _constant(condition, root.operands[p.index or 0]) for p in inner.parameters}
        computation, root = inner, inner.root
    else:
        constants = {}
    direction = word(root, "direction")
    if root.opcode != "compare" or direction is None:
        return None
    left, right = root.operands

    def value(name: str) -> float | None:
        found = constants.get(name)
        return _constant(computation, name) if found is None else found

    if left in element_of and value(right) is not None:
        return _Bound(element_of[left], float(value(right) or 0.0), direction)
    if right in element_of and value(left) is not None:
        turned = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(direction, direction)
        return _Bound(element_of[right], float(value(left) or 0.0), turned)
    return None


def _elements(computation: Computation) -> dict[str, int]:
    """Instructions that are an element of a computation's only parameter, a tuple."""
    found = {i.name: i.index or 0 for i in computation.instructions.values() if i.opcode == "get-tuple-element"}
    for instruction in computation.instructions.values():
        if instruction.opcode in ("copy", "bitcast") and instruction.operands[0] in found:
            found[instruction.name] = found[instruction.operands[0]]
    return found


def _constant(computation: Computation, name: str) -> float | None:
    instruction = computation.instructions.get(name)
    while instruction is not None and instruction.opcode in ("copy", "bitcast", "convert", "broadcast"):
        instruction = computation.instructions.get(instruction.operands[0])
    if instruction is None or instruction.opcode != "constant":
        return None
    try:
        return float(instruction.literal)
    except ValueError:
        return None


def _initial(owner: Computation, name: str, element: int) -> float | None:
    start = owner.instructions.get(name)
    while start is not None and start.opcode in ("copy", "optimization-barrier"):
        start = owner.instructions.get(start.operands[0])
    if start is None or start.opcode != "tuple":
        return None
    return _constant(owner, start.operands[element])


def _step(module: Module, body: Computation, element: int) -> float | None:
    """What one iteration adds to an element of the loop's tuple."""
    if body.root.opcode != "tuple":
        return None
    following = body.instructions.get(body.root.operands[element])
    while following is not None and following.opcode in ("copy", "bitcast"):
        following = body.instructions.get(following.operands[0])
    if following is None:
        return None
    elements = _elements(body)
    computation = body
    called = dict(following.called)
    inner = module.computations.get(called.get("calls", called.get("to_apply", "")))
    constants: dict[str, float | None] = {}
    if following.opcode in ("fusion", "call") and inner is not None:
        sources = {p.name: following.operands[p.index or 0] for p in inner.parameters}
        elements = {name: elements[source] for name, source in sources.items() if source in elements}
        constants = {name: _constant(body, source) for name, source in sources.items()}
        computation, following = inner, inner.root
    if following.opcode not in ("add", "subtract"):
        return None
    left, right = following.operands
    sign = 1.0 if following.opcode == "add" else -1.0
    if elements.get(left) == element:
        found = constants.get(right)
        found = _constant(computation, right) if found is None else found
        return None if found is None else sign * found
    if elements.get(right) == element and sign > 0:
        found = constants.get(left)
        return _constant(computation, left) if found is None else found
    return None
