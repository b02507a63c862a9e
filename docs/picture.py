"""Draw the README's picture from a characterization: ``python docs/picture.py FOLDER docs/picture.png``."""

from __future__ import annotations

import sys
from pathlib import Path

import bayesperf as bp
from bayesperf.report import canvas, figures
from bayesperf.schema import rows_for


def main(folder: Path, picture: Path) -> None:
    """Draw roofline and bandwidth of the profile's last target, which is the whole machine."""
    profile = bp.load_profile(folder / "profile.nc")
    table = bp.read_measurements(folder / "measurements.parquet")
    target = profile.targets[-1]
    roof = figures.roofline(profile, target, rows_for(table, "heldout"), seed=0)
    memory = figures.bandwidth(profile, target, seed=0)
    assert roof is not None
    assert memory is not None
    canvas.to_png([roof, memory], picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
