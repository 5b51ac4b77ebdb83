"""Training runs of profile-guided optimisation: `maturin build --pgo` (`make wheel`).

The scenarios of `make bench` with the senders and queues that people run, a few seconds of each.
The environment has what `aqmlab` alone requires: no tables.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import aqmlab

FOLDER = Path(__file__).parent
EXAMPLES = FOLDER.parents[1] / "examples"
SENDERS = [("rfc", "reno"), ("linux-6.12", "cubic"), ("linux-6.12", "bbr"), ("linux-l4s", "prague")]
QUEUES = ["codel", "pie", "fq_codel", "cake", "dualpi2"]


def play(file: Path, seconds: float, settings: dict[str, Any] | None = None) -> None:
    """Runs the scenario of a file with other settings."""
    aqmlab.Run(file, set={"duration": f"{seconds}s", **(settings or {})}).advance(seconds)


def main() -> None:
    """Runs all of them."""
    for file in sorted(FOLDER.glob("*.toml")):
        play(file, 0.4 if "1gbit" in file.name else 3)
    for queue, (profile, control) in product(QUEUES, SENDERS):
        sender = {"transport.profile": profile, "transport.congestion_control": control}
        play(FOLDER / "c-100mbit-codel.toml", 1, {"links.down.queue": queue, **sender})
    for name in ("scenario", "bufferbloat", "lte"):
        play(EXAMPLES / f"{name}.toml", 5)


if __name__ == "__main__":
    main()
