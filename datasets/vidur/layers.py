"""Shapes, FLOP and bytes of the layers Vidur profiles (vidur/profiling/mlp/mlp_impl.py), float16.

T tokens, E hidden width, F expanded width, W tensor-parallel workers, D = E / heads. Biases are not counted.

================================  ==========================================================================
layer                             work of one worker
================================  ==========================================================================
``emb``                           T rows of E gathered
``input_layernorm``,              norm of T x E: RMS norm where the MLP is gated, layer norm otherwise
``post_attention_layernorm``
``attn_pre_proj``                 (T, E) x (E, (heads + 2 kv_heads) D / W)
``attn_rope``                     T x (heads + kv_heads) / W x D, in place
``attn_post_proj``                (T, E / W) x (E / W, E)
``mlp_up_proj``                   (T, E) x (E, F / W), twice as wide where gated
``mlp_act``                       T x F / W from two operands (SiLU times gate) where gated, one (GELU) otherwise
``mlp_down_proj``                 (T, F / W) x (F / W, E)
``add``                           T x E from two operands; twice where there is no norm after attention
================================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from bayesperf.dataset import SourceFile
from bayesperf.datasets import formulas
from bayesperf.datasets.formulas import Array, Work
from bayesperf.datasets.tables import numbers

__all__ = ["FOOTPRINT", "LAYERS", "layer"]

ITEM = 2.0
SILU_FLOPS, GELU_FLOPS = 5.0, 8.0

Shape = dict[str, Array]


class _Sizes:
    """Sizes of each profiled row, as float64 arrays."""

    def __init__(self, raw: pd.DataFrame, file: SourceFile):
        def number(name: str) -> Array:
            return numbers(raw, name, file)

        self.tokens, self.width = number("num_tokens"), number("n_embd")
        self.workers = number("num_tensor_parallel_workers")
        self.heads, self.kv_heads = number("n_head"), number("n_kv_head")
        self.expanded = number("n_expanded_embd") / self.workers
        self.head_dim = self.width / self.heads
        self.gated = raw["use_gated_mlp"].astype(str).str.lower().eq("true").to_numpy()


def _matmul(m: Array, n: Array, k: Array) -> tuple[Shape, Work]:
    return {"m": m, "n": n, "k": k}, formulas.matmul(m, n, k, itemsize=ITEM)


def _emb(s: _Sizes) -> tuple[Shape, Work]:
    return {"rows": s.tokens, "cols": s.width}, formulas.embedding(s.tokens, s.width, itemsize=ITEM)


def _norm(s: _Sizes) -> tuple[Shape, Work]:
    rms = formulas.layer_norm(s.tokens, s.width, itemsize=ITEM, parameters=1, statistics=0)
    full = formulas.layer_norm(s.tokens, s.width, itemsize=ITEM, parameters=2, statistics=2)
    work = Work(*(np.where(s.gated, a, b) for a, b in zip(rms, full, strict=True)))
    return {"rows": s.tokens, "cols": s.width}, work


def _rope(s: _Sizes) -> tuple[Shape, Work]:
    heads = (s.heads + s.kv_heads) / s.workers
    shape = {"rows": s.tokens, "cols": heads * s.head_dim}
    return shape, formulas.rope(s.tokens, heads, s.head_dim, itemsize=ITEM)


def _act(s: _Sizes) -> tuple[Shape, Work]:
    operands, flops = np.where(s.gated, 2.0, 1.0), np.where(s.gated, SILU_FLOPS, GELU_FLOPS)
    work = formulas.elementwise(s.tokens * s.expanded, operands=operands, itemsize=ITEM, flops=flops)
    return {"rows": s.tokens, "cols": s.expanded}, work


def _add(s: _Sizes) -> tuple[Shape, Work]:
    one = formulas.elementwise(s.tokens * s.width, operands=2.0, itemsize=ITEM)
    times = np.where(s.gated, 1.0, 2.0)
    return {"rows": s.tokens, "cols": s.width}, Work(one.flops * times, one.bytes * times, one.parallelism)


# layer -> (operation, shape and work)
LAYERS: dict[str, tuple[str, Callable[[_Sizes], tuple[Shape, Work]]]] = {
    "emb": ("embedding", _emb),
    "input_layernorm": ("norm", _norm),
    "post_attention_layernorm": ("norm", _norm),
    "attn_pre_proj": (
        "linear",
        lambda s: _matmul(s.tokens, (s.heads + 2.0 * s.kv_heads) * s.head_dim / s.workers, s.width),
    ),
    "attn_rope": ("rope", _rope),
    "attn_post_proj": ("linear", lambda s: _matmul(s.tokens, s.width, s.width / s.workers)),
    "mlp_up_proj": ("linear", lambda s: _matmul(s.tokens, s.expanded * np.where(s.gated, 2.0, 1.0), s.width)),
    "mlp_act": ("elementwise", _act),
    "mlp_down_proj": ("linear", lambda s: _matmul(s.tokens, s.width, s.expanded)),
    "add": ("elementwise", _add),
}


FOOTPRINT = {"attn_rope": 0.5}
"""Footprint over traffic: the rotary embedding is in place, what it reads it writes again."""


def layer(raw: pd.DataFrame, name: str, file: SourceFile) -> tuple[list[str] | str, Shape, Work]:
    """Operation, shape columns and work of one layer, for every profiled row."""
    sizes = _Sizes(raw, file)
    op, formula = LAYERS[name]
    shape, work = formula(sizes)
    if op == "norm":
        return np.where(sizes.gated, "rms_norm", "layer_norm").tolist(), shape, work
    return op, shape, work
