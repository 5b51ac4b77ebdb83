"""Documents as HTML: one page with everything inside, and fragments for notebooks.

The charts are drawn in the browser by Vega, which is in the page, compressed. The page may load
nothing and run no script but its own (its content security policy has their hashes); what a
reader gave - titles, labels, notes - is escaped by the templates.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Container, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from aqmlab import libraries
from aqmlab.report.document.model import Block, Document, Section, walk

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'"
)
UNIT = re.compile(r"(?<=\d) (?=(?:ms|s|µs|%|[kMG]?bit/s|kB|MB|B|packets|of \d)(?!\w))")
DEEPER = 1
"""A heading of level n becomes one of level n + 1: the page has its own first level."""
EXPORT = "window.vegaEmbed = vegaEmbed;"
"""What the page's own script needs of the bundled libraries."""


def page(document: Document, data: Container[str] = ()) -> str:
    """The document as a page that needs nothing else. Figures in `data` have a link to the file
    with their numbers beside the page."""
    figures = document.figures
    library, digest = _library() if figures else ("", "")
    script = _own("page.js")
    allowed = f"'sha256-{_digest(script)}' 'sha256-{digest}'" if figures else "'none'"
    return (
        _templates()
        .get_template("page.html")
        .render(
            document=document,
            data=data,
            contents=[
                each for each in walk(document.blocks) if isinstance(each, Section) and each.short
            ],
            style=Markup(_own("style.css")),
            policy=f"{POLICY}; script-src {allowed}",
            specs=script_json({each.id: each.spec for each in figures}) if figures else None,
            library=Markup(library),
            script=Markup(script),
        )
    )


def fragment(blocks: Sequence[Block]) -> str:
    """The blocks for a notebook: figures as pictures, without scripts."""
    return _templates().get_template("fragment.html").render(given=blocks, data=())


def script_json(value: Any) -> Markup:
    """JSON that is safe in a script element with any text in it: `<!--<script>` alone
    would swallow the rest of the page."""
    text = json.dumps(value)
    for letter, code in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(letter, code)
    return Markup(text)


@cache
def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["inline"] = lambda text: Markup(_parser().renderInline(_together(text)))
    found.filters["markdown"] = lambda text: Markup(to_html(text))
    found.filters["svg"] = lambda figure: Markup(figure.svg())
    found.filters["together"] = _together
    return found


def to_html(text: str) -> str:
    """Markdown (CommonMark with tables) as HTML; the first heading is left out, HTML stays text."""
    tokens = _parser().parse(text)
    if tokens and tokens[0].type == "heading_open":
        tokens = tokens[3:]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + DEEPER, 6)}"
        elif token.type == "table_open":
            token.attrSet("class", "text")
    return str(_parser().renderer.render(tokens, _parser().options, {})).strip()


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _together(text: str) -> str:
    """The text, with no line broken between a number and its unit."""
    return UNIT.sub("\u00a0", text)


@cache
def _library() -> tuple[str, str]:
    """The libraries of the page's script, compressed, and the digest of their text.

    To bundle them takes a second, so they are kept in the user's cache, if there is one.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    kept = cache / "aqmlab" / f"vega-embed-{version('vl-convert-python')}-85.txt"
    with suppress(OSError, ValueError):
        digest, _, text = kept.read_text(encoding="ascii").partition("\n")
        if zlib.crc32(text.encode()) == int(digest.split()[1]):
            return text, digest.split()[0]
    bundle = str(libraries.vl_convert.javascript_bundle(EXPORT))
    text = letters(zlib.compress(bundle.encode(), 9))
    digest = _digest(bundle)
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(f"{digest} {zlib.crc32(text.encode())}\n{text}", encoding="ascii")
        fresh.replace(kept)
    return text, digest


def letters(packed: bytes) -> str:
    """The bytes in base 85, without the letters that mean something in HTML: a twentieth less than
    in base 64. `page.js` reads it."""
    return base64.b85encode(packed).decode().translate(str.maketrans("<>&`", ",.:/"))


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _own(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
