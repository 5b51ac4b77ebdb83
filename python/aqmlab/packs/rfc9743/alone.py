"""The control alone: congestion collapse, bufferbloat, loss, fairness, short flows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aqmlab.campaign import Filled, Reading
from aqmlab.metrics.registry import LESS, MORE, NEITHER
from aqmlab.metrics.samples import jain_indices
from aqmlab.packs.rfc9743.readings import (
    criterion,
    delay,
    fairness,
    loss,
    milliseconds,
    percent,
    reading,
)
from aqmlab.packs.rfc9743.scene import ControlSetup, Path, Table, bulk, load, scenario

CROWDED = Path(2e6, 0.05, 1.0)
CROWD = 40
SILENT = (12.0, 22.0)
"""When the link of the blackout carries nothing, seconds."""
LOSSY = 0.5
FIFO = [Path(rate, 0.04, 4.0) for rate in (5e6, 20e6)]
SHALLOW = [Path(10e6, 0.04, buffer) for buffer in (0.25, 0.5, 1.0, 1.5, 4.0)]
FLOWS = 4
STARTS = (0.0, 10.0, 20.0, 30.0)


def _collapse(control: ControlSetup) -> Mapping[str, Table]:
    steps = {"steps": [["0s", "5mbit"], [f"{SILENT[0]:g}s", "0bit"], [f"{SILENT[1]:g}s", "5mbit"]]}
    path = Path(5e6, 0.05)
    return {
        f"{CROWD} flows over {CROWDED.name}": scenario(
            CROWDED.links(), {"own": bulk(control, CROWD)}, duration=30, warmup=10
        ),
        "a path that goes silent": scenario(
            path.links(rate=steps), {"own": bulk(control)}, duration=30, sampled=0.25
        ),
        f"random loss of {100 * LOSSY:g} %": scenario(
            path.links(loss=LOSSY), {"own": bulk(control)}, duration=40, warmup=10
        ),
    }


def _read_collapse(results: Filled) -> list[Reading]:
    crowd, silent, lossy = results
    at = results[crowd]
    packets = at.flow("own", "segments_sent") / CROWD
    sent = results[silent].between("ingress_bps", "down", SILENT[0] + 2, SILENT[1])
    rtt = 0.05
    rate = results[lossy].flow("own", "segments_sent") * rtt / 30.0
    return [
        loss(crowd, at),
        reading(crowd, "packets sent by a flow", "a round trip", NEITHER,
                packets * CROWDED.rtt / 20.0, 0.1),
        reading(silent, "sent while nothing is acknowledged", "kbit/s", LESS, sent / 1e3, 20.0),
        reading(lossy, "packets sent", "a round trip", LESS, rate, 0.5),
    ]  # fmt: skip


def _bufferbloat(control: ControlSetup) -> Mapping[str, Table]:
    return {
        path.name: scenario(
            path.links(),
            {"own": bulk(control, 2), "ping": load({"kind": "probe"})},
            duration=30,
            warmup=10,
        )
        for path in FIFO
    }


def _read_bufferbloat(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        at = results[case]
        made.append(milliseconds(case, "standing queue, p50", at.metric("sojourn_p50", "down")))
        made.append(delay(case, at))
        made.append(milliseconds(case, "others' round trip, p95", at.metric("rtt_p95", "ping")))
    return made


def _high_loss(control: ControlSetup) -> Mapping[str, Table]:
    return {
        path.name: scenario(path.links(), {"own": bulk(control, FLOWS)}, duration=40, warmup=10)
        for path in SHALLOW
    }


def _read_loss(results: Filled) -> list[Reading]:
    return [loss(case, results[case]) for case in results]


def _fairness(control: ControlSetup) -> Mapping[str, Table]:
    path = Path(20e6, 0.04, 1.0)
    late = {
        f"own_{number}": bulk(control, 1, start) for number, start in enumerate(STARTS, start=1)
    }
    spread = bulk(control, FLOWS, access_delay={"list": ["0ms", "10ms", "20ms", "40ms"]})
    return {
        f"{FLOWS} flows": scenario(
            path.links(), {"own": bulk(control, FLOWS)}, duration=40, warmup=10
        ),
        "flows that begin 10 s apart": scenario(
            path.links(), late, duration=60, warmup=40, sampled=1.0
        ),
        "round trips of 40 to 120 ms": scenario(
            path.links(), {"own": spread}, duration=40, warmup=10
        ),
    }


def _read_fairness(results: Filled) -> list[Reading]:
    alike, late, spread = results
    at = results[late]
    shares = np.stack(
        [at.between("goodput_bps", f"own_{n}.0", 45, 60) for n in range(1, len(STARTS) + 1)]
    )
    index = np.nan_to_num(jain_indices(shares.T))
    return [
        fairness(alike, results[alike]),
        reading(late, "Jain's index, last 15 s", "", MORE, index, 0.05),
        fairness(spread, results[spread]),
    ]


SHORT = {"kind": "transfers", "size": "30kb", "gap": {"exponential": "250ms"}}


def _short(control: ControlSetup) -> Mapping[str, Table]:
    path = Path(10e6, 0.04, 1.0)
    return {
        "short flows beside 2 long ones": scenario(
            path.links(),
            {"own": bulk(control, 2), "short": load(SHORT, control)},
            duration=40,
            warmup=10,
        ),
        "short flows alone": scenario(
            path.links(), {"short": load(SHORT, control)}, duration=40, warmup=10
        ),
    }


def _read_short(results: Filled) -> list[Reading]:
    beside, alone = results
    at = results[beside]
    first, middle, slow = (
        each.metric(name, "short")
        for each, name in (
            (results[alone], "completion_p50"),
            (at, "completion_p50"),
            (at, "completion_p95"),
        )
    )
    return [
        milliseconds(alone, "completion of 30 kB, p50", first),
        milliseconds(beside, "completion of 30 kB, p50", middle),
        milliseconds(beside, "completion of 30 kB, p95", slow),
        percent(beside, "goodput of the long flows", MORE, at.goodput("own") / 10e6),
    ]


CRITERIA = (
    criterion(
        "collapse", "5.1.1", "Congestion collapse", "alone", "considered",
        "Does it send less and less as losses grow, and almost nothing without acknowledgements?",
        _collapse, _read_collapse,
    ),
    criterion(
        "bufferbloat", "5.1.2", "Bufferbloat", "alone", "considered",
        "Which queue does it keep standing in a deep FIFO, and what do others wait?",
        _bufferbloat, _read_bufferbloat,
    ),
    criterion(
        "loss", "5.1.3", "High packet loss", "alone", "considered",
        "How much loss do several of its flows cause themselves, by the depth of the buffer?",
        _high_loss, _read_loss,
    ),
    criterion(
        "fairness", "5.1.4", "Fairness among its own", "alone", "considered",
        "How do its flows share, also those that begin later or come from farther away?",
        _fairness, _read_fairness,
    ),
    criterion(
        "short", "5.1.5", "Short flows", "alone", "MUST",
        "How long do short flows take alone and beside long ones, and what do these lose?",
        _short, _read_short,
    ),
)  # fmt: skip
