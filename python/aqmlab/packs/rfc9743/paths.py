"""Special paths: delays and rates that change, satellites, small devices, reordering,
transients, misbehaving neighbours, data centres."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aqmlab.campaign import Filled, Reading
from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE
from aqmlab.packs.rfc9743.readings import (
    criterion,
    delay,
    loss,
    milliseconds,
    percent,
    reading,
    used,
)
from aqmlab.packs.rfc9743.scene import ControlSetup, Path, Table, bulk, load, scenario

BASE = Path(10e6, 0.04, 1.0)
LASTS, WARM = 40.0, 5.0


def _alone(path: Path, control: ControlSetup, **link: object) -> Table:
    return scenario(path.links(**link), {"own": bulk(control)}, duration=LASTS, warmup=WARM)


def _share_delay_loss(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        at = results[case]
        made += [_share(case, at), delay(case, at), loss(case, at)]
    return made


def _share(case: str, at: CaseResults) -> Reading:
    """The goodput as a share of what the link offers."""
    share = 100 * at.goodput("own") / at.offered
    return reading(case, "goodput, share of the capacity", "%", MORE, share, 5.0)


def _varying(control: ControlSetup) -> Mapping[str, Table]:
    steps = {"steps": [["0s", "20ms"], ["15s", "60ms"], ["30s", "20ms"]]}
    passes = {"steps": [["0s", "20ms"], ["5s", "35ms"], ["10s", "20ms"]], "repeat": True}
    return {
        "the delay rises by 40 ms and falls": _alone(BASE, control, delay=steps),
        "a handover every 5 s, 15 ms": _alone(BASE, control, delay=passes),
        "slots of 2 to 8 ms": _alone(BASE, control, slot={"min": "2ms", "max": "8ms"}),
    }


SMALL = Path(50e3, 0.2, 4.0)


def _constrained(control: ControlSetup) -> Mapping[str, Table]:
    flow = {"own": bulk(control, transport={"mss": "536b"})}
    return {SMALL.name: scenario(SMALL.links(), flow, duration=120, warmup=20)}


def _read_constrained(results: Filled) -> list[Reading]:
    (case,) = results
    at = results[case]
    useful = at.flow("own", "goodput_bps") * at.lasted / 8 / 536
    sent = at.flow("own", "segments_sent")
    answers = at.arrived("up") / np.maximum(useful, 1.0)
    return [
        used(case, at, "own", SMALL.rate),
        delay(case, at),
        percent(case, "segments sent in vain", LESS, 1 - useful / sent, 1.0),
        reading(case, "control packets", "a segment delivered", LESS, answers, 0.05),
    ]


SATELLITE = [Path(10e6, 0.6, 1.0), Path(10e6, 0.6, 0.25)]


def _high_delay(control: ControlSetup) -> Mapping[str, Table]:
    return {
        path.name: scenario(path.links(), {"own": bulk(control)}, duration=60, warmup=20)
        for path in SATELLITE
    }


def _misbehaving(control: ControlSetup) -> Mapping[str, Table]:
    made: dict[str, Table] = {}
    for name, flood in (
        ("datagrams that take half", {"kind": "cbr", "rate": "5mbit", "packet": "1500b"}),
        ("bursts that take all", {"kind": "pareto-onoff", "over": "udp", "rate": "10mbit",
                                  "packet": "1500b", "burst": "200ms", "idle": "800ms"}),
    ):  # fmt: skip
        flows = {"own": bulk(control, 2), "flood": load(flood)}
        made[name] = scenario(BASE.links(), flows, duration=LASTS, warmup=WARM)
    return made


def _read_misbehaving(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        at = results[case]
        made += [used(case, at, "own", BASE.rate), loss(case, at), delay(case, at)]
    return made


def _reordering(control: ControlSetup) -> Mapping[str, Table]:
    return {
        f"jitter of {spread} ms without order": _alone(
            BASE, control, jitter={"spread": f"{spread}ms"}, reordering=True
        )
        for spread in (2, 20)
    }


def _read_reordering(results: Filled) -> list[Reading]:
    return [_share(case, results[case]) for case in results]


OUTAGE = (15.0, 17.0)


def _transients(control: ControlSetup) -> Mapping[str, Table]:
    silent = {
        "steps": [["0s", "10mbit"], [f"{OUTAGE[0]:g}s", "0bit"], [f"{OUTAGE[1]:g}s", "10mbit"]]
    }
    return {
        "no link for 2 s": scenario(
            BASE.links(rate=silent), {"own": bulk(control)}, duration=LASTS, sampled=0.25
        ),
    }


def _read_transients(results: Filled) -> list[Reading]:
    (case,) = results
    at = results[case]
    after = at.between("throughput_bps", "down", OUTAGE[1], OUTAGE[1] + 5)
    return [
        percent(case, "of the link used in the 5 s after it", MORE, after / BASE.rate),
        _share(case, at),
        loss(case, at),
    ]


CHANGES = (15.0, 30.0)


def _changing(control: ControlSetup) -> Mapping[str, Table]:
    first, second = (f"{each:g}s" for each in CHANGES)
    return {
        "to a fifth of the rate and back": _alone(
            BASE, control,
            rate={"steps": [["0s", "10mbit"], [first, "2mbit"], [second, "10mbit"]]},
        ),
        "to four times the delay, half of the rate, and back": _alone(
            BASE, control,
            rate={"steps": [["0s", "10mbit"], [first, "5mbit"], [second, "10mbit"]]},
            delay={"steps": [["0s", "20ms"], [first, "80ms"], [second, "20ms"]]},
        ),
    }  # fmt: skip


CENTRE = Path(1e9, 100e-6, 10.0)
SENDERS = 32


def _data_centre(control: ControlSetup) -> Mapping[str, Table]:
    links = CENTRE.links(queue={"discipline": "droptail", "limit": "100p"})
    query = {"kind": "incast", "senders": SENDERS, "response": "32kb", "think": "1ms"}
    return {
        f"{SENDERS} answers of 32 kB at once, 1 Gbit/s, 0.1 ms, 100 packets": scenario(
            links, {"own": load(query, control, start=0.01)}, duration=1.0, warmup=0.1
        ),
    }


def _read_data_centre(results: Filled) -> list[Reading]:
    (case,) = results
    at = results[case]
    return [
        milliseconds(case, "query time, p50", at.metric("query_p50", "own"), 1.0),
        milliseconds(case, "query time, p99", at.metric("query_p99", "own"), 1.0),
        loss(case, at),
    ]


CRITERIA = (
    criterion(
        "varying-delay", "7.3", "Varying delay", "special", "SHOULD",
        "What becomes of goodput and queue when the least delay changes?",
        _varying, _share_delay_loss,
    ),
    criterion(
        "constrained", "7.4", "Constrained nodes", "special", "considered",
        "Does it work at very low rates, and how many segments and control packets are wasted?",
        _constrained, _read_constrained,
    ),
    criterion(
        "high-delay", "7.5", "High delay", "special", "ought",
        "Does it fill a path by satellite, and what does it lose there?",
        _high_delay, _share_delay_loss,
    ),
    criterion(
        "misbehaving", "7.6", "Misbehaving neighbours", "special", "SHOULD",
        "How much can it send beside senders that respond to nothing?",
        _misbehaving, _read_misbehaving,
    ),
    criterion(
        "reordering", "7.7", "Extreme reordering", "special", "ought",
        "How much of the capacity is used where packets overtake each other?",
        _reordering, _read_reordering,
    ),
    criterion(
        "transients", "7.8", "Transients", "special", "SHOULD",
        "How does it recover after the link was down for 2 s?",
        _transients, _read_transients,
    ),
    criterion(
        "changing-paths", "7.9", "Changing paths", "special", "MUST",
        "What becomes of goodput, queue and loss when rate and delay change with a route?",
        _changing, _share_delay_loss,
    ),
    criterion(
        "data-centre", "7.11", "Data centres", "special", "SHOULD say",
        "How long do queries take when many answer at once, below 2 ms?",
        _data_centre, _read_data_centre,
    ),
)  # fmt: skip
