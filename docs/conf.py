"""The documentation site: `make docs` builds it into build/docs."""

from __future__ import annotations

project = "Downriver"
author = "The Downriver authors"
html_title = "Downriver"
html_theme = "furo"
html_show_sphinx = False
html_show_copyright = False
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
# Links such as `sdk.md#functions-as-jobs` name a heading.
myst_heading_anchors = 3
# Examples shorten output with `…`, which no lexer of JSON accepts.
suppress_warnings = ["misc.highlighting_failure"]
