"""Collectives of a program that spans several devices: which one, how many ranks, how many bytes.

Names and sizes are those of the probe `collectives`, which are those of nccl-tests: ``message_bytes`` is the larger of
one rank's send and receive buffers, compulsory bytes are the traffic of one rank's memory, FLOP are none. A pair of
``start`` and ``done`` is one collective; several arrays in one are one message.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayesperf.collectives import traffic
from bayesperf.hlo import Computation, Instruction, leaves
from bayesperf.workloads.attributes import group_size

__all__ = ["OPS", "Message", "message_of"]

OPS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "ragged-all-to-all": "all_to_all",
    "collective-permute": "ppermute",
    "collective-broadcast": "broadcast",
    "send": "send_recv",
    "recv": "send_recv",
}
"""The table's operation by HLO opcode, without ``-start``."""

_LIKE = {"ppermute": "send_recv"}
"""Operations whose traffic is stated under another name."""


@dataclass(frozen=True, slots=True)
class Message:
    """One collective.

    Parameters
    ----------
    op
        Operation of the table.
    message_bytes
        Larger of a rank's send and receive buffers, byte.
    bytes
        Compulsory traffic of one rank's memory, byte.
    ranks
        Devices in one group.
    kind
        HLO element type.
    elements
        Elements that one rank receives.
    """

    op: str
    message_bytes: float
    bytes: float
    ranks: int
    kind: str
    elements: float


def message_of(computation: Computation, instruction: Instruction, devices: int) -> Message | None:
    """The collective that an instruction is or starts, or None.

    Parameters
    ----------
    computation
        Where it stands.
    instruction
        Any instruction.
    devices
        Devices that run the program together.
    """
    op = OPS.get(instruction.opcode.removesuffix("-start"))
    if op is None:
        return None
    known = computation.instructions
    sent = [leaf for name in instruction.operands if name in known for leaf in leaves(known[name].shape)]
    if op in ("ppermute", "all_reduce"):
        # Others may return flags or what they were given beside what they received.
        received = sent[:1] if op == "ppermute" else sent
    elif instruction.opcode == "recv":
        received = leaves(instruction.shape)[:1]
    elif instruction.opcode == "send":
        received = sent[:1]
    else:
        results = leaves(instruction.shape)
        received = results[len(sent) :] if instruction.opcode.endswith("-start") else results
        if instruction.opcode == "ragged-all-to-all":
            sent = sent[:1]
    out = sum(leaf.bytes for leaf in received)
    size = max(sum(leaf.bytes for leaf in sent[: len(received)] or sent), out)
    ranks = 2 if op == "send_recv" else group_size(instruction, devices)
    kind = (received or sent)[0].kind if received or sent else ""
    moved = traffic(_LIKE.get(op, op), size, ranks)
    return Message(op, size, moved, ranks, kind, sum(leaf.elements for leaf in received))
