"""The statements of the paper, checked one by one: section 4 and the abstract, then section 3.

A statement is one row with one rule (`aqmlab.campaign`). A printed number is a rule of its
own.
"""

from __future__ import annotations

from collections.abc import Callable

from aqmlab.campaign import Asked, Rule, above, at_least, at_most, below, within
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.kuhn2014.measure import (
    AQMS,
    CONTROLS,
    CUBIC,
    MAIN_BUFFER,
    QUEUES,
    AnyRule,
    Mean,
    increased,
    ms,
    named,
    packet_mean,
    range_within,
    ratio,
    reduced,
    times,
    transfer_mean,
)
from aqmlab_studies.kuhn2014.section_3 import SECTION_3
from aqmlab_studies.shared import each, percent

POINTS = 0.05
"""A printed percentage is met within five points."""
SHARE = 0.05
"""A printed number is met within 5 %."""


def claims(measured: Measurements) -> list[Asked]:
    """All statements for which the points were run."""
    return measured.asked(study=(*HEADLINE, *SECTION_3))


def _reduces(queue: str) -> AnyRule:
    return Rule(
        f"reduces-{queue}".lower(),
        f"Section 4: {queue} enables a better latency than DropTail.",
        "the reduction is more than 10 % with each congestion control",
        _by_control(reduced(), queue),
        each(above, 0.1),
        named(percent),
        {control: 0.5 if control != "Vegas" else -0.1 for control in CONTROLS},
    )


def _alike(queue: str) -> AnyRule:
    return Rule(
        f"alike-{queue}".lower(),
        f"Introduction: with {queue} all congestion controls, loss-based or delay-based, "
        "experience relatively similar conditions.",
        "the mean packet transmission times of the four are within 25 % of each other",
        _by_control(packet_mean, queue),
        range_within(1.25),
        named(ms),
        {"CUBIC": 0.2, "NewReno": 0.12, "Vegas": 0.1, "Compound": 0.12},
    )


def _printed(
    ident: str, text: str, printed: float, value: Callable[[Measurements], float], wrong: float
) -> AnyRule:
    """A printed share: met within five points."""
    rule = f"within 5 percentage points of the printed {100 * printed:.0f} %"
    compared = lambda found: within(found, printed, POINTS)  # noqa: E731
    return Rule(ident, text, rule, value, compared, percent, wrong)


def _delay(
    ident: str, text: str, printed: tuple[float, float], queue: str, wrong: float
) -> AnyRule:
    """A printed mean delay: met within 5 %."""
    low, high = printed
    about = ms(low) if low == high else f"{ms(low)} to {ms(high)}"
    return Rule(
        ident,
        text,
        f"the mean packet transmission time with CUBIC is within 5 % of {about}",
        _with_cubic(packet_mean, queue),
        lambda found: [at_least(found, low * (1 - SHARE)), at_most(found, high * (1 + SHARE))],
        ms,
        wrong,
    )


def _with_cubic(mean: Mean, queue: str) -> Callable[[Measurements], float]:
    return lambda study: mean(study, queue=queue, buffer=MAIN_BUFFER, **CUBIC)


def _by_control(mean: Mean, queue: str) -> Callable[[Measurements], dict[str, float]]:
    return lambda study: {
        control: mean(study, queue=queue, control=control, buffer=MAIN_BUFFER)
        for control in CONTROLS
    }


def _vegas_over_cubic(study: Measurements) -> dict[str, float]:
    """The time for the 10 MB with Vegas as a multiple of that with CUBIC, by queue."""
    over_cubic = ratio(transfer_mean, CUBIC)
    return {q: over_cubic(study, queue=q, control="Vegas", buffer=MAIN_BUFFER) for q in QUEUES}


def _fairer(queue: str) -> AnyRule:
    return Rule(
        f"fairer-{queue.lower()}",
        f"Section 6: {queue} makes the network fairer to delay-based congestion control.",
        "the time for the 10 MB with Vegas is a multiple of that with CUBIC (each among "
        "applications of its own kind: the study never has the two compete) that is nearer to 1 by "
        "more than 0.02 than with DropTail",
        _vegas_over_cubic,
        lambda found: below(abs(found[queue] - 1) - abs(found["DropTail"] - 1), -0.02),
        named(times),
        dict.fromkeys(AQMS, 2.0) | {"DropTail": 1.5},
    )


HEADLINE: tuple[AnyRule, ...] = (
    _printed("reduction-codel", "Abstract: CoDel reduces the latency by 87 % (with CUBIC).",
             0.87, _with_cubic(reduced(), "CoDel"), 0.75),
    _printed("reduction-red", "Abstract: RED reduces the latency by 75 % (with CUBIC).",
             0.75, _with_cubic(reduced(), "RED"), 0.87),
    _printed("codel-time-over-red", "Abstract: CoDel's transmission time of 10 MB is 42 % longer "
             "than RED's (with CUBIC).", 0.42, _with_cubic(increased({"queue": "RED"}), "CoDel"),
             0.31),
    _printed("codel-time", "Section 4: CoDel's transmission time of 10 MB is 42 % longer than "
             "DropTail's (with CUBIC).", 0.42, _with_cubic(increased(), "CoDel"), 0.31),
    _printed("red-time", "Section 4: RED's transmission time of 10 MB is 5 % longer (with CUBIC).",
             0.05, _with_cubic(increased(), "RED"), 0.15),
    Rule(
        "red-time-all",
        "Section 4: RED's drops do not impact the transmission time of 10 MB much, with any "
        "congestion control.",
        "its increase against DropTail is within 10 % with each of the four",
        _by_control(increased(), "RED"),
        lambda found: [within(value, 0, 0.1, name) for name, value in found.items()],
        named(percent),
        {"CUBIC": 0.02, "NewReno": 0.03, "Vegas": 0.30, "Compound": 0.0},
    ),
    *(_reduces(queue) for queue in AQMS),
    *(_alike(queue) for queue in AQMS),
    Rule(
        "red-shorter-times",
        "Introduction: RED allows for shorter transmission times than CoDel.",
        "the mean time for the 10 MB is more than 5 % shorter with RED, with each congestion "
        "control",
        _by_control(ratio(transfer_mean, {"queue": "CoDel"}), "RED"),
        each(below, 0.95),
        lambda found: f"of CoDel's {named(percent)(found)}",
        {"CUBIC": 0.7, "NewReno": 0.7, "Vegas": 1.0, "Compound": 0.7},
    ),
    Rule(
        "codel-reduces-more",
        "Section 3: RED reduces the packet delay, yet not as much as CoDel.",
        "the mean packet transmission time is more than 5 % longer with RED than with CoDel, with "
        "each congestion control",
        _by_control(ratio(packet_mean, {"queue": "CoDel"}), "RED"),
        each(above, 1.05),
        named(times),
        {"CUBIC": 2.0, "NewReno": 2.0, "Vegas": 0.99, "Compound": 2.0},
    ),
    _delay("packet-codel", "Section 4: with CUBIC and CoDel packets take 115 ms.",
           (0.115, 0.115), "CoDel", 0.103),
    _delay("packet-red", "Section 4: with CUBIC and RED packets take 226 ms.",
           (0.226, 0.226), "RED", 0.250),
    _delay("packet-droptail", "Section 4: 115 ms that are 87 % less and 226 ms that are 75 % less "
           "imply 885 to 904 ms with DropTail.", (0.885, 0.904), "DropTail", 1.06),
    Rule(
        "vegas-least",
        "Section 4: with DropTail, Vegas introduces less latency than any other congestion "
        "control.",
        "its mean packet transmission time is more than 5 % below each of the others",
        _by_control(packet_mean, "DropTail"),
        lambda found: [
            below(found["Vegas"] / value, 0.95, name)
            for name, value in found.items() if name != "Vegas"
        ],
        named(ms),
        {"CUBIC": 1.0, "NewReno": 1.0, "Vegas": 0.9, "Compound": 0.8},
    ),
    _printed("vegas-44", "Section 4: with DropTail, Vegas reduces the latency by 44 % against "
             "CUBIC.", 0.44,
             lambda study: reduced(CUBIC)(
                 study, queue="DropTail", control="Vegas", buffer=MAIN_BUFFER),
             0.85),
    _fairer("RED"),
    _fairer("CoDel"),
)  # fmt: skip
