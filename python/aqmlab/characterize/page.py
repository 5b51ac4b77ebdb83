"""The report of a characterisation, and its tables as files."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

import aqmlab
from aqmlab.characterize.figures import section_of
from aqmlab.characterize.rules import BETTER, EVEN, OPEN, OUTCOMES, TRADE, VIOLATION, WORSE
from aqmlab.characterize.verdict import Line
from aqmlab.errors import StorageError
from aqmlab.report import save
from aqmlab.report.markdown import inline
from aqmlab.report.page import document, figure_html

if TYPE_CHECKING:
    from aqmlab.characterize import Characterization
    from aqmlab.reproduce.model import Figure

CHIPS = {
    BETTER: "good",
    TRADE: "near",
    EVEN: "plain",
    WORSE: "bad",
    VIOLATION: "bad",
    OPEN: "plain",
}
SHOWN = (
    "queue_delay", "queue_delay_p95", "waiting", "delay_variation", "goodput", "goodput_ratio",
    "loss_share", "drop_share", "drops_from_queue", "mark_share", "ack_loss",
    "loss_synchronisation", "utilisation", "jain", "completion", "startup", "page_load", "mos",
    "bitrate", "stalls", "missed",
)  # fmt: skip
"""The measures in the tables of the report; the files have all."""
STYLE = """
main { max-width: 860px; }
.verdict td { text-align: left; white-space: normal; vertical-align: top; }
.verdict thead th { text-align: left; }
.verdict td.mark { white-space: nowrap; }
.verdict tbody tr > * { border-bottom: 1px solid var(--line); }
.verdict { border-spacing: 0; }
.verdict th[scope=row] { white-space: nowrap; vertical-align: top; }
.verdict th[scope=row] a { color: inherit; text-decoration: none; }
.verdict th[scope=row] a:hover { text-decoration: underline; }
.plain { background: var(--panel); color: var(--soft); }
.lists {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 12px;
  margin: 18px 0 6px; font-size: 15px;
}
.lists div { background: var(--panel); border-radius: 10px; padding: 12px 16px; }
.lists b { display: block; margin-bottom: 4px; }
.lists ul { margin: 0; padding: 0 0 0 18px; }
.headline { font-size: 19px; line-height: 1.45; max-width: 60ch; }
.chart { min-height: 0; overflow-x: auto; }
.section { margin-top: 52px; }
.section h2 { margin: 0 0 2px; }
details { margin: 14px 0 0; } summary { cursor: pointer; color: var(--soft); font-size: 14.5px; }
table.measures td, table.measures th { padding: 3px 8px 3px 0; font-size: 13.5px; }
.noted { font-size: 14px; color: var(--soft); margin: 10px 0 0; padding: 0 0 0 18px; }
"""


def write(characterization: Characterization, folder: Path) -> Path:
    """Writes report, figures and tables into `folder`; returns the path of the report.

    Raises `StorageError` if a file cannot be written.
    """
    write_tables(characterization, folder)
    figures = characterization.figures
    return save(folder, html(characterization, figures), figures)


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


def html(characterization: Characterization, figures: list[Figure]) -> str:
    """The whole page."""
    body = "\n".join(_parts(characterization, figures))
    return document(characterization.result.info.title, body, figures, STYLE)


def _parts(of: Characterization, figures: list[Figure]) -> Iterator[str]:
    yield _head(of)
    yield _verdict(of)
    for line in of.verdict.lines:
        own = [each for each in figures if section_of(each) == line.section.number]
        yield _section(of, line, own)
    yield _how(of)


def _head(of: Characterization) -> str:
    info, place = of.result.info, of.plan.environment
    where = f"{place.rate / 1e6:g} Mbit/s, {1e3 * place.rtt:g} ms, buffer {place.limit()} packets"
    return f"""<header>
<h1>{escape(info.title)}</h1>
<p class="soft">{where} · {of.runs:,} simulations, {info.replications} replications ·
aqmlab {aqmlab.__version__}</p>
<p class="headline">{escape(of.verdict.headline())}</p>
{_lists(of)}
</header>"""


def _lists(of: Characterization) -> str:
    blocks = []
    for title, outcome in (
        ("Strengths", BETTER),
        ("Trade-offs", TRADE),
        ("Weaknesses", WORSE),
        ("Violations", VIOLATION),
    ):
        lines = of.verdict.of(outcome)
        items = "".join(
            f"<li><a href='#s{line.section.number}'>{escape(line.section.title)}</a></li>"
            for line in lines
        )
        if items:
            chip = CHIPS[outcome]
            blocks.append(
                f"<div><b><span class='chip {chip}'>{title}</span></b><ul>{items}</ul></div>"
            )
    return f"<div class='lists'>{''.join(blocks)}</div>"


def _verdict(of: Characterization) -> str:
    main, *more = of.others
    head = "".join(f"<th>{escape(name)}</th>" for name in more)
    rows = []
    for line in of.verdict.lines:
        cells = "".join(
            "<td></td>"
            if line.is_alone
            else f"<td class='mark'>{_chip(line.findings[name].outcome)}</td>"
            for name in more
        )
        number = line.section.number
        rows.append(
            f"<tr><th scope='row'><a href='#s{number}'>{number}</a></th>"
            f"<td><a href='#s{number}'>{escape(line.section.title)}</a></td>"
            f"<td class='mark'>{_chip(line.main.outcome)}</td>{cells}"
            f"<td>{escape(line.main.text)}</td></tr>"
        )
    key = "".join(f"<li>{_chip(word)} {escape(text)}</li>" for word, text in OUTCOMES.items())
    return f"""<h2 id="verdict">The verdict</h2>
<div class="scroll"><table class="verdict"><thead><tr><th></th><th></th>
<th>against {escape(main)}</th>{head}<th>measured, against {escape(main)}</th></tr></thead>
<tbody>{"".join(rows)}</tbody></table></div>
<ul class="key">{key}</ul>
<p class="method">Each outcome follows from a rule that was fixed before anything was
measured, with one exception: that 4.4 does not judge disciplines with a queue for each flow
was added after first results.</p>"""


def _chip(outcome: str) -> str:
    return f"<span class='chip {CHIPS[outcome]}'>{outcome}</span>"


def _section(of: Characterization, line: Line, figures: list[Figure]) -> str:
    section = line.section
    requirement = f" · {escape(section.requirement)}" if section.requirement else ""
    found = {"": line.main} if line.is_alone else line.findings
    others = "".join(
        f"<li>{f'against {escape(name)}: ' if name else ''}{_chip(each.outcome)} "
        f"{escape(each.text)}</li>"
        for name, each in found.items()
    )
    drawn = "".join(map(figure_html, figures))
    return f"""<section class="section" id="s{section.number}">
<h2>{section.number} {escape(section.title)}</h2>
<p class="soft">{escape(section.question)}{requirement}</p>
<ul>{others}</ul>
{drawn}
{_notes(of, section.number)}
{_measures(of, section.number)}
</section>"""


def _notes(of: Characterization, number: str) -> str:
    """What the engine noted of the discipline in the section's runs, each kind once."""
    points = {n for n, case in enumerate(of.plan.cases) if case.section == number}
    contenders = {n: case.contender for n, case in enumerate(of.plan.cases)}
    names = {n: case.name for n, case in enumerate(of.plan.cases)}
    rows = of.result.pooled_notes.filter(pl.col("point").is_in(points))
    rows = rows.filter(pl.col("subject").is_in(["down", "up", "first"]))
    items = []
    for (ident,), part in rows.group_by("id", maintain_order=True):
        own = part.filter(
            pl.col("point").is_in([n for n in points if contenders[n] == of.discipline])
        )
        if not own.height:
            continue
        cases = sorted({names[n] for n in own["point"].to_list() if names[n]})
        where = f" ({escape('; '.join(cases))})" if cases else ""
        items.append(f"<li title='{escape(str(ident))}'>{inline(own['text'][0])}{where}</li>")
    return f"<ul class='noted'>{''.join(items)}</ul>" if items else ""


def _measures(of: Characterization, number: str) -> str:
    rows = of.table.filter(pl.col("section") == number, pl.col("measure").is_in(SHOWN))
    if not rows.height:
        return ""
    names = [of.discipline, *of.others]
    wide = rows.pivot("discipline", index=["case", "subject", "measure"], values="mean")
    body = []
    for row in wide.to_dicts():
        cells = "".join(f"<td>{_number(row.get(name), row['measure'])}</td>" for name in names)
        place = " ".join(filter(None, (row["case"], row["subject"])))
        body.append(f"<tr><th>{escape(place)}</th><th>{_name(row['measure'])}</th>{cells}</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return (
        "<details><summary>All measures (means over the runs)</summary><div class='scroll'>"
        f"<table class='measures'><thead><tr><th></th><th></th>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div></details>"
    )


def _name(measure: str) -> str:
    return escape(measure.replace("_", " "))


def _number(value: float | None, measure: str) -> str:
    if value is None:
        return "–"
    if measure in ("goodput", "bitrate", "throughput"):
        return f"{value / 1e6:.3f} Mbit/s"
    if measure.endswith(("share", "loss", "synchronisation", "utilisation", "missed", "queue")):
        return f"{100 * value:.2f} %"
    if measure in ("jain", "mos", "stalls", "goodput_ratio"):
        return f"{value:.2f}"
    return f"{1e3 * value:.1f} ms"


def _how(of: Characterization) -> str:
    plan, info = of.plan, of.result.info
    own = plan.contenders[0]
    settings = "".join(f" --set {shlex.quote(f'{k}={v}')}" for k, v in own.settings.items())
    against = [name for name in of.others if name != "droptail"]
    command = f"aqmlab characterize {own.name}{settings}"
    command += f" --against {','.join(against)}" if against else ""
    command += f" --replications {info.replications} --seed {info.seed}"
    params = "".join(
        f"<dt>{escape(each.name)}</dt><dd>"
        + escape(
            ", ".join(f"{key} {value}" for key, value in each.params.items() if key != "limit")
        )
        + "</dd>"
        for each in plan.contenders
    )
    return f"""<h2 id="how">How this was made</h2>
<p>The same command gives the same numbers on any machine:</p>
<pre>{escape(command)}</pre>
<p>Beside this page: <code>measures.parquet</code> and <code>measures.csv</code> (every measure of
every case), <code>measures-runs.parquet</code> (of every run), <code>verdict.json</code>, and the
results of all simulations, which <code>aqmlab.StudyResult.open("folder")</code> reads.</p>
<p>Parameters of the disciplines; the limit is the buffer of each case (RFC 7928, sections 3.2
and 4.3.1):</p>
<dl>{params}</dl>"""
