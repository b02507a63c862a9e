"""Which measured operation predicts a kernel whose own family was not measured.

Compilers make all kernels of one kind with one generator: a fusion of arithmetic on arrays runs like the probes that
are such fusions, a copy like a copy. Where a target has measurements of the family itself, they are used; else the
first measured one of its list; else the model's width for an operation that was never seen. Only kinds that are
generated alike are listed: a softmax is no stream.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["STAND_INS", "stand_in"]

STAND_INS: dict[str, tuple[str, ...]] = {
    "elementwise": ("fma_chain", "stream_triad", "stream_add", "stream_scale"),
    "matvec": ("stream_read", "matmul"),
    "stream_copy": ("stream_scale", "stream_add", "stream_triad"),
    "embedding": ("gather_random",),
    "ppermute": ("send_recv",),
    "send_recv": ("ppermute",),
}
"""Measured operations that run alike, most alike first."""

FUNCTIONS = ("exp", "tanh", "log", "erf")
"""Measured functions that predict elementwise kernels made of such, the first that there is."""

DECIDE = 0.1
"""Share of function values (``exp``, ``tanh``, ...) in the flops from which they, and not the arithmetic beside them,
decide how an elementwise kernel runs; assumed: a function takes some ten times as long as a sum, or more."""

MOSTLY = 0.5
"""Share from which such a kernel is not predicted as arithmetic where no function was measured."""


def stand_in(op: str, functions: float, measured: Collection[str]) -> tuple[str, bool]:
    """The operation to predict `op` as, and whether only its function values count as its flops.

    Parameters
    ----------
    op
        Operation family of a kernel.
    functions
        Share of function values in its flops.
    measured
        Operations measured on the target.
    """
    if op in measured:
        return op, False
    if op == "elementwise" and functions >= DECIDE:
        function = next((other for other in FUNCTIONS if other in measured), None)
        if function is not None:
            return function, True
        if functions >= MOSTLY:
            return op, False
    return next((other for other in STAND_INS.get(op, ()) if other in measured), op), False
