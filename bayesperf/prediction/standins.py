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
    "functions": ("exp", "tanh", "log", "erf"),
    "matvec": ("stream_read", "matmul"),
    "stream_copy": ("stream_scale", "stream_add", "stream_triad"),
    "embedding": ("gather_random",),
    "ppermute": ("send_recv",),
    "send_recv": ("ppermute",),
}
"""Measured operations that run alike, most alike first."""

MOSTLY = 0.5
"""Share of function values (``exp``, ``tanh``, ...) in the flops from which an elementwise kernel runs like one."""


def stand_in(op: str, functions: float, measured: Collection[str]) -> str:
    """The operation to predict `op` as.

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
        return op
    kind = "functions" if op == "elementwise" and functions >= MOSTLY else op
    return next((other for other in STAND_INS.get(kind, ()) if other in measured), op)
