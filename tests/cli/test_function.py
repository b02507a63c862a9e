"""The user's own code behind ``--function``: whatever it does, the message names what to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayesperf.cli.function import load_function
from bayesperf.errors import InputError


@pytest.mark.parametrize(
    ("module", "text", "problem"),
    [
        ("with_arguments", "def step(x):\n    return x, ()\n", r"step\(\) takes arguments; .* takes no arguments"),
        ("with_defaults", "def step(n=3, *rest, **more):\n    return n\n", r"step\(\) returns int"),
        ("that_raises", "def step():\n    raise KeyError('w')\n", r"raises KeyError: 'w' \(that_raises.py, line 2\)"),
        (
            "that_lacks",
            "import no_such_thing\n",
            r"raises ModuleNotFoundError: .*no_such_thing.* \(that_lacks.py",
        ),
        ("with_a_slip", "def step(:\n", r"raises SyntaxError"),
    ],
)
def test_what_is_wrong_with_ones_own_code_is_told_as_that(
    module: str, text: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=problem):
        load_function(f"{module}:step")


def test_a_callable_with_defaults_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "that_works.py").write_text("def step(n=3):\n    return abs, (n,)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_function("that_works:step") == (abs, (3,), {})
