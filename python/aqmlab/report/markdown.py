"""The little Markdown that study folders use, as HTML: headings, paragraphs, lists, tables,
code spans and emphasis. Anything else stays text."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby

BULLET = re.compile(r"^(?:[*-]|\d+\.) +")
DEEPER = 1
"""A heading of level n becomes one of level n + 1: the page has its own first level."""


def to_html(text: str) -> str:
    """`text` as HTML; the first heading is left out."""
    groups = groupby(text.splitlines(), key=lambda line: bool(line.strip()))
    blocks = [list(lines) for filled, lines in groups if filled]
    return "\n".join(filter(None, (_block(block, first=i == 0) for i, block in enumerate(blocks))))


def _block(lines: list[str], *, first: bool) -> str:
    if lines[0].startswith("#"):
        marks, _, heading = lines[0].partition(" ")
        level = min(len(marks) + DEEPER, 6)
        rest = _block(lines[1:], first=False) if lines[1:] else ""
        return rest if first else f"<h{level}>{inline(heading)}</h{level}>{rest}"
    if BULLET.match(lines[0]):
        return _list(lines)
    if lines[0].startswith("|"):
        return _table(lines)
    return f"<p>{inline(' '.join(line.strip() for line in lines))}</p>"


def _list(lines: list[str]) -> str:
    items: list[str] = []
    for line in lines:
        if BULLET.match(line):
            items.append(BULLET.sub("", line).strip())
        else:
            items[-1] += " " + line.strip()
    kind = "ol" if lines[0][0].isdigit() else "ul"
    return f"<{kind}>" + "".join(f"<li>{inline(item)}</li>" for item in items) + f"</{kind}>"


def _table(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    head, body = rows[0], [row for row in rows[1:] if not set("".join(row)) <= set("-: ")]
    top = "".join(f"<th>{inline(cell)}</th>" for cell in head)
    rows_html = ("".join(f"<td>{inline(cell)}</td>" for cell in row) for row in body)
    rest = "".join(f"<tr>{row}</tr>" for row in rows_html)
    return (
        "<div class='scroll'><table class='text'>"
        f"<thead><tr>{top}</tr></thead><tbody>{rest}</tbody></table></div>"
    )


def inline(text: str) -> str:
    """Code spans and emphasis of a line of text as HTML."""
    return "".join(_code(part) or _emphasis(part) for part in re.split(r"(`[^`]+`)", text))


def _code(text: str) -> str:
    return f"<code>{escape(text[1:-1])}</code>" if re.fullmatch(r"`[^`]+`", text) else ""


def _emphasis(text: str) -> str:
    text = escape(text, quote=False)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", text)
