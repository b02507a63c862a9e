"""Which libraries each verb loads: measuring hosts have none for inference, and nobody waits for what is not used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

INFERENCE = {"pymc", "pytensor", "arviz", "arviz_base", "arviz_stats", "arviz_plots", "nutpie", "numba", "xarray"}
TABLES = {"pandas", "pyarrow"}
HEAVY = INFERENCE | TABLES | {"jax", "jaxlib", "scipy", "matplotlib", "numpy", "jinja2"}

CODE = """
import json, sys
from bayesperf.cli import main
try:
    main(json.loads(sys.argv[1]))
except SystemExit as done:
    code = done.code or 0
roots = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([code, roots]), file=sys.stderr)
"""


def loaded_by(*args: str, cwd: Path) -> tuple[int, set[str]]:
    """Run a command in a fresh process; returns its exit code and the libraries it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(args)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    code, roots = json.loads(done.stderr.splitlines()[-1])
    return code, set(roots)


@pytest.mark.parametrize(
    "args",
    [("--help",), ("--version",), ("measure", "--help"), ("fit", "--help"), ("characterize", "--help")],
    ids=" ".join,
)
def test_help_loads_nothing(tmp_path: Path, args: tuple[str, ...]) -> None:
    code, roots = loaded_by(*args, cwd=tmp_path)
    assert code == 0
    assert not roots & HEAVY


@pytest.mark.parametrize("kind", ["probes", "models", "datasets", "formats", "suites"])
def test_list_reads_metadata_and_loads_nothing(tmp_path: Path, kind: str) -> None:
    code, roots = loaded_by("list", kind, "--json", cwd=tmp_path)
    assert code == 0
    assert not roots & HEAVY


def test_merge_loads_tables_only(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("target,op,flops,bytes,time_s\na,m,1,1,1\n")
    code, roots = loaded_by("merge", "a.csv", "--out", "b.parquet", cwd=tmp_path)
    assert code == 0
    assert not roots & (HEAVY - TABLES - {"numpy"})


@pytest.mark.parametrize("args", [("measure", "--suite", "tiny", "--dry-run"), ("doctor",)], ids=" ".join)
def test_measuring_loads_no_inference(tmp_path: Path, args: tuple[str, ...]) -> None:
    code, roots = loaded_by(*args, cwd=tmp_path)
    assert code == 0
    assert not roots & (INFERENCE | {"matplotlib", "jinja2"})


@pytest.mark.parametrize(
    "args",
    [
        ("fit", "missing.csv", "--out", "x.nc"),
        ("fit", "bad.csv", "--out", "x.nc"),
        ("fit", "bad.csv", "--model", "rooflin", "--out", "x.nc"),
        ("fit", "bad.csv", "--out", "x.txt"),
        ("characterize", "--model", "rooflin"),
        ("predict", "missing.nc", "bad.csv"),
        ("measure", "--suite", "nope", "--out", "x.parquet"),
        ("batch", "bad.csv"),
    ],
    ids=" ".join,
)
def test_bad_input_is_refused_before_anything_slow_is_loaded(tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "bad.csv").write_text("target,op,flops,bytes,time_s\na,m,1,1,-1\n")
    code, roots = loaded_by(*args, cwd=tmp_path)
    assert code == 2
    assert not roots & (INFERENCE | {"matplotlib", "jax"})
