"""A file to import, read with bounds: long lines, deep JSON, NUL bytes, wrong encodings, endless files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bayesperf.errors import InputError, UnsupportedFileError
from bayesperf.formats.base import Tally

__all__ = ["MAX_FILE_BYTES", "MAX_JSON_BYTES", "MAX_LINE", "Line", "Source"]

MAX_FILE_BYTES = 256 * 2**20
MAX_JSON_BYTES = 32 * 2**20
MAX_JSON_ITEMS = 2_000_000
"""Bounds what Python objects of a hostile JSON file take: about 100 bytes per bracket or comma."""

MAX_LINE = 16_384
"""Characters of a line that may be part of a table; longer ones are log noise."""

HEAD_BYTES = 256 * 2**10

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# mpirun --tag-output and srun --label put the rank in front of each line.
_LABEL = re.compile(r"^(?:\[[0-9]+,[0-9]+\]<std(?:out|err)>:\s?|\s*[0-9]{1,6}:\s(?=\s*[#0-9]))")


class Line(NamedTuple):
    """A line of text and its number, counted from 1."""

    number: int
    text: str


class Source:
    """A file, hashed on opening.

    Parameters
    ----------
    path
        A regular file.

    Raises
    ------
    InputError
        No such file, not a regular one, unreadable, empty, or above `MAX_FILE_BYTES`.
    UnsupportedFileError
        UTF-16, which Windows shells write; the message says how to convert it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.noise = Tally()
        digest = hashlib.sha256()
        try:
            if not self.path.is_file():
                problem = "not a regular file" if self.path.exists() else "no such file"
                raise InputError(f"{self.path}: {problem}")
            self.size = self.path.stat().st_size
            if self.size > MAX_FILE_BYTES:
                limit = MAX_FILE_BYTES // 2**20
                raise InputError(
                    f"{self.path}: {self.size / 2**20:.0f} MiB is above the {limit} MiB that are read: split it"
                )
            with self.path.open("rb") as file:
                self.head = file.read(HEAD_BYTES)
                digest.update(self.head)
                while chunk := file.read(2**20):
                    digest.update(chunk)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        # An embedded NUL in the path, from a caller that passes on what a file said.
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{str(self.path)!r}: not a usable path: {error}") from error
        self.sha256 = digest.hexdigest()
        if not self.size:
            raise InputError(f"{self.path}: the file is empty")
        if self.head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise UnsupportedFileError(f"{self.path}: UTF-16 text; convert it: iconv -f UTF-16 -t UTF-8 IN > OUT")

    @property
    def name(self) -> str:
        """File name without its folders, which may name people."""
        return self.path.name

    @property
    def stem(self) -> str:
        """File name without folders and suffix."""
        return self.path.stem or self.path.name

    def lines(self, *, log: bool = True) -> Iterator[Line]:
        """Lines of text; lines above `MAX_LINE` bytes are tallied as noise.

        Parameters
        ----------
        log
            Take off terminal colours and the rank labels that launchers put in front of lines.
        """
        with self.path.open("rb") as file:
            count = 0
            while raw := file.readline(MAX_LINE):
                count += 1
                if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
                    while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                        pass
                    self.noise.add("long line", f"more than {MAX_LINE} bytes, skipped", count)
                    continue
                text = raw.decode("utf-8", errors="replace").rstrip("\r\n").lstrip("\ufeff")
                yield Line(count, clean(text) if log else text)

    @cached_property
    def beginning(self) -> str:
        """The first 256 KiB as text, for recognition."""
        return self.head.decode("utf-8", errors="replace").lstrip("\ufeff")

    @property
    def looks_like_json(self) -> bool:
        """Whether a JSON object begins the file or one of its first lines."""
        return bool(re.search(r"^\s*[\[{]", self.beginning)) or "\n{" in self.beginning

    def documents(self, wanted: Sequence[str]) -> list[dict[str, Any]]:
        """JSON objects in the file that have one of the `wanted` keys; text around them is log noise.

        Raises
        ------
        UnsupportedFileError
            Too large, too deep, truncated, or a key given twice with different values.
        """
        if self.size > MAX_JSON_BYTES:
            raise UnsupportedFileError(f"{self.path}: JSON above {MAX_JSON_BYTES // 2**20} MiB is not read: split it")
        data = self.path.read_bytes()
        if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_JSON_ITEMS:
            raise UnsupportedFileError(f"{self.path}: JSON of more than {MAX_JSON_ITEMS} items is not read: split it")
        text = data.decode("utf-8", errors="replace").lstrip("\ufeff")
        return self._scan(text, wanted)

    def _scan(self, text: str, wanted: Sequence[str]) -> list[dict[str, Any]]:
        decoder = json.JSONDecoder(object_pairs_hook=self._object)
        found: list[dict[str, Any]] = []
        at, failure, failures = 0, "", 0
        # A table of braces in a log must not make this quadratic.
        while failures < 20 and (match := _OBJECT.search(text, at)):
            start = match.end() - 1
            try:
                value, at = decoder.raw_decode(text, start)
            except RecursionError:
                raise UnsupportedFileError(f"{self.path}: JSON nested too deeply") from None
            except json.JSONDecodeError as error:
                line = text.count("\n", 0, error.pos) + 1
                failure, failures, at = f"line {line}: {error.msg}", failures + 1, start + 1
                if any(f'"{key}"' in text[start : start + 4096] for key in wanted):
                    raise UnsupportedFileError(f"{self.path}: truncated or damaged JSON: {failure}") from None
                continue
            except ValueError as error:
                if isinstance(error, UnsupportedFileError):
                    raise
                # A number of thousands of digits.
                raise UnsupportedFileError(f"{self.path}: damaged JSON: {str(error).split(';')[0]}") from None
            if isinstance(value, dict) and any(key in value for key in wanted):
                found.append(value)
        if not found and failure:
            raise UnsupportedFileError(f"{self.path}: not JSON: {failure}")
        return found

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            seen: dict[str, Any] = {}
            for key, value in pairs:
                # NaN differs from itself; repr compares what was written.
                if key in seen and repr(seen[key])[:10_000] != repr(value)[:10_000]:
                    raise UnsupportedFileError(
                        f"{self.path}: the JSON key {key[:60]!r} is given twice with different values; keep one"
                    )
                seen[key] = value
        return built


_OBJECT = re.compile(r"(?:^|\n)[^\S\n]*\{")


def clean(text: str) -> str:
    """One line of a log without colours and rank labels."""
    return _LABEL.sub("", _ESCAPE.sub("", text) if "\x1b" in text else text)
