"""The whole river on this machine, in small: characterize, then every verb on what it left."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayesperf as bp

Cli = Callable[..., Any]

SUITE = """
description = "a few points of every regime"
processes = 2
scopes = ["all"]
[budget]
point_s = 0.05
longest_share = 0.02
target_relative_error = 0.05
least_rounds = 5
retries = 10
too_slow_s = 0.5
[[probe]]
name = "matmul"
sweep = { dtypes = ["float32"], shapes = [128, 256, 384] }
[[probe]]
name = "stream"
sweep = { ops = ["stream_triad"], working_set_bytes = [24e3, 400e3, 4e6, 16e6] }
[[probe]]
name = "dispatch"
sweep = { ops = ["dispatch"], allocation_bytes = [64e3] }
[[probe]]
name = "softmax"
sweep = { dtypes = ["float32"], shapes = [[64, 512], [512, 1024]] }
[[probe]]
name = "layer_norm"
sweep = { dtypes = ["float32"], shapes = [[64, 512], [512, 1024]] }
"""


@dataclass(frozen=True)
class Journey:
    """What `characterize` left."""

    folder: Path
    code: int
    document: dict[str, Any]
    err: str


def bayesperf(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "bayesperf", *map(str, args)]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, "CI": "true"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Journey:
    """One characterization; a busy machine may fail the gate, which leaves the same files."""
    folder = tmp_path_factory.mktemp("journey")
    (folder / "mini.toml").write_text(SUITE)
    # Few draws: what the gate says of them does not matter here.
    options = ("--suite", "mini.toml", "--out", "out", "--draws", "100", "--chains", "2", "--json")
    done = bayesperf("characterize", *options, cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return Journey(folder, done.returncode, json.loads(done.stdout), done.stderr)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a profile fitted to simulated measurements: no noise of this machine in it."""
    folder = tmp_path_factory.mktemp("fitted")
    random = np.random.default_rng(11)
    rows: list[dict[str, Any]] = []
    for repeat in range(2):
        for n in (128, 256, 512, 1024, 2048):
            rows.append({"op": "matmul", "flops": 2.0 * n**3, "bytes": 12.0 * n * n, "process": str(repeat)})
        for size in np.geomspace(1e5, 4e8, 8):
            rows.append({"op": "stream_triad", "flops": size / 6, "bytes": size, "process": str(repeat)})
        for n in (256, 512, 1024, 2048):
            work = {"op": "softmax", "flops": 5.0 * n * n, "bytes": 8.0 * n * n, "process": str(repeat)}
            rows.append(work | {"role": "heldout"})
    table = pd.DataFrame(rows).assign(target="sim", dtype="float32", campaign="mon", statistic="slope")
    table["working_set_bytes"] = table["bytes"]
    memory = table["bytes"] / (2e10 + 8e10 / (1 + table["bytes"] / 4e6))
    clean = np.maximum(table["flops"] / 2e11, memory)
    table["time_s"] = clean * np.exp(0.02 * random.standard_normal(len(table)))
    table["time_se_s"] = 0.005 * table["time_s"]
    table.to_csv(folder / "sim.csv", index=False)
    done = bayesperf("fit", "sim.csv", "--out", "profile.nc", "--seed", "2", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_leaves_three_files(journey: Journey) -> None:
    names = {"measurements.parquet", "profile.nc", "report.html"}
    left = {p.name for p in (journey.folder / "out").iterdir()}
    assert names <= left <= names | {"measurements.failures.parquet"}
    assert [Path(f).name for f in journey.document["files"]] == ["measurements.parquet", "profile.nc", "report.html"]


def test_it_logs_its_progress_where_there_is_no_terminal(journey: Journey) -> None:
    assert "measuring" in journey.err
    assert "\x1b[" not in journey.err
    assert "Traceback" not in journey.err


def test_the_table_has_both_roles_samples_and_provenance(journey: Journey) -> None:
    table = bp.read_measurements(journey.folder / "out" / "measurements.parquet")
    assert {"fit", "heldout"} == set(table["role"])
    assert all(len(samples) >= 3 for samples in table["samples_s"])
    assert set(table["provenance_id"]) <= set(table.attrs["provenance"])


def test_the_profile_is_a_tree_that_names_its_evidence(journey: Journey) -> None:
    table = bp.read_measurements(journey.folder / "out" / "measurements.parquet")
    with xr.open_datatree(journey.folder / "out" / "profile.nc") as tree:
        assert {"posterior", "sample_stats", "prior", "observed_data", "log_likelihood"} <= set(tree.children)
        ids = json.loads(tree.attrs["evidence_ids"])
    assert set(ids) <= set(table.loc[table["role"] == "fit", "measurement_id"])


def test_the_report_names_every_measurement_and_loads_nothing(journey: Journey) -> None:
    page = (journey.folder / "out" / "report.html").read_text()
    table = bp.read_measurements(journey.folder / "out" / "measurements.parquet")
    assert all(identifier in page for identifier in table["measurement_id"])
    assert "http://" not in page
    assert "https://" not in page
    assert page.index("Where it may be believed") < page.index('id="parameters"')


def test_the_document_says_what_was_learned(journey: Journey) -> None:
    assert journey.document["exit_code"] == journey.code
    assert journey.document["converged"] == (journey.code == 0)
    assert {"median", "lower", "upper", "contraction", "learned", "evidence"} <= set(journey.document["parameters"][0])


def test_the_same_command_measures_nothing_twice(journey: Journey) -> None:
    before = (journey.folder / "out" / "measurements.parquet").read_bytes()
    done = bayesperf("measure", "--suite", "mini.toml", "--out", "out/measurements.parquet", cwd=journey.folder)
    assert done.returncode == 0
    assert "complete already" in done.stderr
    assert (journey.folder / "out" / "measurements.parquet").read_bytes() == before


def test_another_suite_does_not_overwrite(journey: Journey) -> None:
    done = bayesperf("characterize", "--suite", "tiny", "--out", "out", cwd=journey.folder)
    assert done.returncode == 2
    assert "holds another plan" in done.stderr


WORKLOADS = (
    "note,op,dtype,flops,bytes,working_set_bytes\nx,matmul,float32,3.3e7,1e6,1e6\ny,softmax,float32,1e6,2e6,2e6\n"
)


@pytest.fixture
def here(cli: Cli, fitted: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line, in the folder of the simulated profile and in this process: its libraries load once."""
    monkeypatch.chdir(fitted)
    return cli


def test_predict(here: Cli, fitted: Path) -> None:
    (fitted / "w.csv").write_text(WORKLOADS)
    done = here("predict", "profile.nc", "w.csv", "--out", "p.csv")
    assert done.code == 0, done.err
    predicted = pd.read_csv(fitted / "p.csv")
    assert list(predicted.columns) == [
        "note", "op", "dtype", "flops", "bytes", "working_set_bytes", "median_s", "lower_s", "upper_s", "interval",
        "p_compute", "p_memory", "p_communication", "p_overhead", "p_interference", "supported", "support_distance",
        "unsupported_features",
    ]  # fmt: skip
    assert (predicted["lower_s"] < predicted["median_s"]).all()
    assert (predicted["median_s"] < predicted["upper_s"]).all()
    limits = predicted[[c for c in predicted.columns if str(c).startswith("p_")]].sum(axis=1)
    assert limits.tolist() == pytest.approx([1.0, 1.0])


def test_predict_prints_csv_into_a_pipe_and_json_on_demand(here: Cli, fitted: Path) -> None:
    (fitted / "w.csv").write_text(WORKLOADS)
    piped = here("predict", "profile.nc", "w.csv", "--seed", "3")
    again = here("predict", "profile.nc", "w.csv", "--seed", "3", "--json")
    assert piped.out.startswith("note,op,dtype,flops")
    first = pd.read_csv(io.StringIO(piped.out))
    assert [row["median_s"] for row in json.loads(again.out)] == pytest.approx(first["median_s"].tolist())


STEP = """
import jax
import jax.numpy as jnp


def step():
    x = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    return (lambda x, w: jnp.tanh(x @ w)), (x, x)


def loop():
    x = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    until = lambda x: jax.lax.while_loop(lambda x: x[0, 0] < 1, lambda x: x @ x, x)
    return until, (x,), {}


def nothing():
    return None
"""


def test_predict_of_a_function(here: Cli, fitted: Path) -> None:
    (fitted / "program_of_mine.py").write_text(STEP)
    done = here("predict", "profile.nc", "--function", "program_of_mine:step", "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    program, kernels = document["program"], document["kernels"]
    assert program["flops"] == 2 * 256**3 + 256**2
    assert program["lower_s"] < program["median_s"] < program["upper_s"]
    assert [kernel["op"] for kernel in kernels] == ["matmul", "elementwise", "dispatch"]
    assert kernels[1]["predicted_as"] == "elementwise"
    assert sum(kernel["share"] for kernel in kernels) == pytest.approx(1.0)
    piped = here("predict", "profile.nc", "--function", "program_of_mine:step", "--launch", "none", "--out", "k.csv")
    assert "2 kernels" in piped.out
    assert pd.read_csv(fitted / "k.csv")["instruction"].tolist() == [k["instruction"] for k in kernels[:2]]


def test_explain_a_function(here: Cli, fitted: Path) -> None:
    (fitted / "program_of_mine.py").write_text(STEP)
    args = ("explain", "profile.nc", "--function", "program_of_mine:step", "--runs", "3")
    done = here(*args, "--json", "--out", "e.csv")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    seen = {kernel["instruction"]: kernel for kernel in document["kernels"]}
    assert seen["launch"]["measured_s"] > 0
    assert [kernel["executions"] for kernel in seen.values()] == [1.0] * 3
    assert document["program"]["unattributed_share"] < 0.05
    assert pd.read_csv(fitted / "e.csv")["held_back"].notna().all()
    refused = here("explain", "profile.nc")
    assert refused.code == 2
    assert "--function module:callable" in refused.err


def test_a_loop_without_a_known_end_needs_its_trip_count(here: Cli, fitted: Path) -> None:
    (fitted / "program_of_mine.py").write_text(STEP)
    refused = here("predict", "profile.nc", "--function", "program_of_mine:loop")
    assert refused.code == 2
    assert "trip_counts" in refused.err
    told = here("predict", "profile.nc", "--function", "program_of_mine:loop", "--trip-count", "7", "--json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["program"]["flops"] >= 7 * 2 * 256**3


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--function", "program_of_mine"), "module:callable"),
        (("--function", "no_such_module:step"), "no module named"),
        (("--function", "program_of_mine:other"), "no callable 'other'"),
        (("--function", "program_of_mine:nothing"), "returns NoneType"),
        (("--function", "program_of_mine:step", "--launch", "never"), "wait, queued, none"),
        (("--function", "program_of_mine:step", "--trip-count", "x"), "LOOP=N"),
        (("w.csv", "--function", "program_of_mine:step"), "one of the two"),
        ((), "one of the two"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_a_function_that_cannot_be_had_is_refused(here: Cli, fitted: Path, args: tuple[str, ...], problem: str) -> None:
    (fitted / "program_of_mine.py").write_text(STEP)
    (fitted / "w.csv").write_text(WORKLOADS)
    done = here("predict", "profile.nc", *args)
    assert done.code == 2
    assert problem in done.err


def test_a_wider_interval_is_wider(here: Cli, fitted: Path) -> None:
    (fitted / "w.csv").write_text(WORKLOADS)
    widths = []
    for probability in ("0.5", "0.9"):
        done = here("predict", "profile.nc", "w.csv", "--interval", probability, "--json")
        row = json.loads(done.out)[0]
        widths.append(row["upper_s"] / row["lower_s"])
    assert widths[0] < widths[1]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("predict", "profile.nc", "w.csv", "--target", "nowhere"), "nowhere"),
        (("predict", "profile.nc", "w.csv", "--campaign", "nowhen"), "nowhen"),
        (("predict", "profile.nc", "bad.csv"), "bad.csv, row 2, column flops"),
        (("predict", "w.csv", "w.csv"), "w.csv"),
        (("report", "w.csv"), "w.csv"),
        (("validate", "profile.nc", "w.csv"), "required column(s) missing: target, time_s"),
        (("fit", "sim.csv", "--model", "rooflin", "--out", "x.nc"), "there are: roofline"),
        (("fit", "sim.csv", "--out", "x.txt"), "*.nc"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_bad_input_exits_2_in_one_line(here: Cli, fitted: Path, args: tuple[str, ...], problem: str) -> None:
    (fitted / "w.csv").write_text(WORKLOADS)
    (fitted / "bad.csv").write_text("op,flops,bytes\nmatmul,-1,1\n")
    done = here(*args)
    assert done.code == 2, done.err
    assert problem in done.err
    assert [line for line in done.err.splitlines() if line.startswith("error: ")] == [done.err.splitlines()[-1]]
    assert not (fitted / "x.nc").exists()


def test_validate_writes_verdicts(here: Cli, fitted: Path) -> None:
    done = here("validate", "profile.nc", "sim.csv", "--out", "v")
    assert done.code in (0, 3), done.err
    verdicts = pd.read_csv(fitted / "v" / "verdicts.csv")
    assert set(verdicts["verdict"]) <= {"transfers", "fails", "undecided"}
    assert (done.code == 3) == (verdicts["verdict"] == "fails").any()
    assert (fitted / "v" / "validation.html").read_text().startswith("<!DOCTYPE html>")


def test_report_is_written_beside_the_profile(here: Cli, fitted: Path) -> None:
    done = here("report", "profile.nc")
    assert done.code == 0, done.err
    page = (fitted / "profile.html").read_text()
    assert "Nothing is known of how far this profile transfers" in page
    (fitted / "profile.html").unlink()


def test_measurements_can_be_repeated_as_a_campaign_of_their_own(journey: Journey) -> None:
    done = bayesperf("measure", "--repeat", "out/measurements.parquet", "--dry-run", "--json", cwd=journey.folder)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["points"] == len(plan["plan"]) > 0
