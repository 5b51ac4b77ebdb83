"""Special queues: AQMs, ECN, L4S, circuit breakers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aqmlab.campaign import Filled, Reading
from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE, NEITHER
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.readings import criterion, milliseconds, percent, reading
from aqmlab.packs.rfc9743.scene import PACKET, ControlSetup, Path, Table, bulk, scenario

PATH = Path(20e6, 0.04, 4.0)
LASTS, WARM = 30.0, 10.0
AQMS = ("codel", "pie", "fq_codel")
CUBIC = ControlSetup("cubic", "cubic")
PRAGUE = ControlSetup("prague", "prague")
CLASSIC = {"ecn": "classic"}


def _aqm(control: ControlSetup) -> Mapping[str, Table]:
    flows = {"own": bulk(control), "victim": bulk(CUBIC)}
    return {
        name: scenario(PATH.links(queue=name), flows, duration=LASTS, warmup=WARM) for name in AQMS
    }


def _read_aqm(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        at = results[case]
        made += [
            milliseconds(case, "queuing delay, p95", at.waiting, 2.0),
            percent(case, "loss", LESS, at.loss("own"), 0.5),
            percent(case, "goodput of a CUBIC flow", MORE, at.goodput("victim") / PATH.rate),
        ]
    return made


def _ecn(control: ControlSetup) -> Mapping[str, Table]:
    # Of a control that asks for ECN itself its own; the others answer CE as RFC 3168 says.
    own = bulk(control, 2, transport={} if control.sets_ecn else CLASSIC)
    return {
        name: scenario(
            PATH.links(queue={"discipline": name, "ecn": True}),
            {"own": own, "victim": bulk(CUBIC, transport=CLASSIC)},
            duration=LASTS,
            warmup=WARM,
        )
        for name in ("codel", "pie")
    }


def _read_ecn(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        at = results[case]
        made += [
            milliseconds(case, "queuing delay, p95", at.waiting, 2.0),
            percent(case, "goodput of a CUBIC flow with ECN", MORE,
                    at.goodput("victim") / PATH.rate),
            # A scalable control is marked often by design: neither is better.
            reading(case, "packets marked", "%", NEITHER,
                    100 * at.metric("mark_share", "down"), 1.0),
        ]  # fmt: skip
    return made


def _l4s(control: ControlSetup) -> Mapping[str, Table]:
    own = bulk(control, delays=True)
    others = {"beside Prague": ("prague", PRAGUE), "beside CUBIC": ("cubic", CUBIC)}
    return {
        case: scenario(
            PATH.links(queue="dualpi2"),
            {"own": own, name: bulk(other, delays=True)},
            duration=LASTS,
            warmup=WARM,
        )
        for case, (name, other) in others.items()
    }


def _waited(at: CaseResults, group: str) -> Floats:
    """The 95th percentile of a group's queuing delays, s. In a run in which none of its packets
    arrives after the warm-up they wait for all that is left of it."""
    delays = at.metric("delay_p95", group)
    return np.where(delays > 0, delays - PATH.rtt / 2, LASTS - WARM)


def _read_l4s(results: Filled) -> list[Reading]:
    made = []
    for case, other in (("beside Prague", "prague"), ("beside CUBIC", "cubic")):
        at = results[case]
        name = "Prague" if other == "prague" else "CUBIC"
        made += [
            milliseconds(case, f"queuing delay of {name}'s packets, p95", _waited(at, other), 1.0),
            percent(case, f"goodput of {name}", MORE, at.goodput(other) / PATH.rate),
            milliseconds(case, "queuing delay of its own packets, p95", _waited(at, "own"), 1.0),
            percent(case, "goodput of its own", MORE, at.goodput("own") / PATH.rate),
        ]  # fmt: skip
    return made


STEADY_LOSS = (0.02, 0.1, 0.2)
"""Loss rates of a path, independent of the load: RFC 8084's examples react from 10 % on."""
BREAKER = Path(10e6, 0.05)


def _breaker(control: ControlSetup) -> Mapping[str, Table]:
    return {
        f"lasting loss of {100 * loss:g} %": scenario(
            BREAKER.links(loss=loss), {"own": bulk(control)}, duration=40, warmup=10
        )
        for loss in STEADY_LOSS
    }


def _read_breaker(results: Filled) -> list[Reading]:
    made = []
    for case in results:
        sent = results[case].flow("own", "segments_sent") * (8 * PACKET) / 30.0
        made.append(reading(case, "still sent", "Mbit/s", LESS, sent / 1e6, 0.1))
    return made


CRITERIA = (
    criterion(
        "aqm", "7.1", "AQM", "special", "SHOULD",
        "What delay and loss does it have under CoDel, PIE and FQ-CoDel, and what does CUBIC get?",
        _aqm, _read_aqm,
    ),
    criterion(
        "ecn", "7.1", "ECN", "special", "SHOULD",
        "Does it answer CE marks as the codepoint that it sets demands (RFC 3168, RFC 9331)?",
        _ecn, _read_ecn,
    ),
    criterion(
        "l4s", "7.1", "L4S", "special", "SHOULD",
        "What do Prague and CUBIC wait and get beside it behind DualPI2?",
        _l4s, _read_l4s,
    ),
    criterion(
        "breaker", "7.2", "Circuit breakers", "special", "ought",
        "How much does it still send into losses that do not end (RFC 8084)?",
        _breaker, _read_breaker,
    ),
)  # fmt: skip
