"""Runs the same transfers through `aqmlab shell` and in the simulator, and prints both in Markdown.

    cargo build -p quic-transfer
    python examples/quic-transfer/compare.py target/debug/quic-transfer

Real values are medians of the tries in which the emulator did not find the machine too busy. As
root, programs and emulator have real-time priority: a sender that waits for the processor sends
bursts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SECONDS, WARMUP, TRIES = 20, 5, 3
CELLS = (
    ("10mbit", "20ms", "droptail limit=66p", "quinn", "cubic"),
    ("10mbit", "20ms", "codel", "quinn", "cubic"),
    ("10mbit", "20ms", "fq_codel", "noq", "cubic"),
    ("10mbit", "40ms", "pie", "noq", "new_reno"),
    ("20mbit", "20ms", "fq_codel", "quinn", "new_reno"),
)
Pair = tuple[float, float]
"""Goodput in Mbit/s, and 95th percentile of the time in the queue in ms."""


def aqmlab(what: str, *words: str) -> Any:
    command = [sys.executable, "-m", "aqmlab", what, "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def p95(result: Any) -> float:
    [up] = [link for link in result["links"] if link["link"] == "up"]
    return 1e3 * float(up["sojourn_p95_s"])


def real(program: str, cell: tuple[str, ...]) -> Pair | None:
    """One try; None if the machine was too busy."""
    rate, delay, queue, stack, controller = cell
    first = ["chrt", "-f", "40"] if os.geteuid() == 0 else []
    command = [*first, program, "receive", "0.0.0.0:4433", str(SECONDS)]
    receiver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    keys = f"stack={stack} controller={controller}"
    send = f"exec {' '.join(first)} {program} send $AQMLAB_FAR:4433 {SECONDS} {keys} > /dev/null"
    path = ["--rate", rate, "--delay", delay, "--queue", queue]
    path += ["--priority", "60"] if first else []
    try:
        result = aqmlab("shell", *path, "--", "sh", "-c", send)
        text, _ = receiver.communicate(timeout=10)
    finally:
        receiver.kill()
    if any("too busy" in remark for remark in result["remarks"]):
        return None
    seconds = [float(line.split()[1]) for line in text.splitlines()][WARMUP:]
    return 8e-6 * statistics.fmean(seconds), p95(result)


def simulated(cell: tuple[str, ...]) -> Pair:
    """The same in the simulator; the delay counts from the start, as in a shell."""
    rate, delay, queue, stack, controller = cell
    table = ", ".join(
        f'{key} = "{value}"' for key, value in (("discipline", queue.split()[0]), *(
            each.split("=") for each in queue.split()[1:]))
    )  # fmt: skip
    text = f"""
        duration = "{SECONDS}s"
        links.up = {{ rate = "{rate}", delay = "{delay}", queue = {{ {table} }} }}
        links.down = {{ rate = "{rate}", delay = "{delay}" }}
        flows.q.path = "up"
        flows.q.return_path = "down"
        [flows.q.endpoint]
        kind = "quic"
        stack = "{stack}"
        controller = "{controller}"
        ecn = false
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cell.toml")
        file.write_text(text)
        late = aqmlab("run", str(file), "--set", f"record.warmup={WARMUP}s")
        return 1e-6 * late["flows"][0]["goodput_bps"], p95(aqmlab("run", str(file)))


def main(program: str) -> None:
    print("| cell | goodput | simulated | ratio | delay p95 | simulated | ratio | tries |")
    print("|---|---|---|---|---|---|---|---|")
    for cell in CELLS:
        good = [found for _ in range(TRIES) if (found := real(program, cell)) is not None]
        words = [" ".join(cell)]
        for place, ours in enumerate(simulated(cell)):
            value = statistics.median([pair[place] for pair in good]) if good else float("nan")
            words += [f"{value:.3g}", f"{ours:.3g}", f"{value / ours:.3f}"]
        print("|", " | ".join([*words, f"{len(good)} of {TRIES}"]), "|", flush=True)


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
