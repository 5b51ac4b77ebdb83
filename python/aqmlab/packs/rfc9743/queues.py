"""Special queues: AQMs, ECN, L4S, circuit breakers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from aqmlab.campaign.readings import CaseResults
from aqmlab.metrics.registry import LESS, MORE, NEITHER
from aqmlab.metrics.samples import Floats
from aqmlab.packs.rfc9743.readings import LOSS, Measure, criterion
from aqmlab.packs.rfc9743.scene import OWN, PACKET, ControlSetup, Path, Table, bulk, scenario

PATH = Path(20e6, 0.04, 4.0)
LASTS, WARM = 30.0, 10.0
AQMS = ("codel", "pie", "fq_codel")
CUBIC = ControlSetup("cubic", "cubic")
PRAGUE = ControlSetup("prague", "prague")
CLASSIC = {"ecn": "classic"}
DELAY = Measure("queuing delay, p95", "ms", LESS, lambda at: 1e3 * at.waiting, 2.0)
STEADY_LOSS = (0.02, 0.1, 0.2)
"""Loss rates of a path, independent of the load: RFC 8084's examples react from 10 % on."""
BREAKER = Path(10e6, 0.05)


def _answering(own: ControlSetup) -> Table:
    """Two flows that answer CE as RFC 3168 says, unless the control asks for ECN by itself."""
    return bulk(own, 2, transport={} if own.sets_ecn else CLASSIC)(own)


def _goodput(name: str, group: str) -> Measure:
    return Measure(name, "%", MORE, lambda at: 100 * (at.goodput(group) / PATH.rate))


def _waited(group: str) -> Callable[[CaseResults], Floats]:
    """The 95th percentile of a group's queuing delays, ms. In a run in which none of its packets
    arrives after the warm-up they wait for all that is left of it."""

    def of(at: CaseResults) -> Floats:
        delays = at.metric("delay_p95", group)
        return 1e3 * np.where(delays > 0, delays - PATH.rtt / 2, LASTS - WARM)

    return of


def _beside(name: str, group: str) -> Iterator[Measure]:
    own = "queuing delay of its own packets, p95"
    yield Measure(f"queuing delay of {name}'s packets, p95", "ms", LESS, _waited(group), 1.0)
    yield _goodput(f"goodput of {name}", group)
    yield Measure(own, "ms", LESS, _waited("own"), 1.0)
    yield _goodput("goodput of its own", "own")


CRITERIA = (
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
            DELAY,
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
            DELAY, _goodput("goodput of a CUBIC flow with ECN", "victim"),
            # A scalable control is marked often by design: neither is better.
            Measure("packets marked", "%", NEITHER,
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
            Measure("still sent", "Mbit/s", LESS,
                    lambda at: at.flow("own", "segments_sent") * (8 * PACKET) / 30.0 / 1e6, 0.1),
        ),
    ),
)  # fmt: skip
