"""Makes docs/ into a site: `make site`."""

import re
from pathlib import Path

project = "aqmlab"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# Docstrings are in NumPy style; a word in single backticks is code.
napoleon_google_docstring = False
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "aqmlab"
root_doc = "index"
# Headings of pages are link targets as on the forge that shows the pages.
myst_heading_anchors = 4
exclude_patterns = ["_build"]

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^):#][^):]*)\)")


def in_the_tree(app, name, source):
    """Files of the source tree are not part of the site: links to them become plain text."""
    root = Path(app.srcdir).resolve()
    folder = Path(app.env.doc2path(name)).parent

    def plain(link):
        file = (folder / link[2].partition("#")[0]).resolve()
        is_outside = file.exists() and not file.is_relative_to(root)
        return link[1] if is_outside else link[0]

    source[0] = LINK.sub(plain, source[0])


def setup(app):
    """Registers the handler of links."""
    app.connect("source-read", in_the_tree)
