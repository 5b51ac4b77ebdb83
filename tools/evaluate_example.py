"""The example results in the guide: several controls, one overview each.

python -m tools.evaluate_example docs/evaluate-results.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import aqmlab
from aqmlab.evaluate import GROUPS, QUICK_REPLICATIONS, Evaluation, evaluate
from aqmlab.evaluate.console import number

CONTROLS = ("cubic", "bbr", "bbr3", "prague")


def page(results: list[Evaluation]) -> str:
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


def _overview(result: Evaluation) -> Iterator[str]:
    standard = [each for each in result.standard if each != result.control]
    yield f"## {result.control}"
    yield ""
    yield (
        "| criterion | level | measure; case | " + " | ".join((result.control, *standard))
        + " | compared | behind |"
    )  # fmt: skip
    yield "|---|---|---|" + "---:|" * (1 + len(standard)) + "---|---:|"
    group = ""
    for line in result.lines:
        if line.criterion.group != group:
            group = line.criterion.group
            yield f"| **{GROUPS[group]}** |" + " |" * (4 + 1 + len(standard))
        row = line.worst
        numbers = [number(row.value, row), *(number(row.others[name], row) for name in standard)]
        behind = sum(each.excess > 0 for each in line.rows)
        cells = (
            line.criterion.title,
            line.criterion.level,
            f"{row.measure}; {row.case}",
            *numbers,
            row.words,
            f"{behind} of {len(line.rows)}",
        )
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Runs the evaluations and writes the page that is named on the command line."""
    results = [evaluate(name, replications=QUICK_REPLICATIONS) for name in CONTROLS]
    Path(sys.argv[1]).write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
