"""STREAM in CUDA (Fatica; Cumming, Herten, Kanduri): GiB/s by default, GB/s with ``-s``, MB/s in the first version.

It prints the array size in MB with two decimals, and the launch geometry; the element count is taken from the size.
"""

from __future__ import annotations

from bayesperf.formats.base import Format, Options, Parsed
from bayesperf.formats.source import Source
from bayesperf.formats.stream_text import parse_streams

__all__ = ["FORMAT"]


def recognises(source: Source) -> bool:
    """Whether the banner or the header with time units in parentheses is near the beginning."""
    text = source.beginning
    return "STREAM Benchmark implementation in CUDA" in text or ("Function" in text and "Min time(s)" in text)


def parse(source: Source, options: Options) -> Parsed:
    """Read every CUDA STREAM table of a log."""
    return parse_streams(source, options, FORMAT)


FORMAT = Format(
    name="cuda-stream",
    tool="CUDA STREAM",
    version=1,
    looks_for="a table headed 'Function  Rate (GiB/s)  Avg time(s)  Min time(s)  Max time(s)'",
    recognises=recognises,
    parse=parse,
    uses=("statistic",),
)
