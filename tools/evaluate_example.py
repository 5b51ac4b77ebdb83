"""The example results in the guide: several controls, one overview each.

python -m tools.evaluate_example docs/evaluate-results.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import aqmlab
from aqmlab.campaign import Campaign
from aqmlab.campaign.beside import value_of
from aqmlab.packs.rfc9743 import GROUPS, evaluate

CONTROLS = ("cubic", "bbr", "bbr3", "prague")
REPLICATIONS = 10


def page(results: list[Campaign]) -> str:
    """The results as Markdown."""
    date = datetime.now(UTC).date().isoformat()
    lines = [
        "# RFC 9743: CUBIC, BBR, BBRv3 and Prague",
        "",
        f"Made by `make evaluate` on {date}, aqmlab {aqmlab.__version__}: "
        f"{results[0].result.info.replications} replications, seed {results[0].result.info.seed}. "
        "[Explanation](evaluate.md). Each line shows the measure in which the "
        "control is furthest behind both Reno and CUBIC, or the first one of the criterion if it "
        "is behind in none. *Behind* counts the measures in which it is.",
        "",
    ]
    for result in results:
        lines += [*_overview(result), ""]
    return "\n".join(lines)


def _overview(result: Campaign) -> Iterator[str]:
    standard = result.others
    yield f"## {result.subject}"
    yield ""
    yield (
        "| criterion | level | measure; case | " + " | ".join((result.subject, *standard))
        + " | compared | behind |"
    )  # fmt: skip
    yield "|---|---|---|" + "---:|" * (1 + len(standard)) + "---|---:|"
    group = ""
    for line in result.lines:
        if line.question.group != group:
            group = line.question.group
            yield f"| **{GROUPS[group]}** |" + " |" * (4 + 1 + len(standard))
        row = line.worst
        numbers = [
            value_of(row.value, row),
            *(value_of(row.others[name], row) for name in standard),
        ]
        cells = (
            line.question.title,
            line.question.level,
            f"{row.own.metric}; {row.own.case}",
            *numbers,
            row.words,
            f"{line.behind} of {len(line.rows)}",
        )
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Runs the evaluations and writes the page that is named on the command line."""
    results = [evaluate(name, replications=REPLICATIONS) for name in CONTROLS]
    Path(sys.argv[1]).write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
