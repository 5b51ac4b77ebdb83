"""The RFCs' sender beside Linux's, control by control: the table of docs/transports/linux.md.

python -m tools.senders
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import aqmlab

CONTROLS = ("reno", "cubic", "bbr", "dctcp", "vegas", "westwood", "highspeed", "scalable")
"""Controls that both senders have."""
STACKS = ("rfc", "linux-6.12")
QUEUES: Mapping[str, dict[str, Any]] = {
    "FIFO": {"queue": "droptail", "queue.limit": "100p"},
    "CoDel": {"queue": "codel", "queue.variant": "linux"},
}
MARKING: Mapping[str, Any] = {"queue": "step", "transport.ecn": "dctcp"}
"""Link for DCTCP."""
REPLICATIONS = 10
SCENARIO: Mapping[str, Any] = {
    "duration": "60s",
    "bottleneck": "down",
    "links": {
        "down": {"rate": "10mbit", "delay": "20ms"},
        "up": {
            "rate": "1gbit",
            "delay": "20ms",
            "queue": {"discipline": "droptail", "limit": "1000p"},
        },
    },
    "flows": {
        "first": {"path": ["down"], "return_path": ["up"]},
        "second": {
            "path": ["down"],
            "return_path": ["up"],
            "start": {"uniform": ["100ms", "1s"]},
        },
    },
    "record": {"warmup": "10s"},
}


def measure(control: str, stack: str, queue: str) -> tuple[float, float, float]:
    """Means over the replications: goodput of both flows, Mbit/s; median time in queue, ms; share
    of packets dropped, %."""
    settings: dict[str, Any] = {
        "transport.profile": "linux-6.12",
        "transport.stack": stack,
        "transport.congestion_control": control,
        **(MARKING if control == "dctcp" else QUEUES[queue]),
    }
    found = []
    for replication in range(REPLICATIONS):
        result = aqmlab.run(SCENARIO, set=settings, seed=1, replication=replication)
        (link,) = (row for row in result.links.to_dicts() if row["link"] == "down")
        goodput = 1e-6 * float(result.flows["goodput_bps"].sum())
        share = link["dropped"] / (link["dropped"] + link["delivered"])
        found.append((goodput, 1e3 * link["sojourn_p50_s"], 100 * share))
    goodput, delay, share = np.array(found).mean(axis=0)
    return float(goodput), float(delay), float(share)


def lines() -> Iterator[str]:
    """The table, a row a control and queue."""
    yield "| control, queue | goodput, Mbit/s | median time in queue, ms | drops, % |"
    yield "|---|---:|---:|---:|"
    for control in CONTROLS:
        for queue in ("step",) if control == "dctcp" else QUEUES:
            rfc, linux = (measure(control, stack, queue) for stack in STACKS)
            pairs = zip(rfc, linux, (2, 1, 2), strict=True)
            told = (f"{one:.{digits}f} / {other:.{digits}f}" for one, other, digits in pairs)
            yield f"| {control}, {queue} | {' | '.join(told)} |"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
