"""The document of a characterisation, and its tables as files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import aqmlab
from aqmlab.campaign.outcomes import (
    BETTER,
    EVEN,
    OPEN,
    OUTCOMES,
    TRADE,
    UNDECIDED,
    VIOLATION,
    WORSE,
)
from aqmlab.characterize.deployment import comparison, deployment, setup
from aqmlab.characterize.environment import NEWRENO, Environment
from aqmlab.characterize.figures import section_of
from aqmlab.characterize.more_figures import is_distribution
from aqmlab.characterize.questions import SECTIONS
from aqmlab.characterize.verdict import Line
from aqmlab.errors import StorageError
from aqmlab.numbers import NONE
from aqmlab.report.document import (
    BAD,
    GOOD,
    NEAR,
    PLAIN,
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Figure,
    Items,
    Section,
    Table,
    Text,
    Verdict,
    save,
)

if TYPE_CHECKING:
    from aqmlab.characterize import Characterization

TONES = {
    BETTER: GOOD,
    TRADE: NEAR,
    EVEN: PLAIN,
    WORSE: BAD,
    VIOLATION: BAD,
    UNDECIDED: PLAIN,
    OPEN: PLAIN,
}
QUICK = 0.25
"""Of the time of each case with `--quick`."""
SHOWN = (
    "queue_delay", "queue_delay_p95", "waiting", "delay_variation", "goodput", "goodput_ratio",
    "loss_share", "drop_share", "drops_from_queue", "mark_share", "ack_loss",
    "loss_synchronisation", "utilisation", "jain", "completion", "startup", "page_load", "mos",
    "bitrate", "stalls", "missed", "swing",
)  # fmt: skip
"""The measures in the tables of the report; the files have all."""


def write(characterization: Characterization, folder: Path, *, figures: bool = True) -> Path:
    """Writes report and tables into `folder`, and with `figures` the pictures and the report as
    Markdown, report.md; returns the path of the report.

    Raises `StorageError` if a file cannot be written.
    """
    write_tables(characterization, folder)
    page = document(characterization)
    path = save(page, folder, figures=figures)
    if figures:
        try:
            path.with_suffix(".md").write_text(page.to_markdown(), encoding="utf-8")
        except OSError as error:
            raise StorageError(error, folder, "the report is not complete") from error
    return path


def write_tables(characterization: Characterization, folder: Path) -> None:
    """Writes measures.parquet, measures.csv (a row a case, discipline, subject and measure),
    measures-runs.parquet (a row a run) and verdict.json.

    Raises `StorageError` if a file cannot be written.
    """
    table = characterization.table
    verdict = json.dumps(characterization.verdict.to_json(), indent=2, ensure_ascii=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        table.write_parquet(folder / "measures.parquet")
        table.write_csv(folder / "measures.csv")
        characterization.measures.frame.write_parquet(folder / "measures-runs.parquet")
        (folder / "verdict.json").write_text(f"{verdict}\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(error, folder, "the tables are not complete") from error


def document(of: Characterization) -> Document:
    """The whole page."""
    info, place = of.result.info, of.plan.environment
    where = f"{place.rate / 1e6:g} Mbit/s, {1e3 * place.rtt:g} ms, buffer {place.limit()} packets"
    if place.control != NEWRENO:
        where += f", bulk flows with {place.control}"
    sections: list[Section] = [setup(of, [_command(of)])]
    for line in of.verdict.lines:
        own = [each for each in of.figures if section_of(each) == line.section.number]
        sections.append(_section(of, line, own))
        if line.section.number == "4.3.1":
            sections.append(comparison())
    sections.extend(deployment(of))
    return Document(
        info.title,
        (_verdict(of), *sections, Section("How this was made", tuple(_how(of)), id="how")),
        soft=f"{where} · {of.runs:,} simulations, {info.replications} replications · "
        f"aqmlab {aqmlab.__version__}",
        head=(Text(of.verdict.headline(), "headline"), *_lists(of)),
    )


def _lists(of: Characterization) -> Iterator[Block]:
    """Strengths, trade-offs, weaknesses and violations: a line each."""
    told = (
        ("Strengths", BETTER),
        ("Trade-offs", TRADE),
        ("Weaknesses", WORSE),
        ("Violations", VIOLATION),
        ("Not decided", UNDECIDED),
    )
    lines = []
    for title, outcome in told:
        names = ", ".join(
            f"[{line.section.title}](#s{line.section.number})" for line in of.verdict.of(outcome)
        )
        if names:
            lines.append(Verdict(title, TONES[outcome], text=names))
    if lines:
        yield Items(tuple(lines), "key stacked")


def _verdict(of: Characterization) -> Section:
    main, *more = of.others
    columns = (
        Column("", label=True),
        Column("section", prose=True),
        Column(f"against {main}"),
        *map(Column, more),
        Column(f"measured, against {main}", prose=True),
    )
    rows, targets = [], {}
    for place, line in enumerate(of.verdict.lines):
        others: list[Cell] = [
            "" if line.is_alone else judged(line.findings[name].outcome) for name in more
        ]
        main_word = judged(line.main.outcome)
        section = line.section
        rows.append((section.number, section.title, main_word, *others, line.main.text))
        targets[place] = f"s{section.number}"
    key = [Verdict(word, TONES[word], text=text) for word, text in OUTCOMES.items()]
    rule = Text(
        "Each outcome follows from a rule with fixed thresholds (docs/characterize.md tells which "
        "were changed after first results), and is given only if the 99 % intervals of all its "
        "numbers lead to it.",
        "method",
    )
    table = Table(columns, tuple(rows), kind="verdict brief", targets=targets)
    return Section("The verdict", (table, Items(tuple(key), "key"), rule), id="verdict")


def judged(outcome: str) -> Verdict:
    """An outcome as the word of a document."""
    return Verdict(outcome, TONES[outcome], OUTCOMES[outcome])


def _section(of: Characterization, line: Line, figures: list[Figure]) -> Section:
    section = line.section
    requirement = f" · {section.requirement}" if section.requirement else ""
    found = {"": line.main} if line.is_alone else line.findings
    outcomes = [
        Verdict(
            each.outcome,
            TONES[each.outcome],
            OUTCOMES[each.outcome],
            f"against {name}: {each.text}" if name else each.text,
        )
        for name, each in found.items()
    ]
    blocks = (
        Text(f"{section.question}{requirement}", "soft"),
        Items(tuple(outcomes)),
        *(each for each in figures if not is_distribution(each)),
        *_notes(of, section.number),
        *_distributions([each for each in figures if is_distribution(each)]),
        *_measures(of, section.number),
    )
    return Section(f"{section.number} {section.title}", blocks, id=f"s{section.number}")


def _distributions(figures: list[Figure]) -> Iterator[Block]:
    """Those that section 2.7 asks for, on demand: each case has two."""
    if figures:
        title = "Distributions of delay and goodput (RFC 7928, section 2.7)"
        yield Section(title, tuple(figures), folded=True)


def _notes(of: Characterization, number: str) -> Iterator[Block]:
    """What the engine noted of the discipline in the section's runs, each kind once."""
    names = {
        of.plan.points[case.key]: case.name
        for case in of.plan.cases
        if (case.section, case.contender) == (number, of.discipline)
    }
    rows = of.result.pooled_notes.filter(pl.col("point").is_in(list(names)))
    rows = rows.filter(pl.col("subject").is_in(["down", "up", "first"]))
    items = []
    for _, own in rows.group_by("id", maintain_order=True):
        cases = sorted({names[n] for n in own["point"].to_list() if names[n]})
        where = f" ({'; '.join(cases)})" if cases else ""
        items.append(Text(f"{own['text'][0]}{where}"))
    if items:
        yield Items(tuple(items), "noted")


def _measures(of: Characterization, number: str) -> Iterator[Block]:
    rows = of.table.filter(pl.col("section") == number, pl.col("measure").is_in(SHOWN))
    if not rows.height:
        return
    names = [of.discipline, *of.others]
    wide = rows.pivot("discipline", index=["case", "subject", "measure"], values="mean")
    body = []
    for row in wide.to_dicts():
        place = " ".join(filter(None, (row["case"], row["subject"])))
        cells = (_number(row.get(name), row["measure"]) for name in names)
        body.append((place, row["measure"].replace("_", " "), *cells))
    columns = (Column("", label=True), Column("", label=True), *map(Column, names))
    table = Table(columns, tuple(body), kind="measures")
    yield Section("All measures (means over the runs)", (table,), folded=True)


def _number(value: float | None, measure: str) -> str:
    if value is None:
        return NONE
    if measure in ("goodput", "bitrate", "throughput"):
        return f"{value / 1e6:.3f} Mbit/s"
    if measure.endswith(("share", "loss", "synchronisation", "utilisation", "missed", "queue")):
        return f"{100 * value:.2f} %"
    if measure in ("jain", "mos", "stalls", "goodput_ratio", "swing"):
        return f"{value:.2f}"
    return f"{1e3 * value:.1f} ms"


def _command(of: Characterization) -> str:
    plan, info = of.plan, of.result.info
    own, place = plan.contenders[of.discipline], plan.environment
    command = f"aqmlab characterize {own.name}"
    command += "".join(f" --set {shlex.quote(f'{k}={v}')}" for k, v in own.settings.items())
    against = [name for name in of.others if name != "droptail"]
    command += f" --against {','.join(against)}" if against else ""
    usual = Environment()
    if place.rate != usual.rate:
        command += f" --rate {place.rate:.0f}bit"
    if place.rtt != usual.rtt:
        command += f" --rtt {1e3 * place.rtt:g}ms"
    if place.buffer != usual.buffer:
        command += f" --buffer {place.buffer:g}"
    if place.control != usual.control:
        command += f" --control {shlex.quote(str(place.control))}"
    if len(plan.sections) < len(SECTIONS):
        command += "".join(f" --section {section.number}" for section in plan.sections)
    command += " --quick" if plan.scale == QUICK else ""
    return f"{command} --replications {info.replications} --seed {info.seed}"


NOT_RUN = (
    "8.3: the theory of the control law; how steady the queue is was measured instead.",
    "11: the cost in hardware, and what a device has to tell the discipline.",
)
"""What the RFC mentions and is not in the report."""


def _how(of: Characterization) -> Iterator[Block]:
    plan = of.plan
    yield Text("What RFC 7928 mentions and is not here:")
    yield Items(tuple(map(Text, NOT_RUN)))
    yield Text(
        "Beside this page: `measures.parquet` and `measures.csv` (every measure of every case), "
        "`measures-runs.parquet` (of every run), `verdict.json`, and the results of all "
        'simulations, which `aqmlab.StudyResult.open("folder")` reads.'
    )
    yield Text(
        "Parameters of the disciplines; the limit is the buffer of each case (RFC 7928, sections "
        "3.2 and 4.3.1):"
    )
    params = (
        (each.name, ", ".join(f"{k} {v}" for k, v in each.params.items() if k != "limit"))
        for each in plan.contenders.values()
    )
    yield Facts(tuple(params))
