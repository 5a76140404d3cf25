# SPDX-License-Identifier: Apache-2.0
"""Settings of Sphinx for the documentation site: tools/doc/site runs it."""
project = "rmm-c"
author = "the authors of rmm-c"
extensions = ["myst_parser"]
root_doc = "docs/index"
exclude_patterns = ["docs/site/*", "docs/index-*"]
myst_heading_anchors = 4
# a shell transcript or a part of a program is no whole program
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "text"
html_theme = "alabaster"
html_theme_options = {"page_width": "min(96%, 75em)", "sidebar_width": "16em", "body_max_width": "54em"}
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
