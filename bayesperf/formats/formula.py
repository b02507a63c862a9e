"""Arithmetic on columns, written as text. Parsed, and only arithmetic is accepted; never executed."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bayesperf.errors import InputError

__all__ = ["evaluate"]

MAX_LENGTH, MAX_EXPONENT = 1000, 8.0

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Pow: np.power,
}


def _many(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *values: functools.reduce(function, values)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "min": _many(np.minimum),
    "max": _many(np.maximum),
}


def evaluate(formula: str, columns: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Value of a formula, one per row.

    Parameters
    ----------
    formula
        Arithmetic over the names of `columns`.
    columns
        Float arrays of shape (n_rows,).
    name
        Column that is being built, for messages.

    Returns
    -------
    Array of shape (n_rows,); NaN where the formula has no value, such as a division by zero.

    Raises
    ------
    InputError
        The formula holds anything but arithmetic, or a name that is no column.
    """
    if len(formula) > MAX_LENGTH:
        raise InputError(f"mapping: {name!r}: a formula of more than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"mapping: {name!r}: {formula!r} is not a formula: {error}") from None
    length = len(next(iter(columns.values()))) if columns else 1
    with np.errstate(all="ignore"):
        try:
            value = np.broadcast_to(np.asarray(_node(tree.body, columns, name), dtype="float64"), (length,))
        except RecursionError:
            raise InputError(f"mapping: {name!r}: the formula is nested too deeply") from None
    return np.where(np.isfinite(value), value, np.nan)


def _node(node: ast.expr, columns: Mapping[str, np.ndarray], name: str) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        if abs(node.value) > 1e300:
            raise InputError(f"mapping: {name!r}: the number {str(node.value)[:20]} is too large")
        return float(node.value)
    if isinstance(node, ast.Name):
        if node.id not in columns:
            raise InputError(f"mapping: {name!r}: no numeric column {node.id!r} yet; there are: {', '.join(columns)}")
        return columns[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        if isinstance(node.op, ast.Pow):
            exponent = node.right
            if not (isinstance(exponent, ast.Constant) and isinstance(exponent.value, int | float)):
                raise InputError(f"mapping: {name!r}: an exponent must be a number")
            if abs(exponent.value) > MAX_EXPONENT:
                raise InputError(f"mapping: {name!r}: an exponent above {MAX_EXPONENT:g}")
        return _OPERATORS[type(node.op)](_node(node.left, columns, name), _node(node.right, columns, name))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _node(node.operand, columns, name)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        wanted = 1 if node.func.id in ("ceil", "floor") else None
        if node.keywords or not node.args or (wanted and len(node.args) != wanted):
            raise InputError(f"mapping: {name!r}: {node.func.id} takes plain arguments")
        return _FUNCTIONS[node.func.id](*(_node(argument, columns, name) for argument in node.args))
    allowed = "numbers, columns, + - * / // **, min, max, ceil, floor"
    raise InputError(f"mapping: {name!r}: only arithmetic is evaluated ({allowed}), not {ast.unparse(node)[:60]!r}")
