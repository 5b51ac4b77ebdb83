"""The random scenarios of `make fuzz` find a fault of an engine, and make it small."""

from __future__ import annotations

import tomllib
from pathlib import Path

from helpers import built_example, run_program


def test_a_planted_fault_is_found_and_made_small(tmp_path: Path) -> None:
    """A queue that loses one packet of twenty and counts none, at one link of each scenario."""
    program = str(built_example("examples/random_scenarios"))
    words = [program, "--seed", "1", "--from", "2", "--count", "2"]
    sound = run_program(words)
    assert (sound.returncode, "FAILED" in sound.stdout) == (0, False), sound.stdout
    done = run_program([*words, "--broken"])
    assert done.returncode == 1, done.stdout
    first, _, document = done.stdout.split("\n000003")[0].partition("\n")
    assert "FAILED" in first and "neither sent nor dropped" in first, first
    small = tomllib.loads(document)
    assert [link.get("queue") for link in small["links"].values()] == ["broken", None]
    assert set(small) == {"links", "flows"} and len(small["flows"]) == 1, document
    file = tmp_path / "small.toml"
    file.write_text(document)
    again = run_program([program, "--run", file])
    assert again.returncode == 1 and "small FAILED" in again.stdout
