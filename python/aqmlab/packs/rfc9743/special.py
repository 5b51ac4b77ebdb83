"""General use (paths with tail-drop queues over ranges of rate, delay and buffer; wireless links),
special queues (AQMs, ECN, L4S, circuit breakers), and special paths (delays and rates that change,
satellites, small devices, reordering, transients, misbehaving neighbours, data centres)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from aqmlab.campaign import Question
from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE, NEITHER
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.readings import (
    DELAY,
    FAIRNESS,
    LOSS,
    SHARE,
    USED,
    CaseMeasure,
    criterion,
    sent,
    time,
)
from aqmlab.packs.rfc9743.scene import (
    LONGEST,
    OWN,
    ControlSetup,
    Flow,
    Path,
    Table,
    bulk,
    load,
    scenario,
)

SECONDS: Mapping[float, float] = {1e6: 60.0, 10e6: 30.0, 100e6: 20.0}
"""Seconds of a run, by rate: at least, and the warm-up is a third of them."""
FLOWS = 2
FEWEST = 4
"""Packets of the smallest buffer: 1 Mbit/s over 10 ms is less than one packet."""
GRID = [
    path
    for rate in SECONDS
    for rtt in (0.01, 0.1)
    for buffer in (0.5, 1.0, 4.0)
    if (path := Path(rate, rtt, buffer)).packets >= FEWEST and path.sawtooth / FLOWS < LONGEST
]
RADIO = Path(10e6, 0.05, 2.0)
RADIOS: Mapping[str, Mapping[str, object]] = {
    "random loss of 0.1 %": {"loss": 0.001},
    "random loss of 1 %": {"loss": 0.01},
    "losses in bursts (1 %)": {"loss": {"p": 0.0025, "r": 0.25}},
    "LTE of 6 Mbit/s": {"rate": {"process": "lte", "mean": "6mbit"}},
    "Wi-Fi": {"rate": {"process": "wifi", "phy": "65mbit", "others": 2.0}},
    "jitter of 5 ms by retransmission": {"jitter": {"spread": "5ms", "distribution": "pareto"}},
}

# Special queues.

PATH = Path(20e6, 0.04, 4.0)
LASTS, WARM = 30.0, 10.0
AQMS = ("codel", "pie", "fq_codel")
CUBIC = ControlSetup("cubic", "cubic")
PRAGUE = ControlSetup("prague", "prague")
CLASSIC = {"ecn": "classic"}
SHORT_DELAY = CaseMeasure("queuing delay, p95", "ms", LESS, lambda at: 1e3 * at.waiting, 2.0)
STEADY_LOSS = (0.02, 0.1, 0.2)
"""Loss rates of a path, independent of the load: RFC 8084's examples react from 10 % on."""
BREAKER = Path(10e6, 0.05)


def _answering(own: ControlSetup) -> Table:
    """Two flows that answer CE as RFC 3168 says, unless the control asks for ECN by itself."""
    return bulk(own, 2, transport={} if own.sets_ecn else CLASSIC)(own)


def _goodput(name: str, group: str) -> CaseMeasure:
    return CaseMeasure(name, "%", MORE, lambda at: 100 * (at.goodput(group) / PATH.rate))


def _waited(group: str) -> Callable[[CaseResults], Floats]:
    """The 95th percentile of a group's queuing delays, ms."""
    return lambda at: 1e3 * (at.time("delay_p95", group) - PATH.rtt / 2)


def _beside(name: str, group: str) -> Iterator[CaseMeasure]:
    own = "queuing delay of its own packets, p95"
    yield CaseMeasure(f"queuing delay of {name}'s packets, p95", "ms", LESS, _waited(group), 1.0)
    yield _goodput(f"goodput of {name}", group)
    yield CaseMeasure(own, "ms", LESS, _waited("own"), 1.0)
    yield _goodput("goodput of its own", "own")


# Special paths.

BASE = Path(10e6, 0.04, 1.0)
SMALL = Path(50e3, 0.2, 4.0)
SEGMENT = 536
SMALL_BUFFER = {"discipline": "droptail", "limit": "5000b"}
"""4 BDP, about 9 packets with these segments."""
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
    """Segments that delivered new data, of the size of those that arrived: QUIC's are larger."""
    new, arrived = (
        at.total("traffic", each, group="own") for each in ("delivered_bytes", "arrived")
    )
    return new / np.fmax(new / arrived, SEGMENT)


CRITERIA: tuple[Question, ...] = (
    criterion(
        "tail-drop", "6.1", "Paths with tail-drop queues", "general", "MUST",
        "Goodput, delay, loss and fairness over rates of 1 to 100 Mbit/s, round trips of 10 and "
        "100 ms, buffers of 0.5 to 4 BDP, over three losses of Reno at least.",
        {
            path.name: scenario(
                path.links(), {"own": bulk(OWN, FLOWS)},
                max(SECONDS[path.rate], round(SECONDS[path.rate] / 3 + path.settled(FLOWS))),
                SECONDS[path.rate] / 3,
            )
            for path in GRID
        },
        (USED, DELAY, LOSS, FAIRNESS),
    ),
    criterion(
        "wireless", "6.3, 6.4", "Wired and wireless paths", "general", "evaluated",
        "How much capacity is used where a radio loses packets, changes its rate, or delays?",
        {
            name: scenario(RADIO.links(**keys), {"own": bulk(OWN)}, 40, 10)
            for name, keys in RADIOS.items()
        },
        (SHARE, DELAY, LOSS),
    ),
    criterion(
        "aqm", "7.1", "AQM", "special", "SHOULD",
        "What delay and loss does it have under CoDel, PIE and FQ-CoDel, and what does CUBIC get?",
        {
            name: scenario(
                PATH.links(queue=name), {"own": bulk(OWN), "victim": bulk(CUBIC)}, LASTS, WARM
            )
            for name in AQMS
        },
        (
            SHORT_DELAY,
            LOSS,
            _goodput("goodput of a CUBIC flow", "victim"),
        ),
    ),
    criterion(
        "ecn", "7.1", "ECN", "special", "SHOULD",
        "Does it answer CE marks as the codepoint that it sets demands (RFC 3168, RFC 9331)?",
        {
            name: scenario(
                PATH.links(queue={"discipline": name, "ecn": True}),
                {"own": _answering, "victim": bulk(CUBIC, transport=CLASSIC)}, LASTS, WARM,
            )
            for name in ("codel", "pie")
        },
        (
            SHORT_DELAY, _goodput("goodput of a CUBIC flow with ECN", "victim"),
            # A scalable control is marked often by design: neither is better.
            CaseMeasure("packets marked", "%", NEITHER,
                    lambda at: 100 * at.metric("mark_share", "down"), 1.0),
        ),
    ),
    criterion(
        "l4s", "7.1", "L4S", "special", "SHOULD",
        "What do Prague and CUBIC wait and get beside it behind DualPI2?",
        {
            f"beside {name}": scenario(
                PATH.links(queue="dualpi2"),
                {"own": bulk(OWN, delays=True), other.name: bulk(other, delays=True)}, LASTS, WARM,
            )
            for name, other in (("Prague", PRAGUE), ("CUBIC", CUBIC))
        },
        {0: tuple(_beside("Prague", "prague")), 1: tuple(_beside("CUBIC", "cubic"))},
    ),
    criterion(
        "breaker", "7.2", "Circuit breakers", "special", "ought",
        "How much does it still send into losses that do not end (RFC 8084)?",
        {
            f"lasting loss of {100 * loss:g} %": scenario(
                BREAKER.links(loss=loss), {"own": bulk(OWN)}, 40, 10
            )
            for loss in STEADY_LOSS
        },
        (
            CaseMeasure("still sent", "Mbit/s", LESS,
                    lambda at: at.metric("throughput", "own") / 1e6, 0.1),
        ),
    ),
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
                SMALL.links(queue=SMALL_BUFFER),
                {"own": bulk(OWN, transport={"mss": f"{SEGMENT}b"})}, 120, 20,
            )
        },
        (
            USED, DELAY,
            CaseMeasure("segments that delivered no new data", "%", LESS,
                    lambda at: 100 * (1 - _delivered(at) / sent(at)), 1.0),
            CaseMeasure("control packets", "a segment delivered", LESS,
                    lambda at: at.total("links", "arrived", link="up")
                    / np.maximum(_delivered(at), 1.0), 0.05),
        ),
    ),
    criterion(
        "high-delay", "7.5", "High delay", "special", "ought",
        "Does it fill a path by satellite, and what does it lose there?",
        {
            path.name: scenario(path.links(), {"own": bulk(OWN)}, 20 + round(path.settled()), 20)
            for path in SATELLITE
        },
        (SHARE, DELAY, LOSS),
    ),
    criterion(
        "misbehaving", "7.6", "Misbehaving neighbours", "special", "SHOULD",
        "How much can it send beside senders that respond to nothing?",
        {
            name: scenario(BASE.links(), {"own": bulk(OWN, 2), "flood": load(flood)}, 40)
            for name, flood in FLOODS.items()
        },
        (USED, LOSS, DELAY, FAIRNESS),
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
        (SHARE, DELAY, LOSS),
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
            CaseMeasure("of the link used in the 5 s after it", "%", MORE,
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
            time("query time, p50", "query_p50", "own", 1.0),
            time("query time, p99", "query_p99", "own", 1.0),
            LOSS,
        ),
    ),
)  # fmt: skip
