"""McCalpin's STREAM: its text output, from version 4 to 5.10, C, Fortran and MPI.

The rate is that of the best time, in MB/s of 1e6 bytes; arrays are counted once each (no write-allocate). Columns were
``Rate (MB/s)  RMS time ...`` up to version 5.5 or so, then ``Avg time``.
"""

from __future__ import annotations

from bayesperf.formats.base import Format, Options, Parsed
from bayesperf.formats.source import Source
from bayesperf.formats.stream_text import parse_streams

__all__ = ["FORMAT"]


def recognises(source: Source) -> bool:
    """Whether a STREAM header is near the beginning, and not the CUDA one."""
    text = source.beginning
    return "Rate" in text and "Function" in text and "Min time" in text and "CUDA" not in text


def parse(source: Source, options: Options) -> Parsed:
    """Read every STREAM table of a log."""
    return parse_streams(source, options, FORMAT)


FORMAT = Format(
    name="stream",
    tool="STREAM (McCalpin)",
    version=1,
    looks_for="a table headed 'Function  Best Rate MB/s  Avg time  Min time  Max time' (or 'Rate (MB/s)')",
    recognises=recognises,
    parse=parse,
    uses=("statistic",),
)
