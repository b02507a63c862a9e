"""What is installed from a wheel, in a fresh environment: an editable install hides what a wheel lacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".*", "*.egg-info", "build", "dist", "__pycache__", "bayesperf-*", "notebooks", "tests"
)


def run(command: Sequence[str | Path], cwd: Path) -> str:
    """Run a command in an environment that does not know this checkout; returns standard output."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: leftovers in the checkout's build folder must not mend an omission."""
    source = tmp_path_factory.mktemp("wheel") / "source"
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", source.parent, source], source)
    (built,) = source.parent.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Interpreter of a fresh environment with the wheel; the libraries it depends on are those of this one."""
    folder = tmp_path_factory.mktemp("fresh")
    run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], folder)
    interpreter = folder / "venv" / "bin" / "python"
    run([sys.executable, "-m", "pip", "--python", interpreter, "install", "-q", "--no-deps", wheel], folder)
    site = Path(run([interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    # A path named in a .pth file is searched, but its own .pth files (our editable install) are not followed.
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return interpreter


def test_the_wheel_installs_one_import_name(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"bayesperf"}


def test_the_wheel_holds_every_module_and_data_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    folders = PROJECT["tool"]["setuptools"]["package-dir"]
    expected = set()
    for package, folder in folders.items():
        for path in (ROOT / folder).rglob("*"):
            if (
                path.suffix in (".py", ".typed", ".toml", ".html", ".css", ".csv", ".j2")
                and "__pycache__" not in path.parts
            ):
                expected.add(f"{package.replace('.', '/')}/{path.relative_to(ROOT / folder).as_posix()}")
    assert expected - names == set()


def test_the_installed_package_is_the_wheels(python: Path, tmp_path: Path) -> None:
    where = Path(run([python, "-c", "import bayesperf; print(bayesperf.__file__)"], tmp_path).strip())
    assert python.parent.parent in where.parents


def test_every_package_can_be_imported(python: Path, tmp_path: Path) -> None:
    packages = PROJECT["tool"]["setuptools"]["packages"]
    run([python, "-W", "error", "-c", "; ".join(f"import {name}" for name in packages)], tmp_path)


@pytest.mark.parametrize("kind", ["probes", "models", "formats", "datasets"])
def test_every_entry_point_is_listed_and_loads(python: Path, tmp_path: Path, kind: str) -> None:
    declared = PROJECT["project"]["entry-points"][f"bayesperf.{kind}"]
    listed = json.loads(run([python.parent / "bayesperf", "list", kind, "--json"], tmp_path))
    assert {entry["name"]: entry["where"] for entry in listed} == declared
    code = f"from bayesperf import plugins; print(*sorted(plugins.load_all({kind.removesuffix('s')!r})))"
    assert run([python, "-W", "error", "-c", code], tmp_path).split() == sorted(declared)


def test_the_suites_are_installed(python: Path, tmp_path: Path) -> None:
    listed = json.loads(run([python.parent / "bayesperf", "list", "suites", "--json"], tmp_path))
    assert {entry["name"] for entry in listed} == {path.stem for path in (ROOT / "probes" / "suites").glob("*.toml")}


def test_the_command_and_the_module_are_one(python: Path, tmp_path: Path) -> None:
    version = PROJECT["project"]["version"]
    assert run([python.parent / "bayesperf", "--version"], tmp_path) == f"bayesperf {version}\n"
    assert run([python, "-m", "bayesperf", "--version"], tmp_path) == f"bayesperf {version}\n"
