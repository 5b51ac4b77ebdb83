"""Time of commands from start to end, beside that of an idle interpreter."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTHING = ("python", "-c", "pass")
SCENARIO = "scenario.toml"
LINE = ("--down", "50mbit", "--up", "10mbit", "--rtt", "20ms")
TRY = ("try", *LINE, "droptail", "codel", "fq_codel", "cake")


@dataclass(frozen=True)
class Command:
    """A command and its goal."""

    words: tuple[str, ...]
    cpu: float = 0.0
    """Goal: seconds of CPU time at most; 0: none."""
    wall: float = 0.0
    """Goal: seconds by the clock at most; 0: none."""


COMMANDS = (
    Command(("--help",), cpu=0.25),
    Command(("run", "--help"), cpu=0.25),
    Command(("list",), cpu=0.25),
    Command(("explain", "codel"), cpu=0.25),
    Command(("run", SCENARIO), cpu=0.35),
    Command(TRY, wall=10.0),
)
# The scenario of README.md (examples/scenario.toml).
TEXT = """duration = "30s"
seed = 1
bottleneck = "down"
[links.down]
rate = "20mbit"
delay = "15ms"
queue = { discipline = "droptail", limit = "250p" }
[links.up]
rate = "5mbit"
delay = "15ms"
queue = { discipline = "droptail", limit = "250p" }
[flows.download]
count = 2
path = ["down"]
return_path = ["up"]
[flows.page]
count = 4
path = ["down"]
return_path = ["up"]
size = "500kb"
start = { uniform = ["5s", "15s"] }
"""


def measure(repeat: int) -> list[dict[str, Any]]:
    """A row a command: its least CPU time and wall time of `repeat` runs, and the goals.

    The commands run in turns, so that what else the machine does concerns all alike, and after
    one run each that writes the bytecode, as an installation does.
    """
    program = Path(sys.executable).parent / "aqmlab"
    lines = [[sys.executable, *NOTHING[1:]]]
    lines += [[str(program), *each.words] for each in COMMANDS]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / SCENARIO).write_text(TEXT)
        unwanted = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
        own = {key: value for key, value in os.environ.items() if key not in unwanted}
        own["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        rounds = [[_run(line, folder, own) for line in lines] for _ in range(repeat + 1)][1:]
    cpu, wall = (
        [min(took[place][kind] for took in rounds) for place in range(len(lines))]
        for kind in (0, 1)
    )
    asked = [Command(NOTHING), *COMMANDS]
    return [
        {
            "command": " ".join(("aqmlab", *each.words) if place else each.words),
            "cpu_seconds": round(cpu[place], 6),
            "wall_seconds": round(wall[place], 6),
            "most_cpu_seconds": each.cpu or None,
            "most_wall_seconds": each.wall or None,
        }
        for place, each in enumerate(asked)
    ]


def _run(line: list[str], folder: str, environment: dict[str, str]) -> tuple[float, float]:
    """CPU time and wall time of a command, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(line, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall
