"""Execute the notebooks, each in a kernel and a folder of its own: ``python tests/notebooks/execute.py --small``.

Exit code 1 if a cell of any raises. What a notebook writes is thrown away; ``--out DIR`` keeps the executed copies.
Those of public data are skipped, and say so, unless ``BAYESPERF_DATA`` names a local copy or ``--download`` is given.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parents[2] / "notebooks"

PUBLIC_DATA = {"03_many_targets", "04_transfer_failure"}
"""Notebooks that load data sets which are not shipped."""


def main() -> int:
    """Execute all notebooks, or those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="notebooks by name or its beginning, such as 02; all when absent")
    parser.add_argument("--small", action="store_true", help="the small version, as .ci/run executes it")
    parser.add_argument("--timeout", type=int, default=3600, help="seconds a cell may take")
    parser.add_argument("--out", type=Path, help="folder for the executed copies")
    parser.add_argument("--measurements", type=Path, help="table of this machine that notebook 01 takes up")
    parser.add_argument("--download", action="store_true", help="let data sets be fetched")
    options = parser.parse_args()
    if options.small:
        os.environ["BAYESPERF_NOTEBOOK"] = "small"
    paths = [p for p in sorted(FOLDER.glob("*.ipynb")) if not options.names or p.stem.startswith(tuple(options.names))]
    if not paths:
        parser.error(f"no notebook is called {' or '.join(options.names)}")
    return max([execute(path, options) for path in paths])


def execute(path: Path, options: argparse.Namespace) -> int:
    """Execute one; returns its exit code, and prints how long it took."""
    if path.stem in PUBLIC_DATA and not (os.environ.get("BAYESPERF_DATA") or options.download):
        print(f"{path.stem}: skipped: it needs public data: set BAYESPERF_DATA, or give --download", flush=True)
        return 0
    notebook = nbformat.read(path, as_version=4)
    start, failed = time.monotonic(), ""
    with tempfile.TemporaryDirectory() as folder:
        if options.measurements:
            shutil.copy(options.measurements, Path(folder) / "this-machine.parquet")
        client = NotebookClient(
            notebook,
            timeout=options.timeout,
            startup_timeout=300,
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            failed = str(error)
    print(f"{path.stem}: {'FAILED' if failed else 'done'} in {time.monotonic() - start:.0f} s", failed, flush=True)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, options.out / path.name)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
