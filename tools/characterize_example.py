"""The example results in the guide: several disciplines beside each other.

python -m tools.characterize_example docs/characterize-results.md
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import aqmlab
from aqmlab.campaign import Campaign, Question
from aqmlab.campaign.outcomes import Beside
from aqmlab.packs.rfc7928 import characterize

DISCIPLINES = ("codel", "pie", "fq_codel", "cake", "dualpi2")
MIX_BOTH = "mix, symmetric, two AQMs"
PLACES = (
    # Section, case, subject, metric, label, factor, digits.
    ("4.3.1", "5 ms", "down", "sojourn_mean", "target 5 ms: mean queuing delay, ms", 1e3, 1),
    ("4.3.1", "5 ms", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("4.3.1", "40 ms", "down", "sojourn_mean", "target 40 ms: mean queuing delay, ms", 1e3, 1),
    ("4.3.1", "40 ms", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("5.1.1", "", "down", "sojourn_mean", "one NewReno flow: queue, ms", 1e3, 1),
    ("5.1.1", "", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("5.1.1", "TFRC", "down", "sojourn_mean", "one TFRC flow: queue, ms", 1e3, 1),
    ("5.1.1", "TFRC", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("5.1.2", "IW 10", "short", "completion_mean", "50 packets, IW 10: done in, s", 1.0, 2),
    ("5.2", "", "down", "sojourn_mean", "one CUBIC flow: queue, ms", 1e3, 1),
    ("5.2", "", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("5.3", "UDP 1.5 C", "down", "sojourn_mean", "UDP above capacity: queue, ms", 1e3, 1),
    ("5.4", "", "ledbat", "goodput", "LEDBAT beside NewReno, Mbit/s", 1e-6, 2),
    ("6.2", "RTT 10 ms", "cat2", "goodput", "10 ms beside 100 ms, Mbit/s", 1e-6, 2),
    ("6.2", "RTT 560 ms", "cat2", "goodput", "560 ms beside 100 ms, Mbit/s", 1e-6, 2),
    ("7.2", "IV", "web", "page_load_mean", "pages among bursts, s", 1.0, 2),
    ("8.2.2", "", "down", "sojourn_mean", "mild: queue, ms", 1e3, 1),
    ("8.2.2", "", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("8.2.2", "", "down", "drop_share", "dropped, %", 100.0, 2),
    ("8.2.2", "", "down", "loss_synchronisation", "flows that lose at once, %", 100.0, 0),
    ("8.2.4", "", "down", "sojourn_mean", "heavy: queue, ms", 1e3, 1),
    ("8.2.4", "", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("8.2.4", "", "down", "drop_share", "dropped, %", 100.0, 2),
    ("8.2.6", "slow", "low", "phase_delay", "a tenth of the rate: queue, ms", 1e3, 0),
    ("8.2.6", "slow", "all", "goodput", "goodput, Mbit/s", 1e-6, 1),
    ("8.2.6", "fast", "all", "goodput", "changes each 100 ms, Mbit/s", 1e-6, 1),
    ("8.2.6", "LTE", "down", "sojourn_mean", "LTE: queue, ms", 1e3, 0),
    ("8.2.6", "LTE", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("8.2.6", "Wi-Fi", "down", "sojourn_mean", "Wi-Fi: queue, ms", 1e3, 0),
    ("8.2.6", "Wi-Fi", "all", "goodput", "goodput, Mbit/s", 1e-6, 2),
    ("9.1", "", "web", "page_load_mean", "mix: pages, s", 1.0, 2),
    ("9.1", "", "voip", "mos", "call, MOS", 1.0, 2),
    ("9.1", "", "video", "bitrate", "video, Mbit/s", 1e-6, 2),
    ("9.1", "", "bulk", "goodput", "bulk, Mbit/s", 1e-6, 2),
    ("9.2", "symmetric, two AQMs", "down", "sojourn_mean", "both ways: queue, ms", 1e3, 1),
    ("9.2", MIX_BOTH, "web", "page_load_mean", "mix in both directions: pages down, s", 1.0, 2),
    ("9.2", MIX_BOTH, "web-up", "page_load_mean", "pages up, s", 1.0, 2),
    ("9.2", MIX_BOTH, "voip", "mos", "call, MOS", 1.0, 2),
    ("10.2", "same", "a", "waiting", "two in a row: both queues, ms", 1e3, 1),
)


def page(result: Campaign) -> str:
    """The results as Markdown."""
    names = ["droptail", *DISCIPLINES]
    info = result.result.info
    date = datetime.now(UTC).date().isoformat()
    lines = [
        "# RFC 7928: drop-tail, CoDel, PIE, FQ-CoDel, CAKE and DualPI2",
        "",
        f"Made by `make characterize` on {date}, aqmlab {aqmlab.__version__}: "
        f"{result.plan.pack.where}, "
        f"{result.runs:,} simulations, {info.replications} replications, seed {info.seed}. "
        "Every discipline with its defaults. Means over the replications. An outcome is given only "
        "if the 99 % intervals of its numbers lead to it. "
        "[characterize.md](characterize.md) describes the runs.",
        "",
        "| section | | " + " | ".join(names) + " |",
        "|---|---|" + "---|" * len(names),
    ]
    for number, case, subject, metric, title, factor, digits in PLACES:
        cells = []
        for name in names:
            value = result.at(number, name).mean(case, metric, subject) * factor
            cells.append(f"{value:.{digits}f}" if value == value else "–")
        lines.append(f"| {number} | {title} | " + " | ".join(cells) + " |")
    lines += ["", *_footnotes(result)]
    lines += [
        "",
        "## Verdicts against drop-tail",
        "",
        "| section | | " + " | ".join(DISCIPLINES) + " |",
        "|---|---|" + "---|" * len(DISCIPLINES),
    ]
    for question in result.plan.pack.questions:
        outcomes = [_finding(result, question, name)[0] for name in DISCIPLINES]
        lines.append(f"| {_title(question, ' | ')} | " + " | ".join(outcomes) + " |")
    for name in DISCIPLINES:
        lines += ["", f"### {name}", ""]
        for question in result.plan.pack.questions:
            outcome, text = _finding(result, question, name)
            lines.append(f"- {_title(question)}: **{outcome}**; {text}")
    return "\n".join(lines) + "\n"


def _footnotes(result: Campaign) -> list[str]:
    """The sections in which the buffer of the set-up triggered BLUE, by discipline."""
    rows = result.result.pooled_notes.filter(id="blue-set-off")
    points = set(rows["point"].to_list())
    found = []
    for name in DISCIPLINES:
        sections = dict.fromkeys(
            section
            for (section, who, _), point in result.plan.points.items()
            if who == name and point in points
        )
        if sections:
            found.append(
                f"{name}: in {', '.join(sections)} the buffer overflowed and triggered BLUE, whose "
                "drops are a quarter or more of the signals. These numbers say more about the "
                "buffer of the set-up, which every discipline has, than about the discipline."
            )
    return found


def _title(question: Question, between: str = " ") -> str:
    return between.join(question.title.split(maxsplit=1))


def _finding(result: Campaign, question: Question, name: str) -> tuple[str, str]:
    assert question.judge is not None
    own, other = (result.at(question.id, each) for each in (name, "droptail"))
    found = question.judge(Beside(own, other))
    return found.outcome, found.text


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {Path(sys.argv[0]).name} FILE")
    first, *others = DISCIPLINES
    made = characterize(first, against=others)
    Path(sys.argv[1]).write_text(page(made), encoding="utf-8")
