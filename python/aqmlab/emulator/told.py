"""What the links of an emulation did, in a few lines, without a library for tables."""

from __future__ import annotations

from aqmlab.numbers import percent, seconds, signalled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from aqmlab._core import Results

BUSY = 0.5
"""Utilisation above which a link is reported; links that dropped, marked or lost packets always
are."""


def lines(results: Results) -> Iterator[str]:
    """A line for each link that was busy or gave a signal, in either direction, and the notes of
    the links; those of the whole emulation are among its remarks."""
    for row in results.table("links").to_dicts():
        signals = list(signalled(row))
        used = row["utilisation"] or 0.0
        if used > BUSY or signals:
            waits = [row[f"sojourn_{key}_s"] for key in ("p50", "p95", "max")]
            p50, p95, most = map(seconds, waits)
            delay = f"in the queue {p50} (median), {p95} (p95), {most} (max)"
            yield "; ".join([f"{row['link']}: {percent(used)} busy, {delay}", *signals])
    for note in results.table("notes").to_dicts():
        if note["subject"] != "run":
            yield f"{note['subject']}: {note['text']}"
