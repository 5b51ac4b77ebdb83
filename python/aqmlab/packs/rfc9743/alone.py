"""The control alone: congestion collapse, bufferbloat, loss, fairness, short flows."""

from __future__ import annotations

import numpy as np

from aqmlab.campaign import Question
from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE, NEITHER
from aqmlab.metrics.samples import Floats, jain_indices
from aqmlab.packs.rfc9743.readings import DELAY, FAIRNESS, LOSS, CaseMeasure, criterion, sent, time
from aqmlab.packs.rfc9743.scene import OWN, Path, bulk, load, scenario

CROWDED = Path(2e6, 0.05, 1.0)
CROWD = 40
SILENT = (12.0, 22.0)
"""When the link of the blackout carries nothing, seconds."""
BLACKOUT = {"steps": [["0s", "5mbit"], [f"{SILENT[0]:g}s", "0bit"], [f"{SILENT[1]:g}s", "5mbit"]]}
THIN = Path(5e6, 0.05)
LOSSY = 0.5
FIFO = [Path(rate, 0.04, 4.0) for rate in (5e6, 20e6)]
SHALLOW = [Path(10e6, 0.04, buffer) for buffer in (0.25, 0.5, 1.0, 1.5, 4.0)]
WIDE, PATH = Path(20e6, 0.04, 1.0), Path(10e6, 0.04, 1.0)
FLOWS = 4
STARTS = (0.0, 10.0, 20.0, 30.0)
APART = {"list": ["0ms", "10ms", "20ms", "40ms"]}
SHORT = {"kind": "transfers", "size": "30kb", "gap": {"exponential": "250ms"}}
MEDIAN, SLOW = (
    time(f"completion of 30 kB, {each}", f"completion_{each}", "short") for each in ("p50", "p95")
)


def _late(at: CaseResults) -> Floats:
    shares = [at.between("goodput_bps", f"own_{n}.0", 45, 60) for n in range(1, len(STARTS) + 1)]
    return jain_indices(np.stack(shares).T)


CRITERIA: tuple[Question, ...] = (
    criterion(
        "collapse", "5.1.1", "Congestion collapse", "alone", "considered",
        "Does it send less and less as losses grow, and almost nothing without acknowledgements?",
        {
            f"{CROWD} flows over {CROWDED.name}":
                scenario(CROWDED.links(), {"own": bulk(OWN, CROWD)}, 30, 10),
            "a path that goes silent":
                scenario(THIN.links(rate=BLACKOUT), {"own": bulk(OWN)}, 30, sampled=0.25),
            f"random loss of {100 * LOSSY:g} %":
                scenario(THIN.links(loss=LOSSY), {"own": bulk(OWN)}, 40, 10),
        },
        {
            0: (
                LOSS,
                CaseMeasure("packets sent by a flow", "a round trip", NEITHER,
                        lambda at: sent(at) / CROWD * CROWDED.rtt / 20.0,
                        0.1),
            ),
            1: (
                CaseMeasure("sent while nothing is acknowledged", "kbit/s", LESS,
                        lambda at: at.between("ingress_bps", "down", SILENT[0] + 2, SILENT[1])
                        / 1e3, 20.0),
            ),
            2: (
                CaseMeasure("packets sent", "a round trip", LESS,
                        lambda at: sent(at) * THIN.rtt / 30.0, 0.5),
            ),
        },
    ),
    criterion(
        "bufferbloat", "5.1.2", "Bufferbloat", "alone", "considered",
        "How long is its queue in a deep FIFO, and how much delay does that add for others?",
        {
            path.name: scenario(
                path.links(), {"own": bulk(OWN, 2), "ping": load({"kind": "probe"})}, 30, 10
            )
            for path in FIFO
        },
        (
            CaseMeasure("standing queue, p50", "ms", LESS,
                    lambda at: 1e3 * at.metric("sojourn_p50", "down")),
            DELAY,
            time("others' round trip, p95", "rtt_p95", "ping"),
        ),
    ),
    criterion(
        "loss", "5.1.3", "High packet loss", "alone", "considered",
        "How much loss do several of its flows cause themselves, by the depth of the buffer?",
        {
            path.name: scenario(path.links(), {"own": bulk(OWN, FLOWS)}, 40, 10)
            for path in SHALLOW
        },
        (LOSS,),
    ),
    criterion(
        "fairness", "5.1.4", "Fairness among its own", "alone", "considered",
        "How do its flows share, also those that begin later or come from farther away?",
        {
            f"{FLOWS} flows": scenario(WIDE.links(), {"own": bulk(OWN, FLOWS)}, 40, 10),
            "flows that begin 10 s apart": scenario(
                WIDE.links(), {f"own_{n}": bulk(OWN, 1, at) for n, at in enumerate(STARTS, 1)},
                60, 40, 1.0,
            ),
            "round trips of 40 to 120 ms": scenario(
                WIDE.links(), {"own": bulk(OWN, FLOWS, access_delay=APART)}, 40, 10
            ),
        },
        {
            0: (FAIRNESS,),
            1: (CaseMeasure("Jain's index, last 15 s", "", MORE, _late, 0.05, 1.0),),
            2: (FAIRNESS,),
        },
    ),
    criterion(
        "short", "5.1.5", "Short flows", "alone", "MUST",
        "How long do short flows take alone and beside long ones, and what do these lose?",
        {
            "short flows beside 2 long ones": scenario(
                PATH.links(), {"own": bulk(OWN, 2), "short": load(SHORT, OWN)}, 40, 10
            ),
            "short flows alone": scenario(PATH.links(), {"short": load(SHORT, OWN)}, 40, 10),
        },
        {
            1: (MEDIAN,),
            0: (
                MEDIAN, SLOW,
                CaseMeasure("goodput of the long flows", "%", MORE,
                        lambda at: 100 * (at.goodput("own") / PATH.rate)),
            ),
        },
    ),
)  # fmt: skip
