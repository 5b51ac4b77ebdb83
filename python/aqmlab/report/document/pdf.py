"""The same bytes for the same picture: svg2pdf writes the fonts of a PDF in random order."""

from __future__ import annotations

import re

OBJECT = re.compile(rb"(\d+) 0 obj\n(.*?\nendobj\n\n)(?=\d+ 0 obj\n|xref\n)", re.DOTALL)
REFERENCE = re.compile(rb"\b(\d+) 0 R\b")
NAMED = re.compile(rb"(?: +/[a-z]+\d+ \d+ 0 R\n){2,}")
"""Resources of a page, such as `/fo0 1 0 R`."""
STREAM = b"\nstream\n"


def ordered(pdf: bytes) -> bytes:
    """Sorts the named resources, and numbers and writes the objects in the order of references.

    A PDF of another form (compressed references) is returned as it is.
    """
    if b"\ntrailer\n" not in pdf:
        return pdf
    parts = OBJECT.split(pdf)
    bodies = {
        number: NAMED.sub(lambda found: b"".join(sorted(found[0].splitlines(True))), body)
        for number, body in zip(parts[1::3], parts[2::3], strict=True)
    }
    numbers: dict[bytes, int] = {}

    def visit(text: bytes) -> None:
        for number in REFERENCE.findall(text):
            if number not in numbers:
                numbers[number] = len(numbers) + 1
                visit(bodies[number].partition(STREAM)[0])

    def renumbered(text: bytes) -> bytes:
        return REFERENCE.sub(lambda found: b"%d 0 R" % numbers[found[1]], text)

    trailer = parts[-1][parts[-1].index(b"trailer") : parts[-1].index(b"startxref")]
    visit(trailer)
    written, places = parts[0], []
    for old, number in numbers.items():
        places.append(len(written))
        head, *stream = bodies[old].partition(STREAM)
        written += b"%d 0 obj\n" % number + renumbered(head) + b"".join(stream)
    entries = (b"%010d 00000 n\r\n" % place for place in places)
    table = b"xref\n0 %d\n0000000000 65535 f\r\n" % (len(places) + 1) + b"".join(entries)
    end = b"startxref\n%d\n%%%%EOF" % len(written)
    return written + table + renumbered(trailer) + end
