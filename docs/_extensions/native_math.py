"""Equations as MathML, by docutils' own converter: browsers draw it without a script or a font from the network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        # A warning, which stops the build, and says where.
        log.warning("this equation cannot be drawn: %s", error, location=node)
        return f"<code>{node.astext()}</code>"


def visit_math(translator: Any, node: nodes.math) -> None:
    """Write an equation within a line."""
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    """Write an equation on lines of its own."""
    translator.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; the only one beside Sphinx's own is the one it takes."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
