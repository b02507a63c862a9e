from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesperf.cli.output import Output, human, plain, visible


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (np.float64(1.5), 1.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([1.0, np.nan]), [1.0, None]),
        (pd.NA, None),
        (pd.NaT, None),
        (Path("a/b"), "a/b"),
        ({"a": (1, {2})}, {"a": [1, [2]]}),
        (pd.DataFrame({"a": [1, None], "b": ["x", None]}), [{"a": 1.0, "b": "x"}, {"a": None, "b": None}]),
        ("ü", "ü"),
    ],
    ids=repr,
)
def test_documents_hold_only_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (float("nan"), "-"), (1234.5678, "1235"), (True, "yes"), ("[b]x", "[b]x"), (3, "3")],
)
def test_cells(value: Any, text: str) -> None:
    assert human(value) == text


def test_a_pipe_gets_whole_cells_and_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500 + " [bold]y[/bold]"
    Output().table(["name"], [(long,)])
    assert long in capsys.readouterr().out


def test_json_leaves_standard_output_to_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(json=True)
    out.say("words")
    out.table(["a"], [(1,)])
    out.note("a remark")
    out.document({"a": float("nan")})
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"a": None}
    assert printed.err == "a remark\n"


def test_quiet_prints_only_what_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(quiet=True)
    out.say("words")
    out.table(["a"], [(1,)])
    out.note("a remark")
    out.document({"a": 1})
    assert capsys.readouterr() == ("", "")


def test_names_from_files_do_not_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name = "cpu\x1b]0;title\x07\x9b31m ü\tx\ny"
    assert visible(name) == "cpu\\x1b]0;title\\x07\\x9b31m ü\tx\ny"
    output = Output()
    output.say(name)
    output.note(name)
    output.table(["target"], [[name]])
    printed = capsys.readouterr()
    assert not {"\x1b", "\x07", "\x9b"} & {*printed.out, *printed.err}
