"""Reports on a telephone and in the dark: nothing is wider than the page, and all can be read."""

from pathlib import Path
from typing import Any

import pytest
from browser import Browser

import aqmlab
from aqmlab import search
from aqmlab.report.document import (
    Column,
    Document,
    Estimate,
    Figure,
    Markdown,
    Table,
    Verdict,
    panels,
    save,
)
from aqmlab.report.setup_diagram import diagram

pytestmark = pytest.mark.needs("chromium")
LINK = {"rate": "2mbit", "delay": "5ms"}
SCENARIO = {
    "duration": "2s",
    "links": {"down": LINK, "up": LINK},
    "flows": {
        "a_long_download": {"path": "down", "return_path": "up", "start": {"uniform": ["0s", "1s"]}}
    },
}
CLIPPED = """[...document.querySelectorAll('svg text')].filter((text) => {
  const [box, all] = [text, text.closest('svg')].map((each) => each.getBoundingClientRect());
  return box.width && (box.left < all.left - 1 || box.right > all.right + 1
    || box.top < all.top - 1 || box.bottom > all.bottom + 1);
}).map((text) => text.textContent)"""
FAINT = """(() => {
  const light = (text) => {
    const parts = text.match(/[0-9.]+/g).slice(0, 3).map((each) => each / 255);
    const linear = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('svg text')].filter((text) => {
    const two = [paper, light(getComputedStyle(text).fill)];
    return text.textContent && (Math.max(...two) + 0.05) / (Math.min(...two) + 0.05) < 4.5;
  }).map((text) => text.textContent);
})()"""
"""Words with less contrast than 4.5 (WCAG 2.2, criterion 1.4.3)."""
COVERED = """[...document.querySelectorAll('.role-axis-label')].flatMap((axis) => {
  const shown = [...axis.querySelectorAll('text')].filter((each) => +each.style.opacity !== 0
    && each.getAttribute('opacity') !== '0');
  const boxes = shown.map((each) => each.getBoundingClientRect());
  return boxes.slice(1).filter((box, i) => box.height < 25 && boxes[i].height < 25
    && Math.abs(box.top - boxes[i].top) < 2 && box.left < boxes[i].right);
}).length"""
"""Upright labels of an axis that cover the one before them."""
SCROLLED = """[...document.querySelectorAll('.scroll')].filter((each) =>
  each.scrollWidth > each.clientWidth).length"""
"""Tables that are wider than the page."""
LOST = """[...document.querySelectorAll('.scroll:has(> .points)')].filter((each) => {
  each.scrollLeft = 200;
  const ends = [...each.querySelector('tbody tr').querySelectorAll('th')].map((label) =>
    label.getBoundingClientRect()).flatMap((box) => [box.left, box.right]);
  const places = [each.getBoundingClientRect().left, ...ends];
  return places.some((end, i) => i && end < places[i - 1] - 1);
}).length"""
"""Tables whose labels are covered or out of view while the numbers are scrolled."""
DRAWN = """document.readyState == 'complete'
  && document.querySelector('.chart') != null
  && [...document.querySelectorAll('.chart')].every((each) => each.querySelector('svg'))"""
FILLED = """Math.min(...[...document.querySelectorAll('.chart')].map((each) =>
  each.querySelector('svg').getBoundingClientRect().width / each.clientWidth))"""
"""Least part of the page's width that a chart takes."""
SMALLEST = """Math.min(...[...document.querySelector('.chart svg').querySelectorAll('text')].map(
  (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""
"""Height of the smallest words of the first picture, in pixels."""
OVERLAPS = """[...document.querySelectorAll('.chart svg')].map((svg) => {
  const words = [...svg.querySelectorAll('text')].flatMap((text) =>
    text.children.length ? [...text.children] : [text]).filter((text) => text.textContent);
  const boxes = words.map((text) => ({ of: text, ...text.getBoundingClientRect().toJSON() }));
  const lines = [...svg.querySelectorAll('line:not([stroke-dasharray])')];
  const places = lines.flatMap((line) => [...Array(101).keys()].map((part) => {
    const [x, y] = ['x', 'y'].map((name) => {
      const [one, other] = [1, 2].map((end) => +line.getAttribute(name + end) || 0);
      return one + (part / 100) * (other - one);
    });
    return new DOMPoint(x, y).matrixTransform(line.getScreenCTM());
  }));
  const on = (box) => places.some((p) => p.x > box.left && p.x < box.right
    && p.y > box.top + 2 && p.y < box.bottom - 2);
  const crosses = (one, other) => one.left < other.right && other.left < one.right
    && one.top + 2 < other.bottom && other.top + 2 < one.bottom;
  return boxes.filter((box, i) => on(box) || boxes.some((other, j) => j > i && crosses(box, other)))
    .map((box) => box.of.textContent).concat(lines.length ? [] : ['no line']);
})"""
"""Words of each set-up that cover others or the line of a link."""
PATH = {"path": ["a", "b", "c"], "return_path": ["z", "y", "x"]}
CROSS = {"path": ["b"], "return_path": ["y"]}
HOPS = {
    "duration": "2s",
    "bottleneck": "b",
    "links": dict.fromkeys("abcxyz", LINK),
    "flows": {f"long{n}": PATH for n in range(9)} | {f"cross{n}": CROSS for n in range(9)},
}
"""A set-up with nine lines at each node, and three links in a row."""


def setup(**paths: tuple[str, str]) -> dict[str, Any]:
    """A scenario with flows over these links, named by letters, and back."""
    flows = {
        name: {"path": [*path], "return_path": [*back]} for name, (path, back) in paths.items()
    }
    links = {link: LINK for pair in paths.values() for path in pair for link in path}
    return {"duration": "1s", "links": links, "flows": flows}


SETUPS = {
    "parking lot": setup(long=("abc", "zyx"), left=("a", "x"), middle=("b", "y"), right=("c", "z")),
    "two links, one back": setup(download=("ab", "z"), probe=("ab", "z")),
    "one of two has a return path too": setup(download=("ab", "z"), right=("b", "y")),
    "shared return path": setup(long=("abc", "z"), left=("a", "z"), right=("c", "z")),
    "dumbbell": setup(first=("acf", "gzw"), second=("bcd", "ezv"), middle=("c", "z")),
    "two homes": setup(first=("am", "z"), second=("bn", "z"), more=("m", "z"), others=("n", "z")),
    "four hosts": setup(a=("da", "z"), b=("db", "z"), c=("dc", "z"), d=("de", "z")),
    "two return paths": setup(first=("d", "y"), second=("d", "z")),
    "other path": setup(long=("ab", "z"), other=("c", "z"), left=("a", "z")),
}
QUEUES = ["droptail", "codel", "fq_codel", "pie", "cake", "red", "dualpi2", "sfq", "fq_pie"]
AXES = [
    {"key": "queue", "values": ["droptail", "codel"]},
    {"name": "downloads", "key": "flows.a_long_download.count", "values": [1, 4]},
    {"name": "delay", "key": "links.down.delay", "values": ["10ms", "40ms", "80ms"]},
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    study = aqmlab.study({"name": "s", "replications": 5, "scenario": SCENARIO, "axes": AXES})
    run = aqmlab.run(SCENARIO, record="series")
    controls = {"flows.a_long_download.transport.congestion_control": ["cubic", "reno"]}
    many = aqmlab.study({"name": "m", "scenario": SCENARIO, "axes": controls | {"queue": QUEUES}})
    keys = {"links.down.queue.limit": "5p..50p,log"}
    tuned = search.tune(
        SCENARIO, keys, ["min:sojourn_p95"], trials=4, batch=4, confirm=2, out=folder / "tune"
    )
    long = aqmlab.study({"name": "t", "title": "/a" * 60, "scenario": SCENARIO, "axes": AXES[:1]})
    means = {queue: Estimate(4.0, 3.5, 4.2) for queue in QUEUES[:2]}
    rows = panels.estimates({"call": panels.Means("MOS", means)}, panels.colours(QUEUES[:2]))
    words = Markdown(f"| what | value |\n|---|---|\n| voice | {'packets of 200 bytes ' * 20}|\n")
    hops = aqmlab.run(HOPS, record="series")
    columns = (Column("question", label=True), Column("against droptail"),
               Column("measured", prose=True))  # fmt: skip
    question = "8.3 Parameter sensitivity and stability"
    judged = Table(columns, ((question, Verdict("not decided", ""), "queue 9 ms"),),
                   kind="verdict brief")  # fmt: skip
    seen = Table((*columns, Column("where")), (*((*row, "x" * 90) for row in judged.rows),),
                 kind="verdict glance")  # fmt: skip
    each = Document(
        "Rows, as of `try`", (Figure("rows", "Rows", "", "", rows), words, judged, seen)
    )
    return {
        "rows": save(each, folder / "rows", figures=False),
        "title": long.write_report(folder / "title", figures=False),
        "study": study.write_report(folder / "study", figures=False),
        "many": many.write_report(folder / "many", figures=False),
        "search": tuned.write_report(folder / "search", figures=False),
        "hops": hops.write_report(folder / "hops", figures=False),
        "run": run.write_report(folder / "run", figures=False),
    }


@pytest.mark.parametrize("which", ["study", "title", "many", "search", "run", "hops", "rows"])
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_all_of_a_page_is_read_without_scrolling(
    page: Browser, pages: dict[str, Path], which: str, width: int, scheme: str
) -> None:
    page.look(width, 800, scheme)
    page.open(pages[which].as_uri())
    page.wait_for(DRAWN)
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(CLIPPED) == []
    assert page.run(COVERED) == 0
    assert page.run(FAINT) == []
    assert page.run("[...document.querySelectorAll('.scroll:has(> .brief)')].every((each) =>"
                    " each.scrollWidth <= each.clientWidth)")  # fmt: skip
    assert page.run("[...document.querySelectorAll('.chip')].every((chip) =>"
                    f" chip.getBoundingClientRect().right <= {width})")  # fmt: skip
    assert not page.problems
    if which == "run":
        assert page.run("document.querySelectorAll('.chart').length") > 2
        assert page.run(FILLED) > 0.9
        assert "(bulk, cubic) →" in page.run("document.querySelector('.chart').textContent")
    if which in ("run", "hops") and width == 390:
        assert page.run(SMALLEST) > (10.5 if which == "run" else 9.5), "scrolled if it does not fit"
    if which in ("study", "many"):
        page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert page.run("document.querySelectorAll('details .scroll').length") > 3
        page.wait_for("document.querySelector('details th').offsetWidth > 0")
        assert page.run(LOST) == 0, "on a telephone the labels of the rows stay in view"
        if width == 1280:
            assert page.run(SCROLLED) == 0
    page.look(1280, 800)


def test_the_words_of_a_set_up_cover_nothing(page: Browser, tmp_path: Path) -> None:
    drawn = {name: diagram(aqmlab.run(setup).scenario) for name, setup in SETUPS.items()}
    pictures = [Figure(f"setup{n}", name, "", "", each) for n, (name, each) in
                enumerate(drawn.items())]  # fmt: skip
    report = save(Document("Set-ups", (*pictures,)), tmp_path, figures=False)
    for width in (1280, 390):
        page.look(width, 800)
        page.open(report.as_uri())
        page.wait_for(DRAWN)
        assert dict(zip(SETUPS, page.run(OVERLAPS), strict=True)) == {each: [] for each in SETUPS}
