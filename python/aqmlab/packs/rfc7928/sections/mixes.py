"""Section 9 of RFC 7928: a mix of applications, and traffic in both directions."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.packs.rfc7928.dumbbell import DOWNWARDS, UPWARDS, Dumbbell, Made, Way
from aqmlab.packs.rfc7928.environment import Contender, Environment, congestion_flows
from aqmlab.packs.rfc7928.sections.bursts import CBR_SHARE, add_web

BROWSERS, BULK = 6, 5
ASYMMETRY = 10
"""Ratio of the rates of both directions."""
MIX = "mix"
"""Prefix of the cases of section 9.2 with the mix."""
UP = "-up"
"""Suffix of the upstream classes of the mix."""


def mix(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
    """The RFC's example: a call, six web downloads, a constant stream, a video, five bulk flows."""
    plan = Dumbbell(environment, contender)
    plan.tcp("voip", workload="voip")
    add_mix(plan, environment.rate)
    return [plan.case()]


def add_mix(plan: Dumbbell, rate: float, suffix: str = "", way: Way = DOWNWARDS) -> None:
    """Adds the mix without its call, which has both directions; `rate` is that of the direction."""
    add_web(plan, BROWSERS, f"web{suffix}", way)
    plan.datagrams(f"cbr{suffix}", CBR_SHARE * rate, **way)
    plan.tcp(f"video{suffix}", control="cubic", window="10p", workload="dash", **way)
    plan.tcp(f"bulk{suffix}", BULK, **way)


def both_ways(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
    """Mild congestion in both directions, and the mix of 9.1 in both, symmetric and not, with
    the discipline in one direction and in both (RFC 7928, section 3.1)."""
    mild, mixes = [], []
    for name, up_rate in (
        ("symmetric", environment.rate),
        ("asymmetric", environment.rate / ASYMMETRY),
    ):
        size = environment.limit(rate=up_rate)
        up_flows = congestion_flows(0.036, environment.bdp(rate=up_rate) + size)
        for where in ("one AQM", "two AQMs"):
            bulk, applications = (
                Dumbbell(environment, contender, back_rate=up_rate) for _ in range(2)
            )
            fifo = {"discipline": "droptail", "limit": f"{size}p"}
            for plan in (bulk, applications):
                plan.links["up"]["queue"] = plan.queue(size) if where == "two AQMs" else fifo
            bulk.tcp("down", environment.mild)
            bulk.tcp("up", up_flows, **UPWARDS)
            mild.append(bulk.case(f"{name}, {where}"))
            applications.tcp("voip", workload="voip")
            add_mix(applications, environment.rate)
            add_mix(applications, up_rate, UP, UPWARDS)
            mixes.append(applications.case(f"{MIX}, {name}, {where}"))
    return [*mild, *mixes]
