"""Text from files is never markup, in any report; a browser is asked as well where there is one.

In the browser all pages are opened in one run, each in a frame of a page that writes down what it is told: the frames'
text tries to tell it something and to reach the network, and one frame without protection shows that it would hear.
"""

from __future__ import annotations

import base64
import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.report.hostile import attack, hostile_pages
from tests.report.test_capability import Page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update"),
    *("--disable-background-networking", "--disable-sync", "--virtual-time-budget=4000", "--dump-dom"),
)

LISTENER = """<!DOCTYPE html><pre id="heard"></pre><script>
addEventListener("message", e => { document.getElementById("heard").append(JSON.stringify(e.data) + "\\n"); });
</script>
"""

RULER = """<script>
const tables = [...document.querySelectorAll("table.parameters")];
const wide = tables.filter(t => t.scrollWidth > t.parentElement.clientWidth);
parent.postMessage({page: document.documentElement.scrollWidth, window: innerWidth, wide: wide.length}, "*");
</script></body>"""

WIDE, PHONE = 1300, 390


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine: its address, and every path that it is asked for."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.05))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", paths
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def pages(asked: tuple[str, list[str]]) -> dict[str, str]:
    """Every kind of report, made of hostile text."""
    return hostile_pages(attack(asked[0]))


KINDS = ("capability", "validation", "comparison", "difference", "explanation", "batch")


@pytest.mark.parametrize("kind", KINDS)
def test_text_from_files_is_never_markup(pages: dict[str, str], asked: tuple[str, list[str]], kind: str) -> None:
    text, hostile = pages[kind], attack(asked[0])
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "embed", "form", "base"} & {*page.tags}
    assert page.tags.count("title") == page.tags.count("style") == 1
    assert page.events == []
    assert "<script" not in text
    assert "<!--" not in text
    assert "&amp;lt;script" in text, "entities of the text are text"
    assert "default-src 'none'" in text
    assert hostile in page.text or hostile.split("<")[0] in page.text
    assert "x\"'&$x^$ 49" not in page.text, "nothing was evaluated"
    # Links of a batch lead to its jobs' files, in folders beside it.
    inside = ("#", "jobs/") if kind == "batch" else ("#",)
    assert all(target.startswith(inside) and ":" not in target and ".." not in target for target in page.targets)
    for source in page.sources:
        kind_of, _, data = source.partition(",")
        assert kind_of == "data:image/svg+xml;base64"
        drawn = base64.b64decode(data)
        assert b"<script" not in drawn
        assert b"onload" not in drawn
        assert b"onerror" not in drawn


def test_every_kind_of_page_is_attacked(pages: dict[str, str]) -> None:
    templates = resources.files("bayesperf.report") / "templates"
    shipped = {path.name.removesuffix(".html") for path in templates.iterdir() if path.name.endswith(".html")}
    parts = {"base", "macros", "parameters", "company"}
    assert shipped - parts == set(pages)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")
def test_reports_in_a_browser(
    tmp_path: Path, asked: tuple[str, list[str]], pages: dict[str, str], complete_page: str
) -> None:
    address, paths = asked
    # Only this copy may run a script: one that measures it.
    ruled = re.sub(r"<meta http-equiv=[^>]*>", "", complete_page).replace("</body>", RULER)
    files = {**pages, "ruled": ruled, "control": f"<body>{attack(address)}</body>"}
    for name, page in files.items():
        (tmp_path / f"{name}.html").write_text(page, encoding="utf-8")
    frames = [f'<iframe src="{name}.html"></iframe>' for name in pages]
    frames += [f'<iframe src="ruled.html" width="{width}" height="900"></iframe>' for width in (WIDE, PHONE)]

    heard = _heard(LISTENER + "\n".join(frames), tmp_path)
    assert "pwned" not in heard
    assert paths == []
    sizes = {size["window"]: size for size in heard}
    assert set(sizes) == {WIDE, PHONE}
    assert all(size["page"] <= width for width, size in sizes.items()), sizes
    assert sizes[WIDE]["wide"] == 0, "a parameter table is cut off"

    assert "pwned" in _heard(LISTENER + '<iframe src="control.html"></iframe>', tmp_path), "the harness is deaf"
    assert paths


def _heard(page: str, folder: Path) -> list[Any]:
    """What a page was told by its frames."""
    path = folder / "listener.html"
    path.write_text(page, encoding="utf-8")
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'browser'}", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    (text,) = re.findall(r'<pre id="heard">(.*?)</pre>', done.stdout, re.DOTALL)
    return [json.loads(line) for line in unescape(text).splitlines()]
