"""Section 4 of RFC 7928: comparison at the same targets, packet sizes, ECN and scheduling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aqmlab.packs.rfc7928.dumbbell import HEADER, UPWARDS, Dumbbell, Made
from aqmlab.packs.rfc7928.environment import NEWRENO, PACKET, Contender, Environment
from aqmlab.packs.rfc7928.sections.rtt import rtt_cases
from aqmlab.scenario.quic import quic_endpoint

SMALL = 500
"""Bytes of the packets of category I."""
BOTH_WAYS = "both ways"
"""The case of section 4.4 with traffic in both directions."""
JITTER, PACED = "jitter", "paced"
"""Cases with acknowledgements of varying delay, and with paced senders: the trains of bulk senders
can make a discipline appear to favour a size."""
ACK_JITTER = "5ms"
"""The half width of the uniform jitter of the acknowledgements."""
THIN_RATE, THIN_PACKET = 80e3, 200
"""Rate in bit/s and packets in bytes of the thin flow of section 4.6, those of a call."""


TARGETS = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08)
"""Target delays of every discipline, in seconds (section 4.3.1)."""


def same_targets(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """Medium congestion with the discipline's main parameter set to each of `TARGETS`."""
    cases = []
    for target, settings in contender.matched(TARGETS, environment.rate):
        plan = Dumbbell(environment, contender, more=settings)
        plan.tcp("bulk", environment.medium)
        cases.append(plan.case(f"{1e3 * target:g} ms", place=target))
    return cases


def packet_sizes(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """Mild congestion, half of the flows with small packets: as bulk senders are, with jitter on
    the acknowledgements, with paced senders; and both ways (RFC 7928, section 9.2) with the
    discipline in both directions."""
    half = max(environment.mild // 2, 1)
    if quic_endpoint(environment.control):  # has no packets as small (RFC 9000, section 14)
        environment = replace(environment, control=NEWRENO)
    sizes = {"small": SMALL - HEADER, "large": PACKET - HEADER}
    bulk, jitter, paced, both = (Dumbbell(environment, contender) for _ in range(4))
    both.links["up"]["queue"] = both.queue()
    jitter.links["up"]["jitter"] = {"spread": ACK_JITTER, "distribution": "uniform"}
    for name, mss in sizes.items():
        for plan in (bulk, jitter, both):
            plan.tcp(name, half, mss=mss)
        paced.tcp(name, half, mss=mss, transport={"pacing": True})
    for name, mss in sizes.items():
        # Both directions are alike: their flows are of one class.
        both.tcp(f"{name}_up", half, mss=mss, **UPWARDS)
    return [
        bulk.case(),
        jitter.case(JITTER),
        paced.case(PACED),
        both.case(BOTH_WAYS),
    ]


def ecn(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
    """The cases of 6.2 with ECN at the senders, and in the queue where it can."""
    return rtt_cases(environment, contender, ecn=True)


def scheduling(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """Mild congestion, and a thin flow beside it."""
    plan = Dumbbell(environment, contender)
    plan.tcp("bulk", environment.mild)
    plan.datagrams("thin", THIN_RATE, packet=f"{THIN_PACKET}b")
    return [plan.case()]
