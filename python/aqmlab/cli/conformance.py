"""`aqmlab conformance`: what reference implementations did, replayed packet by packet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from aqmlab.cli import options
from aqmlab.cli.common import EXAMPLES, FAILURE, console, print_json, progress_bar, reported
from aqmlab.cli.options import argument, flag, option
from aqmlab.errors import input_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aqmlab.conformance import Report
    from aqmlab.conformance.senders import ClosedReport, SenderReport
    from aqmlab.report.document import Table

COMPARED = ("verdict", "t_ns", "sojourn_ns", "t_mark_ns")
SENDER_COLUMNS = ("case", "segments", "equal", "windows", "equal", "first difference")
CLOSED_COLUMNS = ("case", "all acknowledged", "recorded", "sent again", "recorded", "close")
COLUMNS = ("algorithm", "case", "packets", "equal verdicts", "share", "worst offset", "passed",
           "first difference")  # fmt: skip
LEFT = ("algorithm", "case", "passed", "first difference")
"""Columns of text."""
EXAMPLE = EXAMPLES.format(
    "aqmlab conformance\n\n"
    "aqmlab conformance codel\n\n"
    "aqmlab conformance codel_linux pie_linux\n\n"
    "aqmlab conformance --vectors cases/ --json > conformance.json\n\n"
    "aqmlab conformance --tcp\n\n"
    "aqmlab conformance --tcp senders/ --json > senders.json"
)


@reported
def conformance(
    algorithms: Annotated[
        list[str] | None,
        argument(
            "[ALGORITHM]...",
            "Algorithms to replay; default: all. `codel` means all of CoDel's. With --tcp: a "
            "folder of your own cases (DIR/CASE/), and the cases to replay.",
        ),
    ] = None,
    tcp: Annotated[
        bool, flag("--tcp", "Replay senders instead of queues, segment by segment.")
    ] = False,
    closed: Annotated[
        bool,
        flag(
            "--closed",
            "With --tcp: simulate both ends, over links with the recorded path's values.",
        ),
    ] = False,
    vectors: Annotated[
        Path | None, option("DIR", "Replay your own cases, in DIR/ALGORITHM/CASE/.")
    ] = None,
    emulator: Annotated[
        bool, flag("--emulator", "Replay packets through the emulator, with its clock replaced.")
    ] = False,
    threads: options.Threads = None,
    json: options.Json = False,
    markdown: Annotated[bool, flag("--markdown", "Print the table as a page in Markdown.")] = False,
) -> None:
    """Replay recorded runs of reference implementations (Linux, ns-2, RFC pseudo-code).

    Every packet must get the same verdict at the same time. The exit status is 1 if a case
    differs or cannot be replayed; with --tcp, if fewer than 99.5 % of all segments or
    windows are equal. docs/conformance.md describes the cases and the table.
    """
    if tcp:
        if vectors or emulator or markdown:
            raise input_error("`--tcp` takes only a folder, names of cases, --closed and --json")
        _senders(algorithms or [], threads, closed=closed, json=json)
        return
    if closed:
        raise input_error("`--closed` needs `--tcp`")
    from aqmlab.conformance import check_all

    with progress_bar("conformance", shown=not (json or markdown), unit="cases") as progress:
        reports = check_all(
            vectors, algorithms or [], emulator=emulator, threads=threads, progress=progress
        )
    if json:
        print_json([report.to_json() for report in reports])
    elif markdown:
        print(page(reports))
    else:
        _show(reports)
    if not all(report.passed for report in reports):
        raise SystemExit(FAILURE)


def _senders(words: list[str], threads: int | None, *, closed: bool, json: bool) -> None:
    """Replays senders: of the folder that comes first, if one does, those that are named."""
    from aqmlab.conformance.senders import check_senders, close_senders, reaches_goal, total

    is_folder = bool(words) and (Path(words[0]).is_dir() or "/" in words[0])
    folder = Path(words[0]) if is_folder else None
    names = words[1:] if is_folder else words
    with progress_bar("conformance", shown=not json, unit="cases") as progress:
        if closed:
            ends = close_senders(folder, names, threads=threads, progress=progress)
        else:
            reports = check_senders(folder, names, threads=threads, progress=progress)
    if closed:
        rows = [closed_row(report) for report in ends]
        words = [f"{sum(report.close for report in ends)} of {len(ends)} cases close"]
        _print_senders(ends, CLOSED_COLUMNS, rows, words, json=json)
        return
    rows = [sender_row(report) for report in [*reports, total(reports)]]
    words = [f"{sum(report.equal for report in reports)} of {len(reports)} cases equal"]
    _print_senders(reports, SENDER_COLUMNS, rows, words, json=json)
    if not reaches_goal(reports):
        raise SystemExit(FAILURE)


def _print_senders(
    reports: Sequence[SenderReport | ClosedReport],
    columns: Sequence[str],
    rows: list[list[str]],
    words: list[str],
    *,
    json: bool,
) -> None:
    if json:
        print_json([report.to_json() for report in reports])
        return
    from aqmlab.report.document.terminal import block

    screen = console(130)
    block(table(columns, rows, ("case",)), screen)
    for line in words:
        screen.print(line)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str]) -> Table:
    """Rows under these columns, of which `left` have text."""
    from aqmlab.report.document import Column, Table

    return Table(
        tuple(Column(each, label=each in left) for each in columns), tuple(map(tuple, rows))
    )


def closed_row(report: ClosedReport) -> list[str]:
    """A connection with both ends ours as a row of the table."""
    ours, recorded = report.all_acknowledged_ns, report.recorded_all_acknowledged_ns
    return [
        report.case,
        "never" if ours is None else f"{ours * 1e-9:.3f} s",
        "never" if recorded is None else f"{recorded * 1e-9:.3f} s",
        f"{report.retransmitted:,}",
        f"{report.recorded_retransmitted:,}",
        "yes" if report.close else "no",
    ]


def sender_row(report: SenderReport) -> list[str]:
    """A sender as a row of the table."""
    first = report.first_difference_ns
    return [
        report.case,
        f"{report.segments:,}",
        _percent(report.segments_equal, report.segments),
        f"{report.windows:,}",
        _percent(report.windows_equal, report.windows),
        "" if first is None else f"{first:,} ns",
    ]


def _show(reports: list[Report]) -> None:
    from aqmlab.report.document.terminal import block

    screen = console(130)
    block(table(COLUMNS, [row(each) for each in reports], LEFT), screen)
    for report in reports:
        for text in remarks(report):
            screen.print(f"{name(report)}: {text}", markup=False, soft_wrap=True)
    screen.print(summary(reports))


def page(reports: list[Report]) -> str:
    """The table as a page of Markdown, with what differs below it."""
    head = "# Results of the conformance replay\n\nMade by `aqmlab conformance --markdown`; "
    about = f"{head}[explanation](conformance.md).\n\n{summary(reports)}.\n"
    rows = table(COLUMNS, [row(each) for each in reports], LEFT).to_markdown()
    notes = [f"- {name(report)}: {text}" for report in reports for text in remarks(report)]
    return "\n".join([about, rows, *([""] if notes else []), *notes])


def name(report: Report) -> str:
    """What a case is called in one word."""
    return f"{report.algorithm}/{report.case}"


def row(report: Report) -> list[str]:
    """What the table says of a case; the details of a difference stand below it."""
    names = [report.algorithm, report.case]
    if report.problem is not None:
        return [*names, "–", "–", "–", "–", report.status, "see below"]
    first, offset = report.first_difference, report.worst_offset_ns
    return [
        *names,
        f"{report.packets:,}",
        f"{report.equal_verdicts:,}",
        _percent(report.equal_verdicts, report.packets),
        "–" if offset is None else f"{offset:,} ns",
        "yes" if report.passed else report.status,
        "" if first is None else f"packet {first['packet']}",
    ]


def _percent(count: int, total: int) -> str:
    """Share of the total, never rounded up to 100 %."""
    return "100 %" if count == total else f"{min(100 * count / total, 99.99):.2f} %"


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


def summary(reports: list[Report]) -> str:
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
