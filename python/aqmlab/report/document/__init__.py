"""Documents as values, rendered as HTML, Markdown, LaTeX, JSON and for terminals.

    from aqmlab.report.document import Column, Document, Section, Table, Text

    table = Table((Column("queue", label=True), Column("delay", unit="ms")), (("codel", 5.3),))
    page = Document("My page", (Text("What I *found*:"), table))
    page.to_html(), page.to_markdown(), page.to_json(), table.to_csv(), table.to_latex()

Nothing here runs a simulation or knows of one: `charts` and `panels` draw arrays.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
