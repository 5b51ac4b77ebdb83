"""Section 8 of RFC 7928: levels of congestion, changing load, changing capacity, and the
parameters of the discipline (with section 4.3, which asks for several values of them)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aqmlab.packs.rfc7928.dumbbell import WARMUP, Dumbbell, Made, seconds
from aqmlab.packs.rfc7928.environment import Contender, Environment
from aqmlab.packs.rfc7928.sections import Maker

PHASE = 20.0
FAST_PHASE = 0.1
HIGH = 10.0
"""Multiple of the environment's rate: with 10 Mbit/s, the 100 Mbit/s of section 8.2.6."""
CAPACITY_FLOWS = 5
WIRELESS = {"LTE": 1.0, "Wi-Fi": 3.0}
"""Realistic capacities: the mean of LTE, and the rate of the best coding scheme of Wi-Fi, as
factors of the environment's rate. Wi-Fi's overhead and another sender leave about a third."""
CONDITIONS = {
    "a tenth of the rate": (0.1, 1.0, 1.0),
    "four times the rate": (4.0, 1.0, 1.0),
    "a fifth of the round-trip time": (1.0, 0.2, 1.0),
    "three times the round-trip time": (1.0, 3.0, 1.0),
    "a third of the flows": (1.0, 1.0, 1 / 3),
    "three times the flows": (1.0, 1.0, 3.0),
}
"""Conditions for the stability of the control law (section 8.3): factors of rate, round-trip time
and number of flows."""


def level(flows: str) -> Maker:
    """One level of congestion: 8.2.2 to 8.2.4."""

    def cases(environment: Environment, contender: Contender, _: Sequence[Contender]) -> list[Made]:
        plan = Dumbbell(environment, contender)
        plan.tcp("bulk", getattr(environment, flows))
        return [plan.case()]

    return cases


def changing_load(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """Mild, medium and heavy congestion in turn, twice."""
    plan = Dumbbell(environment, contender)
    counts = (environment.mild, environment.medium, environment.heavy)
    plan.tcp("bulk", counts[0])
    for number, more in ((1, counts[1] - counts[0]), (2, counts[2] - counts[1])):
        if more < 1:
            continue
        on, off = (3 - number) * PHASE, number * PHASE
        plan.tcp(
            f"bulk_{number}",
            more,
            start=WARMUP + number * PHASE,
            workload={"kind": "sessions", "on": seconds(on), "off": seconds(off)},
        )
    return [plan.case(duration=WARMUP + 6 * PHASE, period=3 * PHASE)]


def changing_capacity(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """Ten times the rate and the rate itself in turn, for 20 s and for 100 ms each."""
    high = HIGH * environment.rate
    limit = environment.limit(rate=high)
    found = []
    for name, phase, interval in (("slow", PHASE, 0.2), ("fast", FAST_PHASE, FAST_PHASE / 4)):
        steps = [["0s", f"{round(high)}bit"], [seconds(phase), f"{round(environment.rate)}bit"]]
        rate = {"steps": steps, "repeat": True}
        plan = Dumbbell(environment, contender, rate=rate, back_rate=high, limit=limit)
        plan.tcp("bulk", CAPACITY_FLOWS)
        # Steps count from the start of the run: the warm-up is a whole number of periods.
        warmup, duration = (2 * PHASE, 6 * PHASE) if name == "slow" else (WARMUP, 40.0)
        found.append(
            plan.case(
                name,
                duration=duration,
                warmup=warmup,
                interval=interval,
                period=2 * phase,
            )
        )
    return found + _wireless(environment, contender)


def _wireless(environment: Environment, contender: Contender) -> list[Made]:
    """The same flows over synthetic LTE and Wi-Fi (docs/links.md)."""
    cases = []
    for name, factor in WIRELESS.items():
        own = f"{round(factor * environment.rate)}bit"
        rate = {"process": "lte", "mean": own} if name == "LTE" else {"process": "wifi", "phy": own}
        plan = Dumbbell(environment, contender, rate=rate)
        plan.tcp("bulk", CAPACITY_FLOWS)
        cases.append(plan.case(name))
    return cases


def sensitivity(
    environment: Environment, contender: Contender, _: Sequence[Contender]
) -> list[Made]:
    """Medium congestion with the main parameter from a quarter to four times its value."""
    cases = []
    for factor, settings in contender.knob_values(environment.limit()):
        # The buffer of the case, unless it is the main parameter itself.
        plan = Dumbbell(environment, contender, more=settings)
        plan.tcp("bulk", environment.medium)
        knob, value = next(iter(settings.items()))
        cases.append(plan.case(f"{knob} {value}", place=factor))
    return cases + _conditions(environment, contender)


def _conditions(environment: Environment, contender: Contender) -> list[Made]:
    """Medium congestion with the discipline as it is, where something else is different. The
    buffer is the product there."""
    cases = []
    for name, (rate, rtt, flows) in CONDITIONS.items():
        place = replace(environment, rate=environment.rate * rate, rtt=environment.rtt * rtt)
        plan = Dumbbell(place, contender)
        plan.tcp("bulk", max(round(place.medium * flows), 1))
        cases.append(plan.case(name))
    return cases
