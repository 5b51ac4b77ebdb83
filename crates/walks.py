"""Walks the ways of CONTRIBUTING.md: adds a discipline, a control and a workload, and tests them.

`make walks` runs all; `python3 crates/walks.py WORD ...` those named. Each is one file of
`crates/walks` and one line, in a copy of the tree (see `faults.py`); the tests are those of the
file, and those that every entry of a catalogue has to pass. All are added before the first is
tested, so each crate is built once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from faults import COPY, ROOT, cargo, copy_tree, write


@dataclass(frozen=True)
class Walk:
    """What is added where, and the tests that try it."""

    what: str
    source: str
    target: str
    catalogue: str
    after: str
    line: str
    crate: str
    tests: str


WALKS = [
    Walk(
        "discipline",
        "nth.rs",
        "aqmlab-aqm/src/disciplines/nth.rs",
        "aqmlab-aqm/src/disciplines/mod.rs",
        "    // One line a discipline.\n",
        "    Nth(nth::NthParams),\n",
        "aqmlab-aqm",
        "disciplines::nth",
    ),
    Walk(
        "control",
        "steady.rs",
        "aqmlab-tcp/src/congestion/steady.rs",
        "aqmlab-tcp/src/congestion/mod.rs",
        "controls! {\n    Reno(",
        "    Steady(steady::SteadyParams),\n",
        "aqmlab-tcp",
        "congestion::",
    ),
    Walk(
        "workload",
        "metronome.rs",
        "aqmlab-sim/src/workload/metronome.rs",
        "aqmlab-sim/src/workload/mod.rs",
        "    // One line a workload.\n",
        "    Metronome(metronome::MetronomeParams),\n",
        "aqmlab-sim",
        "metronome",
    ),
]


def add(way: Walk) -> None:
    """Adds the file and the line to the copy."""
    catalogue = Path("crates") / way.catalogue
    text = (COPY / catalogue).read_text(encoding="utf-8")
    if text.count(way.after) != 1:
        sys.exit(f"{catalogue}: {way.after!r} is not there once")
    first, rest = text.split(way.after)
    # The line stands after a comment, or else before the first entry.
    head, _, entry = way.after.rpartition("\n")
    write(catalogue, f"{first}{head}\n{way.line}{entry}{rest}".encode())
    write(Path("crates") / way.target, (ROOT / "crates/walks" / way.source).read_bytes())


def passes(ways: list[Walk]) -> bool:
    """Whether the additions pass their tests, and disciplines those of all disciplines."""
    crates = [word for way in ways for word in ("-p", way.crate)]
    calls = [(*crates, "--lib", "--", *(way.tests for way in ways))]
    if any(way.what == "discipline" for way in ways):
        calls.append(("-p", "aqmlab-aqm", "--test", "properties"))
    for call in calls:
        done = cargo(*call)
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
        print(f"{way.what}: one file and one line, and all tests pass")


if __name__ == "__main__":
    main()
