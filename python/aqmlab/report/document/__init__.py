"""Documents as values, rendered as HTML, Markdown, LaTeX, JSON and for terminals.

    from aqmlab.report.document import Column, Document, Section, Table, Text

    table = Table((Column("queue", label=True), Column("delay", unit="ms")), (("codel", 5.3),))
    page = Document("My page", (Text("What I *found*:"), table))
    page.to_html(), page.to_markdown(), page.to_json(), table.to_csv(), table.to_latex()

Nothing here runs a simulation or knows of one: `charts` and `panels` draw arrays.
"""

from aqmlab.report.document.figure import FORMATS, Figure
from aqmlab.report.document.files import save, write_text
from aqmlab.report.document.model import (
    BAD,
    GOOD,
    NEAR,
    PLAIN,
    Block,
    Cell,
    Code,
    Column,
    Compared,
    Document,
    Estimate,
    Facts,
    Finding,
    Items,
    Markdown,
    Note,
    Section,
    Table,
    Text,
    Tiles,
    Verdict,
    notes,
)

__all__ = [
    "BAD",
    "FORMATS",
    "GOOD",
    "NEAR",
    "PLAIN",
    "Block",
    "Cell",
    "Code",
    "Column",
    "Compared",
    "Document",
    "Estimate",
    "Facts",
    "Figure",
    "Finding",
    "Items",
    "Markdown",
    "Note",
    "Section",
    "Table",
    "Text",
    "Tiles",
    "Verdict",
    "notes",
    "save",
    "write_text",
]
