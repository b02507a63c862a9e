"""Sphinx configuration: ``sphinx-build -W docs site`` builds the site; nothing is fetched, and warnings are errors."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "bayesperf"
author = "The bayesperf developers"
release = version = installed_version("bayesperf")

# Markdown that also reads well where no site is built (MyST), the docstrings, and small extensions of our own:
# equations as MathML, which browsers draw without a script, the command line's help, and links out of this folder.
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "native_math", "command_line", "outside"]
myst_enable_extensions = ["dollarmath", "attrs_block"]
myst_heading_anchors = 3
exclude_patterns = ["_extensions"]

# Backquotes in our docstrings hold code.
default_role = "code"
napoleon_google_docstring = False
napoleon_preprocess_types = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
python_display_short_literal_types = True
python_maximum_signature_line_length = 100
toc_object_entries = False

html_theme = "alabaster"
html_title = f"bayesperf {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html", "relations.html"]}
html_theme_options = {
    "description": "Capability profiles of accelerators, with the uncertainty they deserve",
    "fixed_sidebar": True,
    "page_width": "1080px",
    "sidebar_width": "240px",
    # The reader's own fonts: nothing is loaded.
    "font_family": "system-ui, sans-serif",
    "head_font_family": "system-ui, sans-serif",
}
