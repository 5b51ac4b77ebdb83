"""The report of a reproduction, made of synthetic results; names with markup are text in a report,
and a page runs only its own scripts."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode, b85decode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers import SCENARIO
from reproduce_synthetic import reproduction

import aqmlab as package
from aqmlab.errors import StorageError
from aqmlab.report.document.html import to_html
from aqmlab.reproduce import Reproduction

FIGURES = {f"figure-{number}" for number in range(2, 11)} | {"hred", "ns2", "pie-inert", "setup"}


@pytest.fixture(scope="module")
def result() -> Reproduction:
    return reproduction()


@pytest.fixture(scope="module")
def folder(result: Reproduction, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    assert result.write_report(folder) == folder / "report.html"
    return folder


class Page(HTMLParser):
    """Checks that tags are balanced and collects what the tests ask for, as a browser finds it. A
    script that has `<!--` and `<script` goes on to the second `</script>` (HTML 13.2.5.17 to
    13.2.5.31)."""

    VOID = frozenset({"meta", "link", "br", "img", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.ids: set[str] = set()
        self.targets: set[str] = set()
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.policy = ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"] or ""
        if values.get("id"):
            assert values["id"] not in self.ids
            self.ids.add(str(values["id"]))
        for key in ("src", "href"):
            target = values.get(key) or ""
            if target.startswith("#"):
                self.targets.add(target[1:])
            elif target and not target.startswith(("figures/", "data/")):
                self.outside.append(target)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        else:
            self.texts.append(data)


def test_the_page_is_whole_and_needs_nothing_else(folder: Path, result: Reproduction) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.outside == []
    assert page.targets <= page.ids
    assert page.ids >= FIGURES
    for claim in result.claims:
        assert f"claim-{claim.id}" in page.ids
    for table in result.tables:
        assert table.id in page.ids
    assert "prefers-color-scheme: dark" in text


def test_the_page_carries_every_chart(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="specs">(.*?)</script>', text, re.DOTALL)
    assert found
    specs = json.loads(found[1])
    assert set(specs) == FIGURES
    for spec in specs.values():
        assert "title" not in spec
        text = json.dumps(spec)
        assert "https://vega.github.io/schema" in text


def test_dashes_are_explained_where_there_are_any(result: Reproduction) -> None:
    (caption,) = (each.caption for each in result.figures if each.id == "figure-2")
    assert "Dashes: HRED" in caption


def test_every_figure_is_there_in_three_formats(folder: Path) -> None:
    for figure in FIGURES:
        assert (folder / f"figures/{figure}.svg").read_text(encoding="utf-8").startswith("<svg")
        assert (folder / f"figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"figures/{figure}.pdf").read_bytes().startswith(b"%PDF")


def test_axes_have_titles_with_units(result: Reproduction) -> None:
    units = re.compile(r"\((ms|s)\)$|^share of packets$|^Jain's fairness index$|^flows in the")

    def titles(spec: object) -> list[str]:
        if isinstance(spec, dict):
            own = [
                axis["title"]
                for name, axis in spec.get("encoding", {}).items()
                if name in ("x", "y") and "title" in axis
            ]
            return own + [each for value in spec.values() for each in titles(value)]
        return [each for value in spec for each in titles(value)] if isinstance(spec, list) else []

    # The picture of the set-up has no axes.
    for figure in (each for each in result.figures if each.id != "setup"):
        found = titles(figure.spec)
        assert len(found) >= 2, figure.id
        assert all(units.search(title) for title in found), found


def test_a_queue_has_one_colour_everywhere(result: Reproduction) -> None:
    colours: dict[str, set[str]] = {}
    for figure in result.figures:
        for domain, shades in re.findall(
            r'"scale": \{"domain": (\[[^]]*\]), "range": (\[[^]]*\])\}', json.dumps(figure.spec)
        ):
            for name, shade in zip(json.loads(domain), json.loads(shades), strict=True):
                colours.setdefault(name, set()).add(shade)
    assert "CoDel" in colours
    assert all(len(shades) == 1 for shades in colours.values())


def test_a_subset_makes_a_smaller_report(tmp_path: Path) -> None:
    part = reproduction(replications=2, only="paper")
    claims = {claim.id for claim in part.claims}
    assert {"median-delay", "spikes-60ms", "spikes-100ms", "response-alike", "fairness"} <= claims
    # Those about the longer path, which is another part.
    assert not claims & {"long-path", "long-path-favours", "long-path-level"}
    figures = {figure.id: figure for figure in part.figures}
    assert "figure-9" not in figures and "Dashes" not in figures["figure-2"].caption
    Page(part.write_report(tmp_path, figures=False).read_text(encoding="utf-8"))


def test_a_report_that_cannot_be_written_is_one_clear_error(
    result: Reproduction, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with pytest.raises(StorageError, match="were not written"):
        result.write_report(taken)
    with pytest.raises(ValueError, match="svg, png, pdf"):
        result.figures[0].save(tmp_path / "figure.gif")


def test_markdown() -> None:
    text = (
        "# Title\n\n## Part *one*\n\nA `<b>` and **bold** &\nmore\n\n"
        "- one\n  two\n- three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    assert re.sub(r"\s+", " ", to_html(text)).replace("> <", "><") == (
        "<h3>Part <em>one</em></h3>"
        + "<p>A <code>&lt;b&gt;</code> and <strong>bold</strong> &amp; more</p>"
        + "<ul><li>one two</li><li>three</li></ul>"
        + '<table class="text"><thead><tr><th>a</th><th>b</th></tr></thead>'
        + "<tbody><tr><td>1</td><td>2</td></tr></tbody></table>"
    )
    # HTML of others stays text, and so does a script's address.
    assert "<script" not in to_html("A\n\n<script>alert(1)</script> [x](javascript:alert(1))")
    assert "href" not in to_html("A\n\n[x](javascript:alert(1))")


HOSTILE = [
    "<!--<script>",
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "]]>'\"&lt;\\u003c",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a study whose labels and title are markup."""
    values = [{"label": label, "set": {"queue.limit": f"{50 + n}p"}} for n, label in
              enumerate(HOSTILE)]  # fmt: skip
    study = {
        "title": HOSTILE[0],
        "replications": 2,
        "scenario": SCENARIO,
        "axes": [{"name": "size", "values": values}],
    }
    report = package.Study(study).run().write_report(tmp_path_factory.mktemp("report"))
    return report.read_text(encoding="utf-8")


def test_the_charts_have_their_data_whatever_the_labels(text: str) -> None:
    """`<!--<script>` in a label once made everything behind it part of the data."""
    data, *scripts = Page(text).scripts
    assert not re.search(r"[<>&]", data)
    specs = json.loads(data)
    assert set(specs) == {"overview", "sojourn", "tradeoff"}
    for label in HOSTILE:
        assert json.dumps(label)[1:-1] in json.dumps(specs)
    assert len(scripts) == 2


def test_labels_are_text_and_nothing_else(text: str) -> None:
    page = Page(text)
    assert all(not name.startswith("on") for name, _ in page.attributes)
    shown = "".join(page.texts)
    assert all(label in shown for label in HOSTILE)


def test_only_the_scripts_of_the_page_may_run(text: str) -> None:
    page = Page(text)
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    library, own = page.scripts[1:]
    packed = b85decode(library.translate(str.maketrans(",.:/", "<>&`")))
    scripts = [own.encode(), zlib.decompress(packed)]
    digests = {f"'sha256-{b64encode(sha256(each).digest()).decode()}'" for each in scripts}
    assert set(rules["script-src"].split()) == digests
    assert rules["default-src"] == "'none'"
    assert text.index("Content-Security-Policy") < text.index("<style>") < text.index("<script")
