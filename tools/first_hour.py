"""Runs the commands of docs/first-hour.md in a fresh clone and prints how long they take.

    python -m tools.first_hour [--write]

`--write` puts the minutes into the table of the page. The machine should be idle, and the last
commit is what is cloned.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "first-hour.md"
ROW = "| [{title}](#{anchor}) | {commands} | {own} | {total} |"


@dataclass(frozen=True)
class Part:
    """A part of the page."""

    title: str
    commands: tuple[str, ...]
    result: str
    """File that exists after the commands."""

    def row(self, own: str = "–", total: str = "–") -> str:
        """The row of the table with minutes."""
        anchor = self.title.lower().replace(" ", "-")
        return ROW.format(
            title=self.title, anchor=anchor, commands=len(self.commands), own=own, total=total
        )


def parts() -> list[Part]:
    """The parts of the page with their commands."""
    found = []
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        (block,) = re.findall(r"^```\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
        (result,) = re.findall(r"^Result: `([^`]+)`", section, re.MULTILINE)
        found.append(Part(section.partition("\n")[0], tuple(block.splitlines()), result))
    return found


def run(wanted: list[Part], folder: Path, environment: dict[str, str] | None = None) -> list[float]:
    """Runs the parts in `folder` in one shell; returns the seconds of each.

    Raises `SystemExit` if a command fails or a result is missing.
    """
    script = ["set -e", "date +%s.%N > times"]
    for part in wanted:
        script += [*part.commands, f"test -s {part.result}", "date +%s.%N >> times"]
    code = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env=environment).returncode
    times = [float(line) for line in (folder / "times").read_text().split()]
    if code:
        failed = wanted[len(times) - 1]
        sys.exit(f"{failed.title}: status {code}, or no {failed.result}")
    return [after - before for before, after in pairwise(times)]


def table(wanted: list[Part], seconds: list[float]) -> list[str]:
    """The rows of the table."""
    total, rows = 0.0, []
    for part, own in zip(wanted, seconds, strict=True):
        total += own
        rows.append(part.row(f"{own / 60:.1f}", f"{total / 60:.1f}"))
    return rows


def main() -> None:
    """Measures, prints, and writes if asked."""
    wanted = parts()
    own = ("VIRTUAL_ENV", "CARGO_TARGET_DIR", "PYTHONPATH", "PIP_CONSTRAINT")
    environment = {key: value for key, value in os.environ.items() if key not in own}
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place) / "aqmlab"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        rows = table(wanted, run(wanted, clone, environment))
    print("\n".join(rows))
    if "--write" in sys.argv[1:]:
        text = PAGE.read_text(encoding="utf-8")
        for part, row in zip(wanted, rows, strict=True):
            text = re.sub(rf"^\| \[{re.escape(part.title)}\].*$", row, text, flags=re.MULTILINE)
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
