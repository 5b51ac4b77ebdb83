"""The statements of the paper, checked one by one: section 4 and the abstract, then section 3.

A statement is one row with one rule (`aqmlab.campaign`). A printed number is a rule of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from aqmlab.campaign import Asked, Rule, above, at_least, at_most, below, within
from aqmlab.metrics.samples import Floats, quantile
from aqmlab.numbers import listed
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.kuhn2014.measure import (
    AQMS,
    BUFFERS,
    CONTROLS,
    CUBIC,
    MAIN_BUFFER,
    QUEUES,
    ROOMY,
    AnyRule,
    Mean,
    increased,
    mbit,
    ms,
    named,
    packet_mean,
    range_within,
    ratio,
    reduced,
    seconds,
    times,
    transfer_mean,
)
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


RANGES = {"CoDel": (0.01, 0.1), "RED": (0.1, 0.5)}
LIMITED = BUFFERS[:-1]
"""The buffers with a limit, in packets."""
PACKET = 8 * 1050 / 1e6
"""The transmission time of a packet of the transfer, seconds."""


def _delays(study: Measurements, queue: str, control: str, buffers: Iterable[str]) -> Floats:
    """The mean queuing delay in each second, of all runs with these buffers."""
    delays: Floats = np.concatenate(
        [
            run.delay
            for buffer in buffers
            for run in seconds(study, queue=queue, control=control, buffer=buffer)
        ]
    )
    kept: Floats = delays[np.isfinite(delays)]
    return kept


def _shares(queue: str, control: str) -> Callable[[Measurements], list[tuple[float, float]]]:
    """What the queue and DropTail drop, by buffer."""

    def shares(study: Measurements) -> list[tuple[float, float]]:
        def share(name: str, buffer: str) -> float:
            labels = {"queue": name, "buffer": buffer, "control": control}
            arrived = study.count("arrived", **labels).sum()
            return float(study.count("dropped", **labels).sum() / arrived)

        return [(share(queue, buffer), share("DropTail", buffer)) for buffer in ROOMY]

    return shares


def _dropped(queue: str) -> AnyRule:
    return Rule(
        f"drops-{queue.lower()}",
        f"Figure 2: the introduction of {queue} results in drop events.",
        "with CUBIC the share that it drops is larger than DropTail's by at least a tenth of it, "
        f"with buffers of {listed(ROOMY)}",
        _shares(queue, "CUBIC"),
        lambda found: [
            above(ours - 1.1 * theirs, 0, buffer)
            for buffer, (ours, theirs) in zip(ROOMY, found, strict=True)
        ],
        lambda found: ", ".join(f"{percent(a)} and {percent(b)}" for a, b in found),
        [(0.02, 0.01), (0.02, 0.01), (0.0, 0.0)],
    )


def _range(queue: str, control: str) -> AnyRule:
    low, high = RANGES[queue]

    def inside(study: Measurements) -> float:
        delays = _delays(study, queue, control, BUFFERS)
        return float(((delays >= low) & (delays <= high)).mean())

    return Rule(
        f"delay-range-{queue}-{control}".lower(),
        f"Section 3: with {queue} and {control} the queuing delay ranges between {low:g} s and "
        f"{high:g} s.",
        "it is inside in at least 80 % of the seconds (means over a second, all buffers)",
        inside,
        lambda found: at_least(found, 0.8),
        percent,
        0.6,
    )


def _maximum(queue: str, limit: float) -> AnyRule:
    return Rule(
        f"delay-maximum-{queue}".lower(),
        f"Figure 2: {queue} reduces the maximum queuing delay to {ms(limit)} (with CUBIC).",
        f"the largest mean of a second, all buffers, is within 10 % of {ms(limit)}",
        lambda study: float(_delays(study, queue, "CUBIC", BUFFERS).max()),
        lambda found: within(found / limit, 1, 0.1),
        ms,
        0.5 * limit,
    )


def _size(queue: str, text: str, most: float) -> AnyRule:
    return Rule(
        f"buffer-size-{queue}".lower(),
        text,
        f"medians of the second's mean queuing delay with CUBIC and buffers of {listed(ROOMY)} are "
        f"within {100 * most:.0f} %",
        lambda study: {
            buffer: quantile(_delays(study, queue, "CUBIC", (buffer,)), 0.5) for buffer in ROOMY
        },
        range_within(1 + most),
        named(ms),
        {"45": 0.02, "125": 0.02, "unlimited": 0.03},
    )


def _throughputs(
    control: str, queue: str = "DropTail", buffers: Iterable[str] = BUFFERS
) -> Callable[[Measurements], dict[str, float]]:
    """The mean throughput of the 10 MB in Mbit/s, by buffer."""
    return lambda study: {
        buffer: 80 / transfer_mean(study, queue=queue, control=control, buffer=buffer)
        for buffer in buffers
    }


def _by_buffer(control: str, word: str, figure: int, sign: int) -> AnyRule:
    grows = dict(zip(BUFFERS, (0.2, 0.3, 0.4, 0.5), strict=True))
    falls = dict(zip(BUFFERS, (0.5, 0.4, 0.3, 0.2), strict=True))
    return Rule(
        f"{control.lower()}-buffer",
        f"Figure {figure}: with DropTail and {control} the throughput {word} with larger queues.",
        "the mean throughput of the 10 MB does so by more than 2 % with each larger buffer",
        _throughputs(control),
        lambda found: [
            above(sign * (b / a - 1), 0.02, "step") for a, b in pairwise(found.values())
        ],
        named(mbit, " Mbit/s"),
        falls if sign > 0 else grows,
    )


def _ratios(
    control: str, buffers: Iterable[str] = BUFFERS
) -> Callable[[Measurements], dict[str, float]]:
    """The throughput with RED as a multiple of that with CoDel, by buffer."""

    def value(study: Measurements) -> dict[str, float]:
        red, codel = (_throughputs(control, queue, buffers)(study) for queue in AQMS)
        return {buffer: red[buffer] / codel[buffer] for buffer in buffers}

    return value


def vegas_loads(study: Measurements) -> str:
    """What the throughput with RED is as a multiple of that with CoDel under other loads."""
    part = study.part("vegas")
    over_red = ratio(transfer_mean, {"queue": "RED"})
    told = {load: over_red(part, queue="CoDel", load=load) for load in part.axes["load"]}
    listed = ", ".join(f"{multiple:.2f} with {load}" for load, multiple in told.items())
    return f"a transfer by Vegas past other backgrounds, buffer {MAIN_BUFFER}: {listed}"


def _up_to(queue: str, limit: float) -> AnyRule:
    at = {"queue": queue, "buffer": MAIN_BUFFER, **CUBIC}
    return Rule(
        f"up-to-{queue}".lower(),
        f"Figure 4: with CUBIC and {queue} the throughput goes up to {limit:g} Mbit/s.",
        f"95 % of the seconds are below a rate that is within 10 % of {limit:g} Mbit/s",
        lambda study: (
            1e-6 * quantile(np.concatenate([run.throughput for run in seconds(study, **at)]), 0.95)
        ),
        lambda found: within(found / limit, 1, 0.1),
        lambda found: f"{found:.2f} Mbit/s",
        1.25 * limit,
    )


def _vegas_drops(study: Measurements) -> dict[str, bool]:
    """Whether the AQM drops more than DropTail, or less, with Vegas as it does with CUBIC."""
    return {
        f"{queue}, {buffer}": (a > b) == (c > d)
        for queue in AQMS
        for buffer, (a, b), (c, d) in zip(
            ROOMY, _shares(queue, "Vegas")(study), _shares(queue, "CUBIC")(study), strict=True
        )
    }


def _full(study: Measurements) -> dict[str, float]:
    """DropTail's largest delay of a second as a share of what a full buffer takes."""
    return {
        buffer: float(_delays(study, "DropTail", "CUBIC", (buffer,)).max()) / (int(buffer) * PACKET)
        for buffer in LIMITED
    }


def _used(study: Measurements) -> dict[str, float]:
    """By how much the bottleneck is used more with RED than with CoDel, by buffer."""

    def used(queue: str, buffer: str) -> float:
        return float(study.count("utilisation", queue=queue, buffer=buffer, **CUBIC).mean())

    return {buffer: used("RED", buffer) - used("CoDel", buffer) for buffer in ROOMY}


def _neglected(queue: str) -> AnyRule:
    return Rule(
        f"size-neglected-{queue}".lower(),
        f"Section 5: with {queue} the size of the queue can be neglected without any substantially "
        "negative impact.",
        f"the mean throughputs of the 10 MB with CUBIC and buffers of {listed(ROOMY)} are within "
        "10 %",
        _throughputs("CUBIC", queue, ROOMY),
        range_within(1.1),
        named(mbit, " Mbit/s"),
        {"45": 0.2, "125": 0.3, "unlimited": 0.3},
    )


def _others_alike(control: str) -> AnyRule:
    return Rule(
        f"as-cubic-{control}".lower(),
        f"Section 3: {control}, loss-based too, shows the same behaviour as CUBIC.",
        f"with buffers of {listed(ROOMY)} its throughput is more than 5 % larger with RED than "
        "with CoDel, as that of CUBIC",
        lambda study: {
            f"{name}, {buffer}": ratio
            for name in (control, "CUBIC") for buffer, ratio in _ratios(name, ROOMY)(study).items()
        },
        each(above, 1.05),
        named(times),
        {"CUBIC, 125": 1.3, f"{control}, 125": 0.9},
    )  # fmt: skip


SECTION_3: tuple[AnyRule, ...] = (
    _dropped("RED"),
    _dropped("CoDel"),
    Rule(
        "drops-vegas",
        "Section 3: the drops with Vegas are qualitatively similar to those with CUBIC (figure 2).",
        "where RED or CoDel drops a larger share than DropTail with CUBIC, it does so with Vegas, "
        f"and likewise a smaller one, with buffers of {listed(ROOMY)}",
        _vegas_drops,
        lambda found: [at_least(alike, 1, name) for name, alike in found.items()],
        lambda found: f"alike in {sum(found.values())} of {len(found)} cases",
        {"RED, 45": True, "CoDel, 45": False},
    ),
    Rule(
        "droptail-full",
        "Figure 2: with DropTail the queuing delay is maximised by the size of the queue (CUBIC).",
        f"with buffers of {listed(LIMITED)} the largest mean of a second is at least 80 % of what "
        "a full buffer takes, and at most 105 %",
        _full,
        lambda found: [each(at_least, 0.8)(found), each(at_most, 1.05)(found)],
        named(percent),
        {"10": 0.95, "45": 0.95, "125": 0.4},
    ),
    *(_range(queue, control) for queue in RANGES for control in ("CUBIC", "Vegas")),
    _maximum("RED", 0.3),
    _maximum("CoDel", 0.05),
    _size("CoDel", "Section 3: with CoDel the size of the queue has no impact.", 0.1),
    _size("RED", "Section 3: with RED there is a tiny impact of the buffer size.", 0.25),
    _by_buffer("Vegas", "decreases", 3, -1),
    _by_buffer("CUBIC", "increases", 4, +1),
    Rule(
        "vegas-aqm",
        "Figure 3: with Vegas the throughput is the same with both AQMs.",
        "that with RED is within 10 % of that with CoDel, at every buffer",
        _ratios("Vegas"),
        lambda found: [within(ratio, 1, 0.1, name) for name, ratio in found.items()],
        named(times),
        {"10": 1.0, "45": 1.3, "125": 1.0, "unlimited": 1.0},
        beside=vegas_loads,
    ),
    Rule(
        "cubic-aqm",
        "Figure 4: with CUBIC the throughput is larger with RED than with CoDel.",
        f"by more than 5 % with buffers of {listed(ROOMY)}",
        _ratios("CUBIC"),
        lambda found: [above(found[buffer], 1.05, buffer) for buffer in ROOMY],
        named(times),
        {"10": 1.0, "45": 1.3, "125": 0.9, "unlimited": 1.3},
    ),
    _up_to("RED", 0.75),
    _up_to("CoDel", 0.45),
    *(_others_alike(control) for control in ("NewReno", "Compound")),
    Rule(
        "red-better-used",
        "Section 3: RED better exploits the capacity of the bottleneck than CoDel.",
        f"with CUBIC and buffers of {listed(ROOMY)} the mean utilisation is higher by more than a "
        "point",
        _used,
        each(above, 0.01),
        lambda found: "by " + ", ".join(f"{100 * each:.1f}" for each in found.values()) + " points",
        {"45": 0.1, "125": 0.0, "unlimited": 0.1},
    ),
    *(_neglected(queue) for queue in AQMS),
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
