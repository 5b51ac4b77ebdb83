"""Section 5 of RFC 7928: senders of different kinds."""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.packs.rfc7928.dumbbell import HEADER, Dumbbell, Made
from aqmlab.packs.rfc7928.environment import PACKET, Contender, Environment

SHORT_PACKETS = 50
"""Packets of an application-limited flow: more than 10, fewer than 100."""
SHORT_FLOWS = 6
SHORT_FIRST, SHORT_GAP = 24.0, 9.0
"""Seconds: the long flow's goodput is stable, and one short flow is over before the next."""
LEDBAT = {"algorithm": "ledbat", "target": "5ms", "gain": 10.0}
"""Parameters that section 5.4 recommends."""


def friendly(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
    """One NewReno flow with an initial window of 3; one TFRC flow."""
    plan, smooth = (Dumbbell(environment, contender) for _ in range(2))
    plan.tcp("bulk")
    smooth.tfrc("tfrc")
    return [plan.case(), smooth.case("TFRC")]


def windows(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
    """A long flow, and short ones with an initial window of 3 or 10."""
    cases = []
    for window in ("3p", "10p"):
        plan = Dumbbell(environment, contender)
        plan.tcp("bulk")
        plan.tcp(
            "short",
            start=SHORT_FIRST - SHORT_GAP,
            window=window,
            workload={
                "kind": "transfers",
                "size": f"{SHORT_PACKETS * (PACKET - HEADER)}b",
                "gap": f"{SHORT_GAP:g}s",
                "number": SHORT_FLOWS,
            },
        )
        cases.append(plan.case(f"IW {window.removesuffix('p')}"))
    return cases


def aggressive(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """One CUBIC flow."""
    plan = Dumbbell(environment, contender)
    plan.tcp("cubic", control="cubic")
    return [plan.case()]


def unresponsive(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """Datagrams above the capacity alone; at three quarters of it beside a NewReno flow."""
    alone = Dumbbell(environment, contender)
    alone.datagrams("udp", 1.5 * environment.rate)
    beside = Dumbbell(environment, contender)
    beside.datagrams("udp", 0.75 * environment.rate)
    beside.tcp("bulk")
    return [alone.case("UDP 1.5 C"), beside.case("UDP 0.75 C + TCP")]


def background(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """A NewReno flow and a LEDBAT flow."""
    plan = Dumbbell(environment, contender)
    plan.tcp("bulk")
    plan.tcp("ledbat", control=LEDBAT)
    return [plan.case()]
