"""Section 7 of RFC 7928: bursts of web pages and video frames into existing traffic."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.packs.rfc7928.dumbbell import DOWNWARDS, Dumbbell, Made, Way
from aqmlab.packs.rfc7928.environment import Contender, Environment

WEB = "rfc7928-web"
"""Pages of 50 objects of at least 1 kB over six connections, one page after another."""
CBR_SHARE, VIDEO_SHARE = 0.1, 0.25
"""Shares of the capacity."""
CASES = {
    "I": ("web", "cbr"),
    "II": ("web", "cbr", "bulk"),
    "III": ("video", "web", "cbr"),
    "IV": ("video", "web", "cbr", "bulk"),
}
"""Figure 2 of the RFC."""
BUFFERS = (0.25, 0.5, 2.0, 4.0)
"""Buffers of section 7.1, as factors of the buffer of 7.2."""


def add_web(plan: Dumbbell, count: int = 1, group: str = "web", way: Way = DOWNWARDS) -> None:
    """Browsers with the RFC's pages, over connections with an initial window of 10."""
    plan.tcp(group, count, window="10p", workload=WEB, **way)


def bursts(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
    """The four mixes of figure 2."""
    return [
        _mix(Dumbbell(environment, contender), classes).case(name)
        for name, classes in CASES.items()
    ]


def _mix(plan: Dumbbell, classes: Sequence[str]) -> Dumbbell:
    rate = plan.environment.rate
    plan.datagrams("cbr", CBR_SHARE * rate)
    add_web(plan)
    if "video" in classes:
        plan.tcp("video", workload={"kind": "video", "rate": f"{round(VIDEO_SHARE * rate)}bit"})
    if "bulk" in classes:
        plan.tcp("bulk")
    return plan


def buffers(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
    """All of figure 2 at once (mix IV), with smaller and larger buffers."""
    cases = []
    for factor in BUFFERS:
        limit = max(round(factor * environment.limit()), 4)
        plan = _mix(Dumbbell(environment, contender, limit=limit), CASES["IV"])
        cases.append(plan.case(f"{limit} packets", place=factor))
    return cases
