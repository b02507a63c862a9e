"""The house rules that a reader relies on: light imports, arrows one way, small files, guarded rooms."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import bayesperf

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "bayesperf"
MAPPED = ("probes", "models", "datasets")

INFERENCE = ("pymc", "pytensor", "arviz", "arviz_base", "arviz_stats", "nutpie", "numba")
"""What a measuring host does not have."""

LAYERS = (
    ("errors",),
    ("columns", "corunners", "plugins", "hlo"),
    ("schema",),
    ("store",),
    ("specs", "probe", "collectives", "model", "dataset", "configurations"),
    ("workloads",),
    ("measure",),
    ("quality",),
    ("formats",),
    ("inference",),
    ("prediction",),
    ("validation",),
    ("programs",),
    ("checks",),
    ("report", "verification"),
    ("characterize", "batch"),
    ("cli", "__main__"),
)
"""The engine from its ground up: a module imports from its own layer or from layers above it in this list."""

CATALOGUE_MAY_IMPORT = frozenset(
    {
        "errors",
        "columns",
        "corunners",
        "schema",
        "plugins",
        "store",
        "specs",
        "probe",
        "collectives",
        "model",
        "dataset",
        "configurations",
    }
)

DELEGATES = {
    ("prediction", "validation"),
    ("prediction", "inference"),
    ("validation", "report"),
    ("prediction", "report"),
    ("programs", "report"),
}
"""The stated exception: methods of the profile and of evidence that import when called."""


def run(code: str, **environment: str) -> str:
    """Run Python code in a fresh process; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        # Not in the checkout: Python would take its folder `bayesperf` for the installed package.
        cwd=tempfile.gettempdir(),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Light imports.


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = run("import bayesperf, sys; print(*{name.partition('.')[0] for name in sys.modules})").split()
    assert not {"jax", "jaxlib", "pandas", "xarray", "numpy", "pyarrow", "scipy", "matplotlib", *INFERENCE} & {*loaded}


def test_importing_the_package_is_quick() -> None:
    # The best of several: a busy machine must not turn this red.
    code = "import time; t = time.perf_counter(); import bayesperf; print(time.perf_counter() - t)"
    assert min(float(run(code)) for _ in range(5)) < 0.3


def test_public_names_exist_and_are_documented() -> None:
    for name in bayesperf.__all__:
        thing = getattr(bayesperf, name)
        assert thing is getattr(bayesperf, name)
        assert name in dir(bayesperf)
        assert name.startswith("__") or thing.__doc__
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = bayesperf.no_such_name


# Arrows run one way.


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the import name and the path of every module of the package."""
    for folder, name in [(ENGINE, "bayesperf"), *((ROOT / room, f"bayesperf.{room}") for room in MAPPED)]:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join([name, *(p for p in parts if p != "__init__")]), path


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield every module a file imports, and whether only for type checkers."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in typing_only) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                # `from bayesperf import plugins` is an import of bayesperf.plugins.
                yield f"{node.module}.{alias.name}", id(node) in typing_only


def room_of(module: str) -> str:
    """Return the room, or the top-level module, that a module of ours belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def test_every_module_of_the_engine_has_its_layer() -> None:
    rooms = {room_of(name) for name, _ in modules()} - {"", *MAPPED}
    assert rooms <= set(RANK), f"name the layer of {rooms - set(RANK)} in LAYERS"


def test_arrows_run_one_way() -> None:
    wrong = []
    for name, path in modules():
        here = room_of(name)
        if here == "":
            continue
        for imported, typing_only in imports(path):
            there = room_of(imported) if imported.startswith("bayesperf.") else ""
            if not there or there == here or there.startswith("__") or typing_only:
                continue
            if here in MAPPED:
                fine = there in CATALOGUE_MAY_IMPORT
            elif there in MAPPED:
                # These stand on top of everything: one reads the shipped spec sheets, one loads data sets by name.
                fine = here in ("cli", "batch") and there == "datasets"
            else:
                fine = RANK.get(there, 99) <= RANK[here] or (here, there) in DELEGATES
            if not fine:
                wrong.append(f"{name} imports {imported}")
    assert not wrong, "\n".join(wrong)


def test_only_inference_prediction_and_models_name_the_libraries_of_inference() -> None:
    allowed = {
        "inference",
        "prediction",
        "validation",
        "models",
        "programs",
        "checks",
        "report",
        "verification",
        "batch",
    }
    wrong = [
        f"{name} imports {imported}"
        for name, path in modules()
        for imported, typing_only in imports(path)
        if imported.partition(".")[0] in INFERENCE and room_of(name) not in allowed and not typing_only
    ]
    assert not wrong, "\n".join(wrong)


# Guards of the mapped rooms.


@pytest.mark.parametrize("room", MAPPED)
def test_a_room_refuses_to_be_imported_by_its_folder_name(room: str) -> None:
    code = f"""
    import sys
    sys.path.insert(0, {str(ROOT)!r})
    try:
        import {room}
    except ImportError as error:
        print(error)
    """
    assert run(code) == f"this folder is installed as bayesperf.{room}; import it under that name"


@pytest.mark.parametrize("room", MAPPED)
def test_a_room_is_found_under_its_own_name(room: str) -> None:
    where = Path(run(f"import bayesperf.{room} as room; print(room.__file__)"))
    # In this checkout if the install is editable, else among the installed packages.
    assert where == ROOT / room / "__init__.py" or where.parts[-3:] == ("bayesperf", room, "__init__.py")


def test_type_checkers_see_the_rooms() -> None:
    for room in MAPPED:
        link = ROOT / ".typings" / "bayesperf" / room
        assert not os.path.isabs(os.readlink(link))
        assert link.resolve() == ROOT / room


def test_the_packages_listed_are_the_packages_found() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {name for name, path in modules() if path.name == "__init__.py"}
    assert listed == found


# Small files.

LINES = 500
FUNCTION_LINES = 60


@pytest.mark.parametrize("path", [p for _, p in modules()], ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_are_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) < LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            docstring = node.body[0]
            if isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant):
                # What explains a function does not make it long.
                length -= (docstring.end_lineno or 0) - docstring.lineno + 1
            assert length < FUNCTION_LINES, f"{node.name} has {length} lines"
