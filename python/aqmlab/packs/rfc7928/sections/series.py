"""Section 10 of RFC 7928: two disciplines in a row.

Senders A send over Router L and Router M, senders B over Router M alone. The capacity
behind L is half of that behind M: the flows are shared equally, so both are full.
"""

from __future__ import annotations

from collections.abc import Sequence

from aqmlab.packs.rfc7928.dumbbell import Dumbbell, Made, bits
from aqmlab.packs.rfc7928.environment import Contender, Environment


def multi(
    environment: Environment, contender: Contender, everyone: Sequence[Contender]
) -> list[Made]:
    """The same twice, the same with another parameter, and each of the others behind it."""
    half = max(environment.mild // 2, 1)
    variants: list[tuple[str, dict[str, object]]] = [("same", {})]
    values = [settings for factor, settings in contender.knob_values(environment.limit())
              if factor == 2.0]  # fmt: skip
    if values:
        knob, value = next(iter(values[0].items()))
        variants.append((f"M with {knob} {value}", values[0]))
    others = [each for each in everyone if each.name != contender.name]
    plans = []
    for name, settings in variants:
        plans.append((name, contender.queue(environment.limit(), settings)))
    plans += [(f"M with {each.name}", each.queue(environment.limit())) for each in others]
    cases = []
    for name, behind in plans:
        plan = Dumbbell(environment, contender)
        plan.links["first"] = {
            "rate": bits(environment.rate / 2),
            "delay": "0s",
            "queue": plan.queue(),
        }
        plan.links["down"]["queue"] = behind
        plan.tcp("a", half, path=["first", "down"])
        plan.tcp("b", half)
        cases.append(plan.case(name))
    return cases
