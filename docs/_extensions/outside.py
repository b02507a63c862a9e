"""Links of the pages that lead out of ``docs/``: to the page that includes the file, or, of source files, to nothing.

In the repository these links lead to the files themselves; the site holds the documents alone.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

PAGES = {"README.md": "readme", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
"""Files of the repository's root, and the page that includes each."""

LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#\s]+)(#[^)\s]*)?\)")


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite the links of a page."""
    up = "../" * docname.count("/")

    def link(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        if target in PAGES:
            return f"[{words}]({up}{PAGES[target]}.md{anchor})"
        inside = app.srcdir / docname
        leads = (inside.parent / match[0].rpartition("(")[2].rstrip(")").partition("#")[0]).resolve()
        return match[0] if leads.is_relative_to(app.srcdir) else words

    source[0] = LINK.sub(link, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook."""
    app.connect("source-read", rewrite)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
