"""Walks the ways of CONTRIBUTING.md: adds a discipline, a control and a workload, and tests them.

`make walks` runs all; `python3 crates/walks.py WORD ...` those named. Each is one file of
`crates/walks` and one line, in a copy of the tree (see `faults.py`); the tests are those of the
file, and those that every entry of a catalogue has to pass.
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
    tests: tuple[tuple[str, ...], ...]


WALKS = [
    Walk(
        "discipline",
        "nth.rs",
        "aqmlab-aqm/src/disciplines/nth.rs",
        "aqmlab-aqm/src/disciplines/mod.rs",
        "    // One line a discipline.\n",
        "    Nth(nth::NthParams),\n",
        (
            ("-p", "aqmlab-aqm", "--lib", "--", "disciplines::nth"),
            ("-p", "aqmlab-aqm", "--test", "properties"),
        ),
    ),
    Walk(
        "control",
        "steady.rs",
        "aqmlab-tcp/src/congestion/steady.rs",
        "aqmlab-tcp/src/congestion/mod.rs",
        "controls! {\n    Reno(",
        "    Steady(steady::SteadyParams),\n",
        (("-p", "aqmlab-tcp", "--lib", "--", "congestion::"),),
    ),
    Walk(
        "workload",
        "metronome.rs",
        "aqmlab-sim/src/workload/metronome.rs",
        "aqmlab-sim/src/workload/mod.rs",
        "    // One line a workload.\n",
        "    Metronome(metronome::MetronomeParams),\n",
        (("-p", "aqmlab-sim", "--lib", "--", "metronome"),),
    ),
]


def walk(way: Walk) -> bool:
    """Whether the addition passes its tests. The copy is as before afterwards."""
    catalogue = Path("crates") / way.catalogue
    text = (COPY / catalogue).read_text(encoding="utf-8")
    if text.count(way.after) != 1:
        sys.exit(f"{catalogue}: {way.after!r} is not there once")
    first, rest = text.split(way.after)
    # The line stands after a comment, or else before the first entry.
    head, _, entry = way.after.rpartition("\n")
    changed = f"{first}{head}\n{way.line}{entry}{rest}"
    added = Path("crates") / way.target
    write(added, (ROOT / "crates/walks" / way.source).read_bytes())
    write(catalogue, changed.encode())
    try:
        for test in way.tests:
            done = cargo(*test)
            passed = done.returncode == 0 and " 0 passed" not in done.stdout
            if not passed:
                print(f"{way.what}: {' '.join(test)} fails\n{done.stdout}{done.stderr}")
                return False
    finally:
        (COPY / added).unlink()
        write(catalogue, text.encode())
    print(f"{way.what}: one file and one line, and all tests pass", flush=True)
    return True


def main() -> None:
    """Exits with 1 if a walk leads nowhere."""
    copy_tree()
    words = sys.argv[1:]
    ways = [way for way in WALKS if not words or way.what in words]
    sys.exit(not all(walk(way) for way in ways))


if __name__ == "__main__":
    main()
