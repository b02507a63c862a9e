"""Check that what `bayesperf characterize` wrote is there and well formed; verdicts are not judged."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import xarray as xr

import bayesperf as bp


def main(folder: Path) -> None:
    """Check the three files of one folder."""
    table = bp.read_measurements(folder / "measurements.parquet")
    assert (table["time_s"] > 0).all()
    assert {"fit", "heldout"} <= set(table["role"].fillna("fit")), "both roles are measured"
    assert table["measurement_id"].is_unique

    profile = bp.load_profile(folder / "profile.nc")
    assert profile.targets
    assert profile.gate
    with xr.open_datatree(folder / "profile.nc") as tree:
        groups = set(tree.children)
        assert {"posterior", "sample_stats", "observed_data", "prior"} <= groups, groups
        assert tree.attrs["schema_version"]
        assert dict(tree["posterior"].sizes)["draw"] > 1

    page = (folder / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert not re.search(r"""(?:src|href)\s*=\s*["']?\s*(?:https?:)?//""", page), "the report refers to the network"
    identifiers = table["measurement_id"].tolist()
    assert sum(identifier in page for identifier in identifiers) == len(identifiers), "the report names its evidence"
    print(f"{folder}: {len(table)} rows, {len(profile.targets)} target(s), converged: {profile.converged}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
