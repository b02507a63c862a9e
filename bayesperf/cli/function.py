"""The option ``--function``: a JAX function of the user's own code, and the arguments that it is looked at with."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from bayesperf.errors import InputError

__all__ = ["Function", "TripCount", "check_name", "load_function", "trip_counts_of"]

Function = Annotated[
    str | None,
    typer.Option(
        "--function",
        metavar="MODULE:CALLABLE",
        help="A callable without arguments that returns (fn, args) or (fn, args, kwargs), fn being a JAX function.",
    ),
]
TripCount = Annotated[
    list[str] | None,
    typer.Option(
        "--trip-count",
        metavar="[LOOP=]N",
        help="Iterations of loops whose end depends on data: of all, or of one by its HLO name. Repeatable.",
    ),
]

SHAPE = "name it as module:callable, where the callable takes no arguments and returns (fn, args)"


def check_name(name: str) -> tuple[str, str]:
    """Module and callable of a name.

    Raises
    ------
    InputError
        It is not of the form ``module:callable``.
    """
    module, colon, attribute = name.partition(":")
    if not (colon and attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise InputError(f"--function {name}: {SHAPE}")
    return module, attribute


def load_function(name: str) -> tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]:
    """Import a module, from the current folder too, and call its callable: a function, its arguments, its keywords.

    Raises
    ------
    InputError
        No such module or callable, it takes arguments, raises something or returns something else.
    """
    module_name, attribute = check_name(name)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _users(name, lambda: _imported(name, module_name))
    make = getattr(module, attribute, None)
    if not callable(make):
        raise InputError(f"--function {name}: module {module_name!r} has no callable {attribute!r}")
    if _needs_arguments(make):
        raise InputError(f"--function {name}: {attribute}() takes arguments; {SHAPE}")
    made = _users(name, make)
    if not (isinstance(made, tuple) and len(made) in (2, 3) and callable(made[0])):
        raise InputError(f"--function {name}: {attribute}() returns {type(made).__name__}; {SHAPE}")
    fn, args, kwargs = (*made, {}) if len(made) == 2 else made
    if not isinstance(args, tuple | list) or not isinstance(kwargs, Mapping):
        raise InputError(f"--function {name}: {attribute}() returns (fn, args), args being a tuple of arguments")
    return fn, args, kwargs


def _imported(name: str, module_name: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise InputError(f"--function {name}: no module named {module_name!r} here or among the installed") from error


def _users[T](name: str, call: Callable[[], T]) -> T:
    """Run the user's own code, which may raise anything: that is told as theirs, with its place."""
    try:
        return call()
    except InputError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"--function {name}: its own code raises {type(error).__name__}: {error} "
            f"({Path(last.filename).name}, line {last.lineno})"
        ) from error


def _needs_arguments(make: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False  # some callables do not tell
    return any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def trip_counts_of(given: Sequence[str] | None) -> Mapping[str, float] | float | None:
    """Trip counts of the option: a number for all loops, or one for each that is named.

    Raises
    ------
    InputError
        Neither a number nor a name with one, or both forms together.
    """
    if not given:
        return None
    pairs = [text.rpartition("=") for text in given]
    try:
        numbers = [float(number) for _, _, number in pairs]
    except ValueError:
        raise InputError(f"--trip-count {' '.join(given)}: write N, or LOOP=N") from None
    names = [name for name, _, _ in pairs]
    if len(given) == 1 and not names[0]:
        return numbers[0]
    if not all(names):
        raise InputError("--trip-count: one number for all loops, or LOOP=N for each; not both")
    return dict(zip(names, numbers, strict=True))
