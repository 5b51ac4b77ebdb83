"""`aqmlab conformance`: what reference implementations did, replayed packet by packet."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqmlab.cli import options
from aqmlab.cli.common import FAILURE, console, print_json, progress_bar
from aqmlab.cli.options import argument, flag, option
from aqmlab.errors import input_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aqmlab.conformance.replay import Report
    from aqmlab.conformance.senders import ClosedReport, SenderReport
    from aqmlab.conformance.words import Columns

EXAMPLE = (
    "aqmlab conformance\n\n"
    "aqmlab conformance codel\n\n"
    "aqmlab conformance codel_linux pie_linux\n\n"
    "aqmlab conformance --vectors cases/ --json > conformance.json\n\n"
    "aqmlab conformance --tcp\n\n"
    "aqmlab conformance --tcp senders/ --json > senders.json"
)


def conformance(
    algorithms: list[str] | None = argument(
        "[ALGORITHM]...",
        "Algorithms to replay; default: all. `codel` means all of CoDel's. With --tcp: a "
        "folder of your own cases (DIR/CASE/), and the cases to replay.",
        default=None,
    ),
    tcp: bool = flag("--tcp", "Replay senders instead of queues, segment by segment."),
    closed: bool = flag(
        "--closed", "With --tcp: simulate both ends, over links with the recorded path's values."
    ),
    vectors: Path | None = option("DIR", "Replay your own cases, in DIR/ALGORITHM/CASE/."),
    emulator: bool = flag(
        "--emulator", "Replay packets through the emulator, with its clock replaced."
    ),
    threads: int | None = options.THREADS,
    json: bool = options.JSON,
    markdown: bool = flag("--markdown", "Print the table as a page in Markdown."),
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
    from aqmlab.conformance.replay import check_all
    from aqmlab.conformance.words import QUEUES, named_remarks, page, summary

    with progress_bar("conformance", shown=not (json or markdown), unit="cases") as progress:
        reports = check_all(
            vectors, algorithms or [], emulator=emulator, threads=threads, progress=progress
        )
    if markdown and not json:
        print(page(reports))
    else:
        lines = [*named_remarks(reports), summary(reports)]
        _print(QUEUES, reports, reports, lines, json=json)
    if not all(report.passed for report in reports):
        raise SystemExit(FAILURE)


def _senders(words: list[str], threads: int | None, *, closed: bool, json: bool) -> None:
    """Replays senders: of the folder that comes first, if one does, those that are named."""
    from aqmlab.conformance import senders
    from aqmlab.conformance.words import CLOSED, SENDERS

    is_folder = bool(words) and (Path(words[0]).is_dir() or "/" in words[0])
    folder, names = (Path(words[0]), words[1:]) if is_folder else (None, words)
    with progress_bar("conformance", shown=not json, unit="cases") as progress:
        if closed:
            ends = senders.close_senders(folder, names, threads=threads, progress=progress)
            told = f"{sum(each.close for each in ends)} of {len(ends)} cases close"
            _print(CLOSED, ends, ends, [told], json=json)
            return
        found = senders.check_senders(folder, names, threads=threads, progress=progress)
    told = f"{sum(each.equal for each in found)} of {len(found)} cases equal"
    _print(SENDERS, found, [*found, senders.total(found)], [told], json=json)
    if not senders.reaches_goal(found):
        raise SystemExit(FAILURE)


def _print(
    columns: Columns,
    reports: Sequence[Report | SenderReport | ClosedReport],
    rows: Sequence[Any],
    lines: Sequence[str],
    *,
    json: bool,
) -> None:
    """Prints the reports, as JSON or as a table with lines below it."""
    if json:
        print_json([asdict(report) for report in reports])
        return
    from aqmlab.conformance.words import table
    from aqmlab.report.document.terminal import block

    screen = console(130)
    block(table(columns, rows), screen)
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)
