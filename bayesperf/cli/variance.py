"""The parts of a table's variance, for people: what repeats scatter by, and where that comes from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bayesperf.cli.output import Output

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["show_variance"]

COLUMNS = ["target", "probe", "rows", "within process", "between processes", "between campaigns"]


def show_variance(parts: pd.DataFrame, output: Output) -> None:
    """Print relative standard deviations as `bayesperf.measure.variance.variance_parts` gives them, with intervals."""

    def spread(row: Any, level: str) -> str:
        low, high = getattr(row, f"{level}_lower"), getattr(row, f"{level}_upper")
        return _percent(getattr(row, level)) + ("" if math.isnan(low) else f" ({_percent(low)} to {_percent(high)})")

    output.table(
        COLUMNS,
        [
            (row.target, row.probe, row.rows, _percent(row.within), spread(row, "process"), spread(row, "campaign"))
            for row in parts.itertuples(index=False)
        ],
        title="spread of repeats: relative standard deviations, 90 % intervals",
    )


def _percent(value: Any) -> str:
    return "unknown" if math.isnan(value) else f"{100 * value:.2g} %"
