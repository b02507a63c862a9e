"""Local copy, cache, download, and the errors that say what to do."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bayesperf.dataset import Source, SourceFile
from bayesperf.datasets.fetch import SourceTree, cache_folder, refuse_pointer
from bayesperf.errors import InputError, UnsupportedFileError

TEXT = b"a,b\n1,2\n"
DIGEST = hashlib.sha256(TEXT).hexdigest()
PATH = "data/some device.csv"


class _Quiet(SimpleHTTPRequestHandler):
    requests: list[str]

    def log_message(self, format: str, *args: Any) -> None:
        self.server.seen.append(self.path)  # type: ignore[attr-defined]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ThreadingHTTPServer]:
    """A host that serves one file."""
    root = tmp_path / "host"
    (root / "data").mkdir(parents=True)
    (root / PATH).write_bytes(TEXT)
    host = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    host.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=host.serve_forever, daemon=True)
    thread.start()
    yield host
    host.shutdown()
    host.server_close()
    thread.join()


def _source(*urls: str) -> Source:
    return Source("https://example.org/owner/name", "c" * 40, "MIT", "nobody", "some", urls)


def _url(host: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{host.server_address[1]}/{{path}}"


def test_downloads_once_and_verifies(no_local_copy: Path, server: ThreadingHTTPServer) -> None:
    tree = SourceTree(_source(_url(server)), {PATH: DIGEST})
    assert tree.paths("data/*.csv") == [PATH]
    assert server.seen == []  # type: ignore[attr-defined]  # listing fetches nothing
    first = tree.get(PATH)
    assert first.local.read_bytes() == TEXT
    assert (first.sha256, first.matches_source) == (DIGEST, True)
    assert no_local_copy in first.local.parents
    again = tree.get(PATH)
    assert again == first
    assert len(server.seen) == 1, "a copy in the cache needs no network"  # type: ignore[attr-defined]


def test_a_damaged_cache_is_mended(no_local_copy: Path, server: ThreadingHTTPServer) -> None:
    tree = SourceTree(_source(_url(server)), {PATH: DIGEST})
    tree.get(PATH).local.write_bytes(b"broken")
    assert tree.get(PATH).local.read_bytes() == TEXT


def test_a_second_address_is_tried(no_local_copy: Path, server: ThreadingHTTPServer) -> None:
    missing = _url(server).replace("{path}", "nowhere/{path}")
    assert SourceTree(_source(missing, _url(server)), {PATH: DIGEST}).get(PATH).local.read_bytes() == TEXT


def test_another_content_than_the_pinned_is_refused(no_local_copy: Path, server: ThreadingHTTPServer) -> None:
    with pytest.raises(InputError, match="not the source's file") as caught:
        SourceTree(_source(_url(server)), {PATH: "0" * 64}).get(PATH)
    _says_both_remedies(caught.value)


def test_no_network_and_no_copy_says_both_remedies(no_local_copy: Path) -> None:
    # Port 9 of this host: nobody listens there.
    with pytest.raises(InputError, match="neither in the cache") as caught:
        SourceTree(_source("http://127.0.0.1:9/{path}"), {PATH: DIGEST}).get(PATH)
    _says_both_remedies(caught.value)


def _says_both_remedies(error: InputError) -> None:
    text = str(error)
    assert "connect to the network" in text
    assert "BAYESPERF_DATA" in text
    assert "upstream/some" in text
    assert "https://example.org/owner/name" in text


def test_a_local_copy_needs_no_network(source_tree: Path) -> None:
    (source_tree / "some" / "data").mkdir(parents=True)
    (source_tree / "some" / PATH).write_bytes(TEXT)
    tree = SourceTree(_source(), {PATH: DIGEST})
    assert tree.paths("data/*") == [PATH]
    found = tree.get(PATH)
    assert (found.local, found.matches_source) == (source_tree / "some" / PATH, True)


def test_a_local_copy_that_differs_is_taken_and_said(source_tree: Path) -> None:
    (source_tree / "some" / "data").mkdir(parents=True)
    (source_tree / "some" / PATH).write_bytes(TEXT + b"3,4\n")
    (source_tree / "some" / "data" / "more.csv").write_bytes(TEXT)
    tree = SourceTree(_source(), {PATH: DIGEST})
    assert tree.get(PATH).matches_source is False
    assert tree.get("data/more.csv").matches_source is None


def test_a_local_copy_without_the_file(source_tree: Path) -> None:
    (source_tree / "some").mkdir()
    tree = SourceTree(_source(), {PATH: DIGEST})
    with pytest.raises(InputError, match="in the local copy"):
        tree.paths("data/*")
    with pytest.raises(InputError, match="not in the local copy"):
        tree.get(PATH)


def test_a_folder_without_this_source_falls_back_to_the_cache(
    source_tree: Path, server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BAYESPERF_CACHE", str(tmp_path / "cache"))
    assert SourceTree(_source(_url(server)), {PATH: DIGEST}).get(PATH).matches_source is True


def test_a_folder_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BAYESPERF_DATA", str(tmp_path / "absent"))
    with pytest.raises(InputError, match="no such folder; correct it, or unset it"):
        SourceTree(_source(), {}).paths("*")


def test_a_file_nobody_knows(no_local_copy: Path) -> None:
    with pytest.raises(InputError, match="not in the list"):
        SourceTree(_source(), {}).get("other.csv")


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAYESPERF_CACHE", raising=False)
    assert cache_folder().name == "bayesperf"


def test_git_lfs_pointers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(UnsupportedFileError, match="git lfs pull"):
        refuse_pointer(SourceFile("x.parquet", path, "", None))
