"""Names with markup are text in a report; the page runs only its own scripts."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from helpers import SCENARIO

import aqmlab as package
from aqmlab.report.document.html import packed

HOSTILE = [
    "<!--<script>",
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "]]>'\"&lt;\\u003c",
]


class Page(HTMLParser):
    """What a browser makes of a page: scripts, attributes and texts. A script that has `<!--`
    and `<script` goes on to the second `</script>` (HTML 13.2.5.17 to 13.2.5.31)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.policy = ""
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")
        self.attributes += attrs
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data
        else:
            self.texts.append(data)


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
    scripts = [own.encode(), zlib.decompress(packed(library))]
    digests = {f"'sha256-{b64encode(sha256(each).digest()).decode()}'" for each in scripts}
    assert set(rules["script-src"].split()) == digests
    assert rules["default-src"] == "'none'"
    assert text.index("Content-Security-Policy") < text.index("<style>") < text.index("<script")
