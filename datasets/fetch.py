"""Files of a public source: from a local copy of its tree, from the user's cache, or downloaded and checked.

Order: a local copy (``BAYESPERF_DATA``, a folder that holds the tree as ``upstream/<source>``) is taken as it is; else
the file comes from the cache (``BAYESPERF_CACHE``, by default the user's cache folder), which pooch fills from the
source at the pinned commit and verifies by SHA-256 every time.
"""

from __future__ import annotations

import csv
import fnmatch
import hashlib
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path

from bayesperf.dataset import Source, SourceFile
from bayesperf.errors import InputError, UnsupportedFileError

__all__ = ["LOCAL_COPY", "SourceTree", "cache_folder", "local_tree", "read_card", "read_registry"]

LOCAL_COPY = "BAYESPERF_DATA"
CACHE = "BAYESPERF_CACHE"
LOG = logging.getLogger("bayesperf")
TIMEOUT_S = 60


def read_registry(package: str) -> dict[str, str]:
    """Hashes of a data set's source files, {path: sha256}, from ``files.csv`` in its package."""
    text = resources.files(package).joinpath("files.csv").read_text(encoding="utf-8")
    return {row["path"]: row["sha256"] for row in csv.DictReader(text.splitlines())}


def read_card(package: str) -> str:
    """Text of a data set's card, ``card.md`` in its package."""
    return resources.files(package).joinpath("card.md").read_text(encoding="utf-8")


def cache_folder() -> Path:
    """Folder downloads are kept in."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named).expanduser()
    import pooch  # loads requests; only downloads need it

    return Path(pooch.os_cache("bayesperf"))


def local_tree(source: Source) -> Path | None:
    """Folder of the local copy of a source's tree, or None where there is none.

    Raises
    ------
    InputError
        ``BAYESPERF_DATA`` is set to something that is not a folder.
    """
    named = os.environ.get(LOCAL_COPY)
    if not named:
        return None
    root = Path(named).expanduser()
    if not root.is_dir():
        raise InputError(f"{LOCAL_COPY}={named}: no such folder; correct it, or unset it to download from the source")
    tree = root / "upstream" / source.folder
    return tree if tree.is_dir() else None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class SourceTree:
    """The files of one source; implements `bayesperf.dataset.Files`.

    Parameters
    ----------
    source
        Where they come from.
    registry
        SHA-256 of the source's own files, {path: hash}.
    """

    def __init__(self, source: Source, registry: Mapping[str, str]):
        self._source, self._registry = source, dict(registry)

    def paths(self, *patterns: str) -> list[str]:
        """Paths that match a shell-style pattern, sorted; ``*`` also matches ``/``. Fetches nothing.

        Raises
        ------
        InputError
            There is none.
        """
        tree = local_tree(self._source)
        found = _matching(self._registry if tree is None else _walk(tree), patterns)
        if not found:
            where = "the list of the source's files" if tree is None else f"the local copy in {LOCAL_COPY}"
            raise InputError(
                f"no file of {self._source.folder} matches {' or '.join(patterns)} in {where}. {self._remedies()}"
            )
        return found

    def get(self, path: str) -> SourceFile:
        """Return one file, from the local copy if there is one, else from the cache or the network.

        Raises
        ------
        InputError
            It can neither be found nor downloaded.
        """
        tree = local_tree(self._source)
        if tree is None:
            return self._download(path)
        if not (tree / path).is_file():
            raise InputError(f"{path} is not in the local copy in {LOCAL_COPY}. {self._remedies()}")
        return self._local(tree, path)

    def _remedies(self) -> str:
        source = self._source
        return (
            f"Either connect to the network and unset {LOCAL_COPY}, so that it is downloaded into {cache_folder()}; "
            f"or get {source.repository} at commit {source.commit[:12]} and set {LOCAL_COPY} to a folder that holds "
            f"that tree as upstream/{source.folder}"
        )

    def _local(self, tree: Path, path: str) -> SourceFile:
        local = tree / path
        digest, known = _sha256(local), self._registry.get(path)
        return SourceFile(path, local, digest, None if known is None else digest == known)

    def _download(self, path: str) -> SourceFile:
        import pooch

        if path not in self._registry:
            raise InputError(f"{path} is not in the list of {self._source.folder}'s files. {self._remedies()}")
        source, digest = self._source, self._registry[path]
        folder = cache_folder() / source.folder / source.commit
        reason = "no address is known"
        for template in source.urls:
            url = template.format(path=path.replace(" ", "%20"))
            try:
                local = pooch.retrieve(
                    url,
                    known_hash=f"sha256:{digest}",
                    fname=Path(path).name,
                    path=folder / Path(path).parent,
                    downloader=pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=TIMEOUT_S),
                )
            except ValueError as error:
                reason = f"{url}: what came is not the source's file ({_first_line(error)})"
            except OSError as error:  # requests' errors are OSErrors
                reason = f"{url}: {type(error).__name__}"
            else:
                return SourceFile(path, Path(local), digest, True)
        raise InputError(f"{path} is neither in the cache nor can it be downloaded ({reason}). {self._remedies()}")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _walk(tree: Path) -> list[str]:
    return [p.relative_to(tree).as_posix() for p in tree.rglob("*") if p.is_file()]


def _matching(paths: Iterable[str], patterns: Iterable[str]) -> list[str]:
    patterns = list(patterns)
    return sorted(p for p in paths if any(fnmatch.fnmatchcase(p, pattern) for pattern in patterns))


def refuse_pointer(file: SourceFile) -> None:
    """Refuse a Git LFS pointer, which is what a clone without ``git lfs pull`` holds.

    Raises
    ------
    UnsupportedFileError
        The message says how to get the content.
    """
    with file.local.open("rb") as stream:
        if stream.read(40).startswith(b"version https://git-lfs"):
            raise UnsupportedFileError(
                f"{file.path}: a Git LFS pointer, not the data; run `git lfs pull` in the local copy"
            )
