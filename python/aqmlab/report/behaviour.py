"""How a queue discipline answers to a step of load, as one picture.

Two bulk flows fill a link of 10 Mbit/s (40 ms there and back without queues); at half time
eight more join. From top to bottom: the delay of the packets, the discipline's signals, and
the first of the states that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from aqmlab.metrics.samples import Floats
from aqmlab.report.document import Figure, charts
from aqmlab.results import RunResult
from aqmlab.study.single import run

STEP = 20.0
"""Seconds at which the load grows."""
BIN = 0.25
"""Seconds over which packets are taken together."""
LINK = {"delay": "20ms"}
PATH = {"path": ["down"], "return_path": ["up"]}
SCENARIO: dict[str, Any] = {
    "duration": f"{2 * STEP:g}s",
    "links": {"down": LINK | {"rate": "10mbit"}, "up": LINK | {"rate": "100mbit"}},
    "transport": {"profile": "rfc"},
    "flows": {
        "first": PATH | {"count": 2},
        "joining": PATH | {"count": 8, "start": f"{STEP:g}s"},
    },
    "record": {"level": "packets", "interval": f"{BIN:g}s"},
}
DELAY, LATEST, DROPS, MARKS, STATE = "#1f77b4", "#aec7e8", "#d62728", "#9467bd", "#2ca02c"
PLAIN = {
    "backlog_packets", "backlog_bytes", "dropped", "marked", "ingress_bps", "throughput_bps",
    "delivered_bytes", "sojourn_mean_s", "sojourn_max_s", "capacity_bps",
}  # fmt: skip
"""Series that every link has, apart from the state of its discipline."""


def figure(name: str, settings: Mapping[str, Any] | None = None) -> Figure:
    """The picture for the discipline or preset `name`, with other `settings` than its own.

    Raises `InputError` for an unknown name or a setting that is not allowed.
    """
    queue = {"discipline": name} | dict(settings or {})
    result = run(SCENARIO, set={"queue": queue})
    packets = result.packets.filter(pl.col("link") == "down")
    text = ", ".join(f"{key} = {value}" for key, value in (settings or {}).items())
    return Figure(
        name,
        f"{name} under a step of load" + (f" ({text})" if text else ""),
        f"10 Mbit/s, 40 ms round trip; two Reno flows, and from {STEP:g} s eight more. "
        f"Values over {BIN:g} s each.",
        "",
        charts.panels(
            [
                ("delay in the queue (ms)", _delays(packets), {"median": DELAY, "largest": LATEST}),
                ("signals per second", _signals(packets), {"drops": DROPS, "marks": MARKS}),
                _state(result),
            ],
            "time (s)",
            x_domain=(0, 2 * STEP),
        ),
    )


def _bins(packets: pl.DataFrame, *values: pl.Expr) -> pl.DataFrame:
    place = (pl.col("end_s") // BIN * BIN).alias("bin")
    return packets.group_by(place).agg(*values).sort("bin")


def _delays(packets: pl.DataFrame) -> dict[str, tuple[Floats, Floats]]:
    delay = (pl.col("end_s") - pl.col("arrival_s")) * 1e3
    sent = packets.filter(pl.col("verdict") == "delivered")
    bins = _bins(sent, delay.median().alias("median"), delay.max().alias("largest"))
    times = bins["bin"].to_numpy()
    return {name: (times, bins[name].to_numpy()) for name in ("largest", "median")}


def _signals(packets: pl.DataFrame) -> dict[str, tuple[Floats, Floats]]:
    is_drop = pl.col("verdict") != "delivered"
    counts = {"drops": is_drop, "marks": ~is_drop & pl.col("ce")}
    bins = _bins(packets, *((which.sum() / BIN).alias(name) for name, which in counts.items()))
    found = {name: (bins["bin"].to_numpy(), bins[name].to_numpy()) for name in counts}
    return {name: curve for name, curve in found.items() if name == "drops" or curve[1].any()}


def _state(result: RunResult) -> tuple[str, dict[str, tuple[Floats, Floats]], dict[str, str]]:
    """The first state that the discipline names, or the backlog if it names none."""
    rows = result.series.filter(pl.col("subject") == "down")
    names = rows["quantity"].unique(maintain_order=True).to_list()
    name = next((each for each in names if each not in PLAIN), "backlog_packets")
    own = rows.filter(pl.col("quantity") == name)
    label = name.replace("_", " ")
    curve = (own["time_s"].to_numpy(), np.asarray(own["value"].to_numpy(), dtype=float))
    return label, {label: curve}, {label: STATE}
