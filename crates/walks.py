"""Follows the walkthroughs of CONTRIBUTING.md and tests the additions: a discipline, a control, a
workload, a metric and a key that changes during a run.

`make walks` runs all; `python3 crates/walks.py WORD ...` those named. Each is one file of
`crates/walks` and one line, or lines in two files (`largest.toml`, `duplicate.toml`), in a copy of
the tree (see `faults.py`); the tests are those of the addition, and those that every entry of a
catalogue has to pass. All are added before the first is tested, so each crate is built once.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from faults import COPY, ROOT, cargo, copy_tree, write


@dataclass(frozen=True)
class Walk:
    """Additions, their places, and the tests for them."""

    what: str
    crate: str
    tests: str
    """What the names of its tests have in common."""
    source: str
    """The new file in `crates/walks`, or a list of additions to files that are there."""
    target: str = ""
    """Where the new file goes."""
    catalogue: str = ""
    after: str = ""
    line: str = ""
    """The line that the new file has in a catalogue, behind which text."""

    def additions(self) -> list[tuple[str, str, str]]:
        """Files, the text in each after which something is added, and that."""
        if self.target:
            return [(self.catalogue, self.after, self.line)]
        written = tomllib.loads((ROOT / "crates/walks" / self.source).read_text(encoding="utf-8"))
        return [(each["file"], each["after"], each["add"]) for each in written["additions"]]

    def told(self) -> str:
        """Description of the effort."""
        files = len({file for file, _, _ in self.additions()})
        return "one file and one line" if self.target else f"additions to {files} files"


WALKS = [
    Walk(
        "discipline",
        crate="aqmlab-aqm",
        tests="disciplines::nth",
        source="nth.rs",
        target="aqmlab-aqm/src/disciplines/nth.rs",
        catalogue="aqmlab-aqm/src/disciplines/mod.rs",
        after="    // One line a discipline.\n",
        line="    nth::NthParams,\n",
    ),
    Walk(
        "control",
        crate="aqmlab-tcp",
        tests="congestion::",
        source="steady.rs",
        target="aqmlab-tcp/src/congestion/steady.rs",
        catalogue="aqmlab-tcp/src/congestion/mod.rs",
        after="controls! {\n    Reno(",
        line="    Steady(steady::SteadyParams),\n",
    ),
    Walk(
        "workload",
        crate="aqmlab-sim",
        tests="metronome",
        source="metronome.rs",
        target="aqmlab-sim/src/workload/metronome.rs",
        catalogue="aqmlab-sim/src/workload/mod.rs",
        after="    // One line for each workload.\n",
        line="    metronome::MetronomeParams,\n",
    ),
    Walk("metric", crate="aqmlab-sim", tests="largest_packet", source="largest.toml"),
    Walk("change", crate="aqmlab-sim", tests="duplicated_from", source="duplicate.toml"),
]


def add(way: Walk) -> None:
    """Adds the file and the lines to the copy."""
    for name, after, line in way.additions():
        file = Path("crates") / name
        text = (COPY / file).read_text(encoding="utf-8")
        if text.count(after) != 1 and after:
            sys.exit(f"{file}: {after!r} is not there once")
        first, rest = text.split(after) if after else (text, "")
        # The line stands after a comment, or else before the first entry.
        head, end, entry = after.rpartition("\n")
        write(file, f"{first}{head}{end}{line}{entry}{rest}".encode())
    if way.target:
        write(Path("crates") / way.target, (ROOT / "crates/walks" / way.source).read_bytes())


def passes(ways: list[Walk]) -> bool:
    """Whether the additions pass their tests, and disciplines those of all disciplines."""
    crates = [word for way in ways for word in ("-p", way.crate)]
    calls = [(*crates, "--lib", "--", *(way.tests for way in ways))]
    if any(way.what == "discipline" for way in ways):
        calls.append(("-p", "aqmlab-aqm", "--test", "properties"))
    for call in calls:
        done = cargo("test", *call)
        if done.returncode != 0 or " 0 passed" in done.stdout:
            print(f"{' '.join(call)} fails\n{done.stdout}{done.stderr}")
            return False
    return True


def main() -> None:
    """Exits with 1 if a walk leads nowhere."""
    copy_tree()
    words = sys.argv[1:]
    ways = [way for way in WALKS if not words or way.what in words]
    for way in ways:
        add(way)
    if not passes(ways):
        sys.exit(1)
    for way in ways:
        print(f"{way.what}: {way.told()}, and all tests pass")


if __name__ == "__main__":
    main()
