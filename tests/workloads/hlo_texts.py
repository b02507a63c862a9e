"""Optimised programs as text, and what the tests ask of their tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["loop", "only", "program", "value"]


def program(entry: str, *others: str, header: str = "HloModule m, is_scheduled=true") -> str:
    """A module from the lines of its entry and its other computations."""
    lines = "\n".join(f"  {line.strip()}" for line in entry.strip().splitlines())
    return "\n".join([header, *others, "ENTRY %main () -> f32[] {", lines, "}"])


def only(table: pd.DataFrame) -> dict[Any, Any]:
    """The one row of a table."""
    assert len(table) == 1, table
    return table.to_dict(orient="records")[0]


def value(table: pd.DataFrame, instruction: str, column: str) -> float:
    """A number of the row of an instruction."""
    (found,) = table.loc[table["instruction"] == instruction, column]
    return float(found)


BODY = """
%body (t: (s32[], f32[16,64], f32[12,64,64])) -> (s32[], f32[16,64], f32[12,64,64]) {
  %t = (s32[], f32[16,64]{1,0}, f32[12,64,64]{2,1,0}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %h = f32[16,64]{1,0} get-tuple-element(%t), index=1
  %w = f32[12,64,64]{2,1,0} get-tuple-element(%t), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %layer = f32[64,64]{1,0} fusion(%w, %i), kind=kLoop, calls=%take
  %dot = f32[16,64]{1,0} dot(%h, %layer), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %out = (s32[], f32[16,64]{1,0}, f32[12,64,64]{2,1,0}) tuple(%next, %dot, %w)
}
%take (p: f32[12,64,64], i: s32[]) -> f32[64,64] {
  %p = f32[12,64,64]{2,1,0} parameter(0)
  %i = s32[] parameter(1)
  %zero = s32[] constant(0)
  %s = f32[1,64,64]{2,1,0} dynamic-slice(%p, %i, %zero, %zero), dynamic_slice_sizes={1,64,64}
  ROOT %b = f32[64,64]{1,0} bitcast(%s)
}
%condition (t: (s32[], f32[16,64], f32[12,64,64])) -> pred[] {
  %t = (s32[], f32[16,64]{1,0}, f32[12,64,64]{2,1,0}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %n = s32[] constant(12)
  ROOT %c = pred[] compare(%i, %n), direction=LT
}
"""


def loop(config: str = "", start: str = "%zero") -> str:
    return program(
        f"""
        %x = f32[16,64]{{1,0}} parameter(0)
        %ws = f32[12,64,64]{{2,1,0}} parameter(1)
        %n0 = s32[] parameter(2)
        %zero = s32[] constant(0)
        %init = (s32[], f32[16,64]{{1,0}}, f32[12,64,64]{{2,1,0}}) tuple({start}, %x, %ws)
        %while.1 = (s32[], f32[16,64], f32[12,64,64]) while(%init), condition=%condition, body=%body{config}
        ROOT %r = f32[16,64]{{1,0}} get-tuple-element(%while.1), index=1
        """,
        BODY,
    )
