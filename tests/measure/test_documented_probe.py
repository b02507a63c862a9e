"""The probe that the documents show is one that measures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from bayesperf.measure.run import measure

DOCUMENT = Path(__file__).parents[2] / "docs" / "probes.md"

SUITE = """
description = "a probe of one's own"
processes = 1
scopes = ["all"]
[budget]
point_s = 0.05
longest_share = 0.1
retries = 10
[[probe]]
name = "scaled"
sweep = { elements = [65536] }
"""


def test_it_measures(tmp_path: Path, install_probe: Callable[[str, str], None]) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    install_probe("scaled", program)
    (tmp_path / "mine.toml").write_text(SUITE)
    table = measure(tmp_path / "mine.toml", progress=False)
    assert list(table["op"]) == ["scaled"]
    assert list(table["bytes"] / table["n_devices"]) == [2 * 65536 * 4]
    assert table["hlo_hash"].notna().all()
