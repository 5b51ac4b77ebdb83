"""The walkthrough for another QUIC stack names every method of the trait."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_walkthrough_has_every_method_of_a_stack() -> None:
    source = (ROOT / "crates/aqmlab-quic/src/stack.rs").read_text()
    trait = source.partition("pub trait Stack")[2].partition("\n}\n")[0]
    page = (ROOT / "docs/your-own-quic-stack.md").read_text()
    table = page.partition("| method | task |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert re.findall(r"    fn (\w+)\(", trait) == [
        name for cell in cells for name in re.findall(r"`(\w+)`", cell)
    ]
    for name in re.findall(r"`([\w/]+\.rs)`", page.partition("## s2n-quic")[0]):
        places = [ROOT, ROOT / "crates/aqmlab-quic/src", ROOT / "crates/aqmlab-quic"]
        assert any((place / name).exists() for place in places), name
