"""What is said of a wrong configuration, and how lists become jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayesperf.batch.config import read_config
from bayesperf.batch.plan import Job, jobs_of
from bayesperf.errors import InputError

Write = Callable[..., Path]
JOB = '[[job]]\ndata = "t.csv"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jobs = 3\n" + JOB, ["key jobs", "no such key", "there are: job,"]),
        (JOB + "drws = 3", ["[[job]] number 1, key drws", "no such key", "there are: draws"]),
        (JOB + "draws = 0", ["[[job]] number 1, key draws", "greater than or equal to 1", "not 0"]),
        (JOB + 'draws = "many"', ["key draws", "valid integer", "not 'many'"]),
        (JOB + "draws = true", ["key draws", "valid integer"]),
        (JOB + "tolerance = 1.0", ["key tolerance", "less than 1"]),
        ("[[job]]\nname = 'x'", ["[[job]] number 1, key data", "is missing"]),
        ("title = 'x'", ["key job", "is missing", "[[job]]"]),
        ("job = []", ["key job", "at least 1"]),
        (JOB + "target = []", ["number 1", "an empty list names no target"]),
        (JOB + "profile = 'x.nc'\ndraws = 5", ["number 1", "leave out draws"]),
        ("[defaults]\nmodel = 'x'\n" + JOB, ["[defaults], key model", "no such key"]),
        ("[data.lab]\ndataset = 'x'\ntables = ['t.csv']\n" + JOB, ["[data.lab]", "either tables"]),
        ("[data.lab]\nflaged = 'keep'\ndataset = 'x'\n" + JOB, ["[data.lab], key flaged", "there are: flagged"]),
        ("[data.lab]\nflagged = 'maybe'\ndataset = 'x'\n" + JOB, ["[data.lab], key flagged", "'keep' or 'drop'"]),
        (JOB + JOB + "[[job]]\ndata = 3", ["[[job]] number 3, key data", "list"]),
        ("x = ", ["cannot be read as TOML"]),
        (JOB + "model = 'rooflin'", ["key model", "there are: roofline"]),
        ("[[job]]\ndata = 'lab'\n[data.lap]\ntables = 't.csv'", ["key data", "'lab'", "there are: lap"]),
        ("[[job]]\ndata = 'missing.csv'", ["key data", "missing.csv", "no such file"]),
        ("[[job]]\ndata = 'none/*.csv'", ["none/*.csv", "no such file"]),
        ("[[job]]\ndata = 'lab'\n[data.lab]\ntables = 'gone.csv'", ["[data.lab], key tables", "gone.csv"]),
        ("[[job]]\ndata = 'lab'\n[data.lab]\ndataset = 'neusihgt'", ["key dataset", "there are: neusight"]),
        (JOB + "specs = 'gone.csv'", ["key specs", "gone.csv"]),
        (JOB + "heldout = 'gone.csv'", ["key heldout", "gone.csv"]),
        (JOB + "target = 'c'", ["key target", "'c'", "there are: a, b"]),
        (JOB + JOB, ["number 2", "one name", "number 1"]),
    ],
    ids=lambda v: v.replace("\n", " ") if isinstance(v, str) else "",
)
def test_a_wrong_configuration_is_told_its_file_key_and_remedy(write: Write, text: str, words: list[str]) -> None:
    path = write()
    path.write_text(text)
    with pytest.raises(InputError) as error:
        jobs_of(read_config(path), path.parent / "copies")
    assert str(error.value).startswith(str(path))
    for word in words:
        assert word in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.toml: no such file"):
        read_config(tmp_path / "gone.toml")


def expanded(path: Path, text: str, **options: Any) -> list[Job]:
    path.write_text(text)
    return jobs_of(read_config(path), path.parent / "copies", **options)


MATRIX = """
[defaults]
draws = 50
[data.lab]
tables = ["t.csv"]
heldout = "h.csv"
[[job]]
data = ["lab", "hosts/*"]
target = ["a", ["a", "b"]]
model = "roofline"
chains = 2
"""


@pytest.fixture
def config(write: Write) -> Path:
    path = write()
    (path.parent / "hosts").mkdir()
    (path.parent / "hosts" / "x.failures.parquet").touch()
    for name in ("h.csv", "hosts/x.csv", "hosts/y.csv"):
        (path.parent / name).write_text((path.parent / "t.csv").read_text())
    return path


def test_lists_stand_for_every_combination(config: Path) -> None:
    jobs = expanded(config, MATRIX)
    sources = ("lab", "hosts/x", "hosts/y")
    assert [job.name for job in jobs] == [f"{s} / roofline / {t}" for s in sources for t in ("a", "a+b")]
    assert [job.id for job in jobs][2] == "hosts-x-roofline-a"
    first = jobs[0].task
    assert first["targets"] == ["a"]
    assert first["sampling"] == {"draws": 50, "tune": 1000, "chains": 2, "attempts": 2}
    assert [file["name"] for file in first["heldout"]] == ["h.csv"]
    assert jobs[2].task["heldout"] == []
    assert len({job.key for job in jobs}) == len({job.task["seed"] for job in jobs}) == len(jobs)


def test_each_makes_a_job_of_every_target(config: Path) -> None:
    jobs = expanded(config, JOB + 'name = "alone"\ntarget = "each"')
    assert [(job.name, job.task["targets"]) for job in jobs] == [("alone / a", ["a"]), ("alone / b", ["b"])]


def test_each_of_no_target_is_no_success(config: Path) -> None:
    rows = "target,op,flops,bytes,time_s,role\na,matmul,1e9,1e6,1e-3,heldout\n"
    (config.parent / "h.csv").write_text(rows)
    text = '[[job]]\ndata = "h.csv"\ntarget = "each"\n'
    (job,) = expanded(config, text)
    assert job.problem == "no target has rows that can be used"
    (config.parent / "p.nc").touch()
    (job,) = expanded(config, text + 'profile = "p.nc"')
    assert (job.problem, job.task["targets"], job.name) == (None, ["a"], "h / p / a")


def test_seeds_follow_the_name_and_not_the_order(config: Path) -> None:
    two = '[[job]]\nname = "x"\ndata = "t.csv"\n[[job]]\nname = "y"\ndata = "t.csv"\n'
    one = '[[job]]\nname = "y"\ndata = "t.csv"\n'
    assert expanded(config, two)[1].task["seed"] == expanded(config, one)[0].task["seed"]
    assert expanded(config, one, seed=1)[0].task["seed"] != expanded(config, one)[0].task["seed"]
    assert expanded(config, one + "seed = 7", seed=1)[0].task["seed"] == 7


def test_the_key_depends_on_contents_and_settings_not_on_places(config: Path, tmp_path: Path) -> None:
    key = expanded(config, JOB)[0].key
    assert expanded(config, JOB)[0].key == key
    assert expanded(config, JOB + "draws = 1000")[0].key == key
    assert expanded(config, JOB + "draws = 999")[0].key != key
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "t.csv").write_text((tmp_path / "t.csv").read_text())
    assert expanded(elsewhere / "c.toml", JOB)[0].key == key
    with (tmp_path / "t.csv").open("a") as file:
        file.write("b,matmul,1e9,1e6,3e-3\n")
    assert expanded(config, JOB)[0].key != key


def test_a_broken_table_is_the_trouble_of_its_own_jobs(config: Path) -> None:
    (config.parent / "hosts" / "x.csv").write_text("target,op,flops,bytes,time_s\na,m,1,1,-1\n")
    jobs = expanded(config, '[[job]]\ndata = "hosts/*.csv"\ntarget = "each"')
    assert [job.problem is None for job in jobs] == [False, True, True]
    assert str(jobs[0].problem).startswith("hosts/x.csv, row 2, column time_s")


def test_a_data_set_becomes_a_plain_file_that_is_the_same_each_time(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayesperf.store import read_measurements, with_provenance

    rows = with_provenance(read_measurements(config.parent / "t.csv"), {"p": {"kind": "dataset"}})
    given: list[Any] = []

    def load(*args: Any, **options: Any) -> Any:
        given.append((args, options))
        return rows

    monkeypatch.setattr("bayesperf.datasets.load", load)
    text = '[data.mine]\ndataset = "own"\nflagged = "drop"\noptions = { suite = "quick" }\n'
    text += '[[job]]\ndata = "mine"\nspecs = "shipped"\n[[job]]\nname = "x"\ndata = "mine"\n'
    first, again = expanded(config, text), expanded(config, text)
    assert given == [(("own",), {"flagged": "drop", "suite": "quick"})] * 2, "loaded once for all its jobs"
    assert [job.problem for job in first] == [None, None]
    assert [job.key for job in first] == [job.key for job in again]
    assert {path.name for path in (config.parent / "copies").iterdir()} == {"mine.parquet", "spec-sheets.csv"}


def test_a_data_set_that_is_not_at_hand_is_the_trouble_of_its_own_jobs(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: Any, **__: Any) -> Any:
        raise InputError("neither at hand nor to be had")

    monkeypatch.setattr("bayesperf.datasets.load", offline)
    jobs = expanded(config, '[data.mine]\ndataset = "own"\n[[job]]\ndata = ["mine", "t.csv"]\ntarget = "each"\n')
    assert [job.problem for job in jobs] == ["data set own: neither at hand nor to be had", None, None]


def test_names_that_no_folder_may_have_get_one_all_the_same(config: Path) -> None:
    names = ["ждать", "待つ", "x" * 300, "../../etc", "."]
    jobs = expanded(config, "".join(f'[[job]]\nname = "{name}"\ndata = "t.csv"\n' for name in names))
    ids = [job.id for job in jobs]
    assert len(set(ids)) == len(names)
    assert all(id and "/" not in id and not id.startswith(".") and len(id) < 100 for id in ids)
