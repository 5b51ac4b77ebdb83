"""The HTML page of a reproduction: everything it needs is inside."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aqmlab
from aqmlab.report.markdown import inline, to_html
from aqmlab.statistics import (
    AGREES,
    CLOSE,
    DIFFERS,
    FAILS,
    HOLDS,
    PARTLY,
    UNPUBLISHED,
    VERDICTS,
)

if TYPE_CHECKING:
    from aqmlab.reproduce import Reproduction
    from aqmlab.reproduce.model import Cell, Claim, Figure, Table
    from aqmlab.results import StudyResult

EMBED = "window.vegaEmbed = vegaEmbed;"
"""What the page's own script needs of the bundled libraries."""
SHOWN_NOTES = 3
HERE = Path(__file__).parent
CHIPS = {AGREES: "good", CLOSE: "near", DIFFERS: "bad", HOLDS: "good", PARTLY: "near", FAILS: "bad"}


def html(reproduction: Reproduction) -> str:
    """The whole page."""
    body = "\n".join(_sections(reproduction))
    return document(reproduction.title, body, reproduction.figures)


def document(title: str, body: str, figures: Iterable[Figure], style: str = "") -> str:
    """A page with everything it needs inside: the charts are drawn into the elements that
    have the figures' ids. `style` comes after the style of all pages."""
    specs = in_script(json.dumps({figure.id: figure.spec for figure in figures}))
    scripts = [_libraries(), f"\n{_own('page.js')}"]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(scripts)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{_own("style.css")}{style}</style>
</head>
<body>
<main>
{body}
</main>
<script type="application/json" id="specs">{specs}</script>
{"".join(f"<script>{script}</script>" for script in scripts)}
</body>
</html>
"""


def in_script(text: str) -> str:
    """JSON that may stand in a script element, whatever texts are in it: `<!--<script>` alone
    would swallow the rest of the page."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def policy(scripts: Iterable[str]) -> str:
    """A content security policy under which these scripts run, no others, and nothing is
    loaded from anywhere. The charts' expressions need `eval` inside of them."""
    digests = (sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{b64encode(each).decode()}'" for each in digests)
    return (
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sections(reproduction: Reproduction) -> Iterator[str]:
    yield _head(reproduction)
    published = [each for each in reproduction.tables if each.reference == "published"]
    others = [each for each in reproduction.tables if each.reference != "published"]
    if reproduction.warnings:
        yield "<h2 id='warnings'>What to know first</h2>"
        for each in reproduction.warnings:
            where = f"{each.where}; {each.runs:,} runs"
            yield _note(each.text, f"<p class='soft'>{escape(where)}</p>", "warning")
    yield "<h2 id='tables'>Published and measured</h2>"
    yield _legend("published")
    if reproduction.without_intervals:
        yield f"<p class='soft'>{escape(reproduction.without_intervals)}</p>"
    yield from (_table(each) for each in published)
    if reproduction.causes:
        yield "<h2 id='causes'>Why some cells differ</h2>"
        for cause in reproduction.causes:
            head = f"<h3>{escape(cause.title)}</h3>"
            yield f"<div class='note'>{head}<p>{inline(cause.text)}</p></div>"
    if reproduction.claims:
        yield "<h2 id='claims'>The paper's statements, checked</h2>"
        yield "<ol class='claims'>" + "".join(map(_claim, reproduction.claims)) + "</ol>"
    if reproduction.contradictions:
        yield "<h2 id='contradictions'>Where the paper contradicts itself</h2>"
        for remark in reproduction.contradictions:
            head = f"<h3>{escape(remark.title)}</h3>"
            yield f"<div class='note'>{head}<p>{inline(remark.text)}</p></div>"
    if reproduction.figures:
        yield "<h2 id='figures'>Figures</h2>"
        yield (
            "<p class='soft'>A click on an entry of a legend singles out that queue; pointing at a "
            "bar or line shows its numbers.</p>"
        )
        yield from map(figure_html, reproduction.figures)
    if others:
        names = sorted({each.reference for each in others})
        yield f"<h2 id='simulators'>Beside {escape(', '.join(names))}</h2>"
        yield (
            "<p>The same scenario in another program. A published number can be off because the "
            "paper does not say everything; here less is left unsaid, so these cells test our "
            "engine.</p>"
        )
        yield _legend(", ".join(names))
        yield from (_table(each) for each in others)
    yield _how(reproduction)


def _head(reproduction: Reproduction) -> str:
    simulators = any(each.reference != "published" for each in reproduction.tables)
    present = [
        ("warnings", "What to know first", bool(reproduction.warnings)),
        ("tables", "Published and measured", True),
        ("causes", "Why some cells differ", bool(reproduction.causes)),
        ("claims", "Statements", bool(reproduction.claims)),
        ("contradictions", "Contradictions", bool(reproduction.contradictions)),
        ("figures", "Figures", bool(reproduction.figures)),
        ("simulators", "Beside another simulator", simulators),
        ("how", "How this was made", True),
    ]
    links = "".join(f"<a href='#{ident}'>{label}</a>" for ident, label, there in present if there)
    part = f" (only {', '.join(reproduction.only)})" if reproduction.only else ""
    return f"""<header>
<h1>{escape(reproduction.title)}</h1>
<p class="soft">{escape(reproduction.published.citation)}</p>
<p class="lead">The study was run again: {reproduction.runs:,} simulations{escape(part)},
{escape(reproduction.extent)}. This page shows every published
number beside the measured one, the paper's statements checked one by one, and its figures drawn
again.</p>
<div class="tiles">{_tiles(reproduction)}</div>
<nav>{links}</nav>
</header>"""


def _tiles(reproduction: Reproduction) -> str:
    tiles = []
    compared = [t for t in reproduction.tables if t.compared and t.reference == "published"]
    places = [table.name.partition(":")[0] for table in compared]
    for table, place in zip(compared, places, strict=True):
        rows = reproduction.published.main_rows(table.id)
        own = [
            cell
            for cell in table.cells
            if (cell.row in rows if rows else cell.published is not None)
        ]
        good = sum(cell.verdict in (AGREES, CLOSE) for cell in own)
        name = place if places.count(place) == 1 else table.name
        label = f"cells agree or are close: {name}, as printed"
        tiles.append((f"{good} of {len(own)}", label))
    theirs = [c for t in reproduction.tables if t.reference != "published" for c in t.cells]
    if theirs:
        good = sum(cell.verdict in (AGREES, CLOSE) for cell in theirs)
        name = next(t.reference for t in reproduction.tables if t.reference != "published")
        tiles.append(
            (f"{good} of {len(theirs)}", f"cells agree or are close: {name}, same scenario")
        )
    if reproduction.claims:
        good = sum(claim.verdict == HOLDS for claim in reproduction.claims)
        partly = sum(claim.verdict == PARTLY for claim in reproduction.claims)
        more = f", {partly} in part" if partly else ""
        tiles.append((f"{good} of {len(reproduction.claims)}", f"statements hold{more}"))
    return "".join(
        f"<div class='tile'><b>{escape(number)}</b><span>{escape(label)}</span></div>"
        for number, label in tiles
    )


def _legend(reference: str) -> str:
    words = "".join(
        f"<li><span class='chip {CHIPS[word]}'>{word}</span> {escape(VERDICTS[word])}</li>"
        for word in (AGREES, CLOSE, DIFFERS)
    )
    return (
        f"<p class='soft'>In each cell: <b>measured</b>, then {escape(reference)}; below, the 95 % "
        f"interval of the measured value.</p><ul class='key'>{words}</ul>"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = []
    for row in table.rows:
        note = table.notes.get(row)
        more = f"<small>{escape(note)}</small>" if note else ""
        cells = "".join(_cell(table.cell(row, column)) for column in table.columns)
        rows.append(f"<tr><th scope='row'>{escape(row)}{more}</th>{cells}</tr>")
    return (
        f"<h3 id='{table.id}'>{escape(table.name)} ({table.unit})</h3><div class='scroll'><table>"
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        f"<p class='method'>Intervals: {escape(table.method)}.</p>"
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    reference, kind = "", "" if cell.verdict == UNPUBLISHED else cell.verdict
    title = VERDICTS[cell.verdict]
    if cell.published is not None:
        reference = f" <span class='ref'>{cell.published:.3f}</span>"
        difference = cell.difference
        if difference is not None:
            title = f"{cell.verdict}: {100 * difference:+.1f} %"
    return (
        f"<td class='{kind}' title='{escape(title)}'><b>{cell.measured:.3f}</b>{reference}"
        f"<small>{cell.low:.3f}–{cell.high:.3f}</small></td>"
    )


def _claim(claim: Claim) -> str:
    return (
        f"<li id='claim-{claim.id}'><b>{escape(claim.text)}</b> "
        f"<span class='chip {CHIPS[claim.verdict]}'>{claim.verdict}</span>"
        f"<p>{escape(claim.evidence)}</p></li>"
    )


def figure_html(figure: Figure) -> str:
    """The place of a figure on a page, with links to its files."""
    files = " · ".join(
        f"<a href='figures/{figure.id}.{ending}'>{ending.upper()}</a>"
        for ending in ("svg", "png", "pdf")
    )
    return (
        f"<figure><h3>{escape(figure.title)}</h3><p class='message'>{escape(figure.message)}</p>"
        f"<div class='chart' id='{figure.id}' role='img' "
        f"aria-label='{escape(figure.message)}'></div>"
        f"<figcaption>{inline(figure.caption)} {files}</figcaption></figure>"
    )


def notes_html(notes: Sequence[str]) -> str:
    """What a reader of results has to know; the first few at once, the others on demand."""
    shown = "".join(_note(text, "", "warning") for text in notes[:SHOWN_NOTES])
    rest = "".join(_note(text, "", "warning") for text in notes[SHOWN_NOTES:])
    if not rest:
        return shown
    count = len(notes) - SHOWN_NOTES
    return f"{shown}<details><summary>{count} more to know</summary>{rest}</details>"


def made_html(command: str, folder: Path) -> str:
    """The command that made the results, and how to read them if they are in `folder`."""
    from aqmlab.manifest import MANIFEST

    line = f"<pre>{escape(command)}</pre>" if command else ""
    if not (folder / MANIFEST).exists():
        return line
    return (
        f"{line}<p>The results are Parquet files beside this page; "
        '<code>aqmlab.StudyResult.open("FOLDER")</code> reads them as polars frames. '
        "<code>scenarios.json</code> has every parameter, defaults included.</p>"
    )


def _note(text: str, more: str, kind: str) -> str:
    return f"<div class='note {kind}'><p>{inline(text)}</p>{more}</div>"


def _how(reproduction: Reproduction) -> str:
    info = reproduction.result.info
    facts = [
        ("Program", f"aqmlab {aqmlab.__version__}"),
        (
            "Simulations",
            f"{reproduction.runs:,}: {reproduction.extent}",
        ),
        ("Seed", f"{info.seed}; replication r draws the same random numbers at every point"),
        *(fact for result in reproduction.results.values() for fact in _study(result)),
    ]
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    readme = reproduction.published.folder / "README.md"
    about = to_html(readme.read_text(encoding="utf-8")) if readme.exists() else ""
    return f"""<h2 id="how">How this was made</h2>
<p>The same command on any machine, with any number of cores, gives the same numbers:</p>
<pre>{escape(reproduction.command)}</pre>
<p>The results are Parquet files beside this page;
<code>aqmlab.StudyResult.open("folder")</code> reads them.</p>
<dl>{rows}</dl>
{about}"""


def _study(result: StudyResult) -> Iterable[tuple[str, str]]:
    """What a part consists of."""
    yield f"Digest of “{result.info.name}”", result.info.digest
    for name, labels in result.info.axes:
        yield f"Axis “{name}”", ", ".join(labels)
    yield from _scenario(result.scenarios[0])


def _scenario(scenario: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Links and transport of the first point, in words."""
    for name, link in scenario["links"].items():
        queue = link["queue"]
        label = queue if isinstance(queue, str) else queue.get("discipline", "")
        yield f"Link “{name}”", f"{link['rate']}, {link['delay']}, {label}"
    for name, flow in scenario["flows"].items():
        transport = flow.get("transport", {})
        yield f"Flows “{name}”", ", ".join(f"{k} {v}" for k, v in transport.items())


@cache
def _libraries() -> str:
    """The libraries of the page's script. To bundle them takes a second, so they are kept in
    the user's cache, if there is one."""
    import vl_convert

    kept = _cache() / f"vega-embed-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    text = vl_convert.javascript_bundle(EMBED).replace("</script", "<\\/script")
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(kept)
    return text


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return Path(given or Path("~/.cache").expanduser()) / "aqmlab"


def _own(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
