"""Time until the page shows a packet, and its frame rate.

`python crates/aqmlab-web/measure.py`: two links of 10 Mbit/s with ten downloads at ten times real
time, in headless Chromium (software rendering). Other programs that run distort the figures.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))

from browser import browser  # noqa: E402  (the tests' own driver of Chromium)

PAGE = ROOT / "docs" / "lab" / "index.html"
FLOWS = 10
SECONDS = 10


def main() -> None:
    """Prints the time to the first packet, frames a second and virtual seconds a second."""
    with browser() as page:
        page.look(1200, 900)
        page.open(f"{PAGE.as_uri()}#free")
        page.wait_for("window.meter && meter.ready")
        ready = page.run("meter.ready") / 1000
        page.run("document.getElementById('play').click()")
        page.wait_for("meter.first")
        first = page.run("meter.first - meter.ready") / 1000
        there = page.run("document.querySelectorAll('#flow-list li').length")
        for _ in range(FLOWS - there):
            page.click("[data-add=download]")
        page.choose("#speed", "10")
        state = "JSON.stringify([performance.now() / 1000, meter.frames, lab.time])"
        before = page.run(state)
        time.sleep(SECONDS)
        after = page.run(state)
    began, frames, virtual = (b - a for a, b in zip(_numbers(before), _numbers(after), strict=True))
    print(f"ready                  {ready:.2f} s after the page was opened")
    print(f"first packet drawn     {first:.2f} s later, with the press of a button between")
    print(f"frames                 {frames / began:.1f} a second")
    print(f"virtual time           {virtual / began:.2f} times real time")


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.strip("[]").split(",")]


if __name__ == "__main__":
    main()
