"""Section 6 of RFC 7928: flows of different round-trip times."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.packs.rfc7928.dumbbell import Dumbbell, Made, bits, seconds
from aqmlab.packs.rfc7928.environment import Contender, Environment

FIRST = 0.1
"""Round-trip time of category I, in seconds."""
SECOND = (0.005, 0.010, 0.020, 0.050, 0.100, 0.200, 0.350, 0.560)
"""Round-trip times of category II."""


def rtt_cases(environment: Environment, contender: Contender, *, ecn: bool) -> list[Made]:
    """Two NewReno flows, one over 100 ms and one over each of `SECOND`. The buffer is the
    product with the longest of them, the same in all cases (RFC 7928, section 3.2)."""
    wished = {"ecn": True} if ecn else {}
    transport = {"ecn": "classic"} if ecn else {}
    limit = environment.limit(max(SECOND))
    cases = []
    for rtt in SECOND:
        # The bottleneck is as short as the shortest path; the rest is a link of each class.
        plan = Dumbbell(environment, contender, rtt=min(SECOND), limit=limit, wished=wished)
        for name, own in (("cat1", FIRST), ("cat2", rtt)):
            access = f"access_{name}"
            # Of no rate that matters, and behind the bottleneck: no queue.
            plan.links[access] = {"rate": bits(100e9), "delay": seconds(own - min(SECOND))}
            plan.tcp(name, path=["down", access], transport=transport)
        cases.append(plan.case(f"RTT {1e3 * rtt:g} ms", place=rtt))
    return cases


def fairness(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
    """The recommended tests."""
    return rtt_cases(environment, contender, ecn=False)
