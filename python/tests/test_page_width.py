"""Reports on a telephone: nothing is wider than the page."""

from pathlib import Path

import pytest
from browser import Browser

import aqmlab

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
  return box.width && (box.left < all.left - 1 || box.right > all.right + 1);
}).map((text) => text.textContent)"""
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
    long = aqmlab.study({"name": "t", "title": "/a" * 60, "scenario": SCENARIO, "axes": AXES[:1]})
    return {
        "title": long.write_report(folder / "title", figures=False),
        "study": study.write_report(folder / "study", figures=False),
        "run": run.write_report(folder / "run", figures=False),
    }


@pytest.mark.parametrize("which", ["study", "title", "run"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_page(
    page: Browser, pages: dict[str, Path], which: str, width: int
) -> None:
    page.look(width, 800)
    page.open(pages[which].as_uri())
    page.wait_for("document.readyState == 'complete' && document.querySelector('svg') != null")
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run(CLIPPED) == []
    assert not page.problems
