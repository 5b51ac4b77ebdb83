"""Special paths: delays and rates that change, satellites, small devices, reordering,
transients, misbehaving neighbours, data centres."""

from __future__ import annotations

import numpy as np

from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.readings import DELAY, LOSS, SHARE, USED, Measure, criterion, metric
from aqmlab.packs.rfc9743.scene import OWN, Flow, Path, Table, bulk, load, scenario

BASE = Path(10e6, 0.04, 1.0)
SMALL = Path(50e3, 0.2, 4.0)
SEGMENT = 536
SATELLITE = [Path(10e6, 0.6, 1.0), Path(10e6, 0.6, 0.25)]
FLOODS = {
    "datagrams that take half": {"kind": "cbr", "rate": "5mbit", "packet": "1500b"},
    "bursts that take all": {
        "kind": "pareto-onoff", "over": "udp", "rate": "10mbit", "packet": "1500b",
        "burst": "200ms", "idle": "800ms",
    },
}  # fmt: skip
OUTAGE = 17.0
"""End of the outage, seconds."""
CENTRE = Path(1e9, 100e-6, 10.0)
SENDERS = 32
QUERY = {"kind": "incast", "senders": SENDERS, "response": "32kb", "think": "1ms"}


def _over(**link: object) -> Flow:
    """One flow over the path with other keys of its link."""
    return scenario(BASE.links(**link), {"own": bulk(OWN)}, 40)


def _steps(*values: str, at: tuple[str, ...] = ("0s", "15s", "30s"), **keys: object) -> Table:
    return {"steps": [list(each) for each in zip(at, values, strict=True)], **keys}


def _delivered(at: CaseResults) -> Floats:
    """Segments that were of use."""
    return at.flow("own", "goodput_bps") * at.lasted / 8 / SEGMENT


CRITERIA = (
    criterion(
        "varying-delay", "7.3", "Varying delay", "special", "SHOULD",
        "What becomes of goodput and queue when the least delay changes?",
        {
            "the delay rises by 40 ms and falls": _over(delay=_steps("20ms", "60ms", "20ms")),
            "a handover every 5 s, 15 ms": _over(
                delay=_steps("20ms", "35ms", "20ms", at=("0s", "5s", "10s"), repeat=True)
            ),
            "slots of 2 to 8 ms": _over(slot={"min": "2ms", "max": "8ms"}),
        },
        (SHARE, DELAY, LOSS),
    ),
    criterion(
        "constrained", "7.4", "Constrained nodes", "special", "considered",
        "Does it work at very low rates, and how many segments and control packets are wasted?",
        {
            SMALL.name: scenario(
                SMALL.links(), {"own": bulk(OWN, transport={"mss": f"{SEGMENT}b"})}, 120, 20
            )
        },
        (
            USED, DELAY,
            Measure("segments sent in vain", "%", LESS,
                    lambda at: 100 * (1 - _delivered(at) / at.flow("own", "segments_sent")), 1.0),
            Measure("control packets", "a segment delivered", LESS,
                    lambda at: at.arrived("up") / np.maximum(_delivered(at), 1.0), 0.05),
        ),
    ),
    criterion(
        "high-delay", "7.5", "High delay", "special", "ought",
        "Does it fill a path by satellite, and what does it lose there?",
        {path.name: scenario(path.links(), {"own": bulk(OWN)}, 60, 20) for path in SATELLITE},
        (SHARE, DELAY, LOSS),
    ),
    criterion(
        "misbehaving", "7.6", "Misbehaving neighbours", "special", "SHOULD",
        "How much can it send beside senders that respond to nothing?",
        {
            name: scenario(BASE.links(), {"own": bulk(OWN, 2), "flood": load(flood)}, 40)
            for name, flood in FLOODS.items()
        },
        (USED, LOSS, DELAY),
    ),
    criterion(
        "reordering", "7.7", "Extreme reordering", "special", "ought",
        "How much of the capacity is used where packets overtake each other?",
        {
            f"jitter of {spread} ms without order": _over(
                jitter={"spread": f"{spread}ms"}, reordering=True
            )
            for spread in (2, 20)
        },
        (SHARE,),
    ),
    criterion(
        "transients", "7.8", "Transients", "special", "SHOULD",
        "How does it recover after the link was down for 2 s?",
        {
            "no link for 2 s": scenario(
                BASE.links(rate=_steps("10mbit", "0bit", "10mbit", at=("0s", "15s", "17s"))),
                {"own": bulk(OWN)}, 40, sampled=0.25,
            )
        },
        (
            Measure("of the link used in the 5 s after it", "%", MORE,
                    lambda at: 100 * (at.between("throughput_bps", "down", OUTAGE,
                                                 OUTAGE + 5) / BASE.rate)),
            SHARE, LOSS,
        ),
    ),
    criterion(
        "changing-paths", "7.9", "Changing paths", "special", "MUST",
        "What becomes of goodput, queue and loss when rate and delay change with a route?",
        {
            "to a fifth of the rate and back": _over(rate=_steps("10mbit", "2mbit", "10mbit")),
            "to four times the delay, half of the rate, and back": _over(
                rate=_steps("10mbit", "5mbit", "10mbit"), delay=_steps("20ms", "80ms", "20ms")
            ),
        },
        (SHARE, DELAY, LOSS),
    ),
    criterion(
        "data-centre", "7.11", "Data centres", "special", "SHOULD say",
        "How long do queries take when many answer at once, below 2 ms?",
        {
            f"{SENDERS} answers of 32 kB at once, 1 Gbit/s, 0.1 ms, 100 packets": scenario(
                CENTRE.links(queue={"discipline": "droptail", "limit": "100p"}),
                {"own": load(QUERY, OWN, 0.01)}, 1.0, 0.1,
            )
        },
        (
            metric("query time, p50", "query_p50", "own", 1.0),
            metric("query time, p99", "query_p99", "own", 1.0),
            LOSS,
        ),
    ),
)  # fmt: skip
