"""Section 9 of RFC 7928: a mix of applications, and traffic both ways."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.characterize.case import Case, Dumbbell
from aqmlab.characterize.environment import Contender, Environment, congestion_flows
from aqmlab.characterize.sections import Section
from aqmlab.characterize.sections.bursts import CBR_SHARE, add_web

BROWSERS, BULK = 6, 5
ASYMMETRY = 10
"""How many times faster the way down is than the way up."""


def mix(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Case]:
    """The RFC's example: a call, six web downloads, a constant stream, a video, five bulk flows."""
    plan = Dumbbell(environment, contender)
    plan.tcp("voip", workload="voip")
    add_web(plan, BROWSERS)
    plan.datagrams("cbr", CBR_SHARE * environment.rate)
    plan.tcp("video", control="cubic", window="10p", workload="dash")
    plan.tcp("bulk", BULK)
    return [plan.case("9.1")]


def both_ways(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Case]:
    """Mild congestion in both directions, symmetric and not, with the discipline in one
    direction and in both (RFC 7928, section 3.1)."""
    cases = []
    for name, up_rate in (
        ("symmetric", environment.rate),
        ("asymmetric", environment.rate / ASYMMETRY),
    ):
        size = environment.limit(rate=up_rate)
        up_flows = congestion_flows(0.036, environment.bdp(rate=up_rate) + size)
        for where in ("one AQM", "two AQMs"):
            plan = Dumbbell(environment, contender, back_rate=up_rate)
            fifo = {"discipline": "droptail", "limit": f"{size}p"}
            plan.links["up"]["queue"] = plan.queue(size) if where == "two AQMs" else fifo
            plan.tcp("down", environment.mild)
            plan.tcp("up", up_flows, path=["up"], back=["down"])
            cases.append(plan.case("9.2", f"{name}, {where}", links=("down", "up")))
    return cases


SECTIONS = [
    Section(
        "9.1",
        "Traffic mix",
        "How do calls, pages, video and bulk flows fare together?",
        mix,
        "recommended",
    ),
    Section(
        "9.2",
        "Bidirectional traffic",
        "Mild congestion both ways: how many acknowledgements and SYNs are lost?",
        both_ways,
        "may be considered",
    ),
]
