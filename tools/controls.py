"""The window and the queue of every congestion control on one link, as pictures.

python -m tools.controls docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path

import aqmlab
from aqmlab.report.document import Figure, charts

LINK = {"rate": "10mbit", "delay": "20ms"}
SCENARIO = {
    "duration": "60s",
    "bottleneck": "down",
    "links": {"down": LINK | {"queue": {"discipline": "droptail", "limit": "100p"}}, "up": LINK},
    "flows": {"bulk": {"path": "down", "return_path": "up", "transport": {"profile": "rfc"}}},
}
MSS = 1460
COLOURS = {"window": "#2f6fbb", "queue": "#c8453f"}


OTHERS = ("cbr", "steered")
"""Controls without a window of their own."""


def names() -> list[str]:
    """The congestion controls with a picture."""
    known = (each["name"] for each in aqmlab.reference() if each["section"] == "congestion_control")
    return [name for name in known if name not in OTHERS]


def file_name(control: str) -> str:
    """The name of the file with its picture."""
    return f"control-{control.replace('+', 'p')}.svg"


def picture(control: str) -> Figure:
    """One flow alone for a minute: its window and the queue in segments."""
    result = aqmlab.run(
        SCENARIO,
        set={"flows.bulk.transport.congestion_control": control},
        record={"level": "series", "interval": "100ms"},
    )
    curves = {}
    for name, subject, quantity, unit in (
        ("window", "bulk.0", "cwnd_bytes", MSS),
        ("queue", "down", "backlog_packets", 1),
    ):
        rows = result.series.filter(subject=subject, quantity=quantity)
        curves[name] = (rows["time_s"].to_numpy(), rows["value"].to_numpy() / unit)
    return Figure(
        f"control-{control}",
        f"{control}: window and queue",
        "One flow over 10 Mbit/s and 40 ms, DropTail of 100 packets: 33 segments fill the path, "
        "133 path and queue. Simulated by aqmlab.",
        "",
        charts.series(curves, COLOURS, "time (s)", "segments"),
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {Path(sys.argv[0]).name} FOLDER")
    for control in names():
        picture(control).save(Path(sys.argv[1]) / file_name(control))
