"""Section 7 of RFC 7928: bursts of web pages and video frames into what is there already."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.characterize.case import DOWNWARDS, Case, Dumbbell, Way
from aqmlab.characterize.environment import Contender, Environment
from aqmlab.characterize.sections import Section

WEB = "rfc7928-web"
"""Pages of 50 objects of at least 1 kB over six connections, one page after another."""
CBR_SHARE, VIDEO_SHARE = 0.1, 0.25
"""Of the capacity."""
CASES = {
    "I": ("web", "cbr"),
    "II": ("web", "cbr", "bulk"),
    "III": ("video", "web", "cbr"),
    "IV": ("video", "web", "cbr", "bulk"),
}
"""Figure 2 of the RFC."""


def add_web(plan: Dumbbell, count: int = 1, group: str = "web", way: Way = DOWNWARDS) -> None:
    """Browsers with the RFC's pages, over connections with an initial window of 10."""
    plan.tcp(group, count, window="10p", workload=WEB, **way)


def bursts(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Case]:
    """The four mixes of figure 2."""
    cases = []
    for name, classes in CASES.items():
        plan = Dumbbell(environment, contender)
        plan.datagrams("cbr", CBR_SHARE * environment.rate)
        add_web(plan)
        if "video" in classes:
            video = {"kind": "video", "rate": f"{round(VIDEO_SHARE * environment.rate)}bit"}
            plan.tcp("video", workload=video)
        if "bulk" in classes:
            plan.tcp("bulk")
        cases.append(plan.case("7.2", name))
    return cases


SECTIONS = [
    Section(
        "7.2",
        "Burst absorption",
        "What becomes of pages and video frames that come in bursts?",
        bursts,
        "must be considered",
    )
]
