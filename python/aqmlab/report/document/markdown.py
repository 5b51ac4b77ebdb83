"""Markdown as HTML, by CommonMark with tables; HTML in it stays text."""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt

DEEPER = 1
"""A heading of level n becomes one of level n + 1: the page has its own first level."""


def to_html(text: str) -> str:
    """`text` as HTML; the first heading is left out."""
    tokens = _parser().parse(text)
    if tokens and tokens[0].type == "heading_open":
        tokens = tokens[3:]
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + DEEPER, 6)}"
        elif token.type == "table_open":
            token.attrSet("class", "text")
    return str(_parser().renderer.render(tokens, _parser().options, {})).strip()


def inline(text: str) -> str:
    """Code spans, links and emphasis of a line of text as HTML."""
    return str(_parser().renderInline(text))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")
