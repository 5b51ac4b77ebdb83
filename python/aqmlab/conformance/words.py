"""Reports of replays in words: a table, the differences below it, and one line for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aqmlab.conformance.replay import Report
from aqmlab.report.document import Column, Table

COMPARED = ("verdict", "t_ns", "sojourn_ns", "t_mark_ns")
Columns = Sequence[tuple[str, Callable[[Any], str]]]
"""Headings, each with the text of a report below it."""


def _percent(count: int, total: int) -> str:
    """Share of the total, never rounded up to 100 %."""
    return "100 %" if count == total else f"{min(100 * count / total, 99.99):.2f} %"


def _of_replayed(text: Callable[[Report], str]) -> Callable[[Report], str]:
    """The text of a case that could be replayed."""
    return lambda report: "–" if report.problem is not None else text(report)


def _place(report: Report) -> str:
    """Packet at which the first difference is; the details stand below the table."""
    if report.problem is not None:
        return "see below"
    return f"packet {report.first_difference['packet']}" if report.first_difference else ""


QUEUES: Columns = (
    ("algorithm", lambda report: report.algorithm),
    ("case", lambda report: report.case),
    ("packets", _of_replayed(lambda report: f"{report.packets:,}")),
    ("equal verdicts", _of_replayed(lambda report: f"{report.equal_verdicts:,}")),
    ("share", _of_replayed(lambda report: _percent(report.equal_verdicts, report.packets))),
    ("worst offset", _of_replayed(lambda report: _ns(report.worst_offset_ns, "–"))),
    ("passed", lambda report: "yes" if report.passed else report.status),
    ("first difference", _place),
)
SENDERS: Columns = (
    ("case", lambda report: report.case),
    ("segments", lambda report: f"{report.segments:,}"),
    ("equal", lambda report: _percent(report.segments_equal, report.segments)),
    ("windows", lambda report: f"{report.windows:,}"),
    ("equal", lambda report: _percent(report.windows_equal, report.windows)),
    ("first difference", lambda report: _ns(report.first_difference_ns, "")),
)
CLOSED: Columns = (
    ("case", lambda report: report.case),
    ("all acknowledged", lambda report: _seconds(report.all_acknowledged_ns)),
    ("recorded", lambda report: _seconds(report.recorded_all_acknowledged_ns)),
    ("sent again", lambda report: f"{report.retransmitted:,}"),
    ("recorded", lambda report: f"{report.recorded_retransmitted:,}"),
    ("close", lambda report: "yes" if report.close else "no"),
)


def _ns(value: int | None, none: str) -> str:
    return none if value is None else f"{value:,} ns"


def _seconds(value: int | None) -> str:
    return "never" if value is None else f"{value * 1e-9:.3f} s"


def table(columns: Columns, reports: Sequence[Any]) -> Table:
    """A row for each report."""
    left = ("algorithm", "case", "passed", "first difference") if columns is QUEUES else ("case",)
    rows = (tuple(text(report) for _, text in columns) for report in reports)
    return Table(tuple(Column(name, label=name in left) for name, _ in columns), tuple(rows))


def page(reports: Sequence[Report]) -> str:
    """The table as a page of Markdown, with what differs below it."""
    head = "# Results of the conformance replay\n\nMade by `aqmlab conformance --markdown`; "
    about = f"{head}[explanation](conformance.md).\n\n{summary(reports)}.\n"
    notes = [f"- {text}" for text in named_remarks(reports)]
    rows = table(QUEUES, reports).to_markdown()
    return "\n".join([about, rows, *([""] if notes else []), *notes])


def named_remarks(reports: Sequence[Report]) -> Iterator[str]:
    """The remarks about all cases, each with the name of its case."""
    for report in reports:
        for text in remarks(report):
            yield f"{report.algorithm}/{report.case}: {text}"


def remarks(report: Report) -> Iterator[str]:
    """Text below the table: reason without a replay, or the difference."""
    if report.problem is not None:
        yield report.problem
    if report.ignored:
        yield f"no equivalent of {', '.join(report.ignored)}; replayed without it"
    if report.first_difference is not None:
        yield difference(report.first_difference)
    elif report.equal_reasons < report.drops:
        other = report.drops - report.equal_reasons
        yield f"{other:,} of {report.drops:,} drops have another reason (the case passes)"


def difference(first: dict[str, Any]) -> str:
    """The first decision that differs, in words."""
    packet, expected, got = first["packet"], first["expected"], first["got"]
    if got is None:
        return f"packet {packet}: expected {_decision(expected)}, got no decision"
    if all(got[key] == expected[key] for key in COMPARED):
        instead = first["packet_decided_instead"]
        return f"packet {packet}: {_decision(got)} as expected, but packet {instead} before it"
    return f"packet {packet}: expected {_decision(expected)}, got {_decision(got)}"


def _decision(of: dict[str, Any]) -> str:
    words = f"{of['verdict']} at {of['t_ns']:,} ns after {of['sojourn_ns']:,} ns"
    return words if of["t_mark_ns"] is None else f"{words}, mark at {of['t_mark_ns']:,} ns"


def summary(reports: Sequence[Report]) -> str:
    """All cases in one line."""
    passed = sum(report.passed for report in reports)
    packets = sum(report.packets for report in reports)
    equal = sum(report.equal_verdicts for report in reports)
    drops = sum(report.drops for report in reports)
    reasons = sum(report.equal_reasons for report in reports)
    words = [f"{passed} of {len(reports)} cases equal", f"{equal:,} of {packets:,} verdicts equal"]
    words.append(f"{reasons:,} of {drops:,} drops for the same reason")
    for status in ("different", "unsupported", "unreadable"):
        if count := sum(report.status == status for report in reports):
            words.append(f"{count} {status}")
    return "; ".join(words)
