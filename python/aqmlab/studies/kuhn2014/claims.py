"""The statements of the paper, checked one by one: section 4 and the abstract, then section 3.

A statement is one row with one rule (`aqmlab.studies.rules`). A printed number is a rule of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Claim
from aqmlab.samples import Floats, quantile
from aqmlab.studies.kuhn2014.measure import (
    AQMS,
    BUFFERS,
    CONTROLS,
    MAIN_BUFFER,
    QUEUES,
    increase,
    packet_time,
    reduction,
    transfer_time,
)
from aqmlab.studies.kuhn2014.seconds import seconds
from aqmlab.studies.rules import Rule, checked

CUBIC = {"control": "CUBIC"}
POINTS = 0.05
"""A printed percentage is met within five points."""
SHARE = 0.05
"""A printed number is met within 5 %."""
RANGES = {"CoDel": (0.01, 0.1), "RED": (0.1, 0.5)}
MAXIMA = {"CoDel": 0.05, "RED": 0.3}
UP_TO = {"RED": 0.75, "CoDel": 0.45}
ROOMY = BUFFERS[1:]
"""The buffers in which an AQM has room to act."""

AnyRule = Rule[Measurements, Any]


def claims(measured: Measurements) -> list[Claim]:
    """All statements for which the points were run."""
    return checked((*HEADLINE, *SECTION_3), measured.part("study"))


def _needing(
    controls: Iterable[str], buffers: Iterable[str], value: Callable[[Measurements], Any]
) -> Callable[[Measurements], Any]:
    """`value` if every queue was run at these points, else None."""
    points = [(q, c, b) for q in QUEUES for c in controls for b in buffers]

    def measure(study: Measurements) -> Any:
        has = all(study.has(queue=q, control=c, buffer=b) for q, c, b in points)
        return value(study) if has else None

    return measure


def _main(value: Callable[[Measurements], Any]) -> Callable[[Measurements], Any]:
    return _needing(CONTROLS, (MAIN_BUFFER,), value)


def _all_buffers(
    control: str, value: Callable[[Measurements], Any]
) -> Callable[[Measurements], Any]:
    return _needing((control,), BUFFERS, value)


def _low_ends(study: Measurements) -> dict[str, float] | None:
    """Of the intervals of the reductions; None with too few replications for intervals."""
    found = {
        f"{queue}, {control}": reduction(study, queue=queue, control=control, buffer=MAIN_BUFFER)[1]
        for queue in AQMS
        for control in CONTROLS
    }
    ends = {name: within.low for name, within in found.items() if within}
    return ends if len(ends) == len(found) else None


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _ms(delay: float) -> str:
    return f"{1e3 * delay:.0f} ms"


def _named(number: Callable[[float], str]) -> Callable[[dict[str, float]], str]:
    return lambda found: ", ".join(f"{number(value)} ({name})" for name, value in found.items())


def _printed(
    ident: str, text: str, printed: float, value: Callable[[Measurements], float], wrong: float
) -> AnyRule:
    """A printed share: met within five points."""
    rule = f"within 5 percentage points of the printed {100 * printed:.0f} %"
    met = lambda found: abs(found - printed) <= POINTS  # noqa: E731
    return Rule(ident, text, rule, _main(value), met, _percent, wrong)


def _delay(
    ident: str, text: str, printed: tuple[float, float], queue: str, wrong: float
) -> AnyRule:
    """A printed mean delay: met within 5 %."""
    low, high = printed
    about = _ms(low) if low == high else f"{_ms(low)} to {_ms(high)}"
    return Rule(
        ident,
        text,
        f"the mean packet transmission time with CUBIC is within 5 % of {about}",
        _main(lambda study: packet_time(study, queue=queue, buffer=MAIN_BUFFER, **CUBIC)[0]),
        lambda found: low * (1 - SHARE) <= found <= high * (1 + SHARE),
        _ms,
        wrong,
    )


def _reduction(queue: str) -> Callable[[Measurements], float]:
    return lambda study: reduction(study, queue=queue, buffer=MAIN_BUFFER, **CUBIC)[0]


def _increase(queue: str) -> Callable[[Measurements], float]:
    return lambda study: increase(study, queue=queue, buffer=MAIN_BUFFER, **CUBIC)[0]


def _by_control(
    value: Callable[[Measurements, str], float],
) -> Callable[[Measurements], dict[str, float]]:
    return lambda study: {control: value(study, control) for control in CONTROLS}


def _droptail_times(study: Measurements) -> dict[str, float]:
    return {
        control: packet_time(study, queue="DropTail", control=control, buffer=MAIN_BUFFER)[0]
        for control in CONTROLS
    }


def _vegas_over_cubic(study: Measurements) -> dict[str, float]:
    """The time for the 10 MB with Vegas as a multiple of that with CUBIC, by queue."""
    at = {"buffer": MAIN_BUFFER}
    return {
        q: transfer_time(study, queue=q, control="Vegas", **at)[0]
        / transfer_time(study, queue=q, control="CUBIC", **at)[0]
        for q in QUEUES
    }


def _fairer(queue: str) -> AnyRule:
    return Rule(
        f"fairer-{queue.lower()}",
        f"Section 6: {queue} makes the network fairer to delay-based congestion control.",
        "the time for the 10 MB with Vegas is a multiple of that with CUBIC (each among "
        "applications of its own kind: the study never has the two compete) that is nearer to 1 "
        "than with DropTail",
        _main(_vegas_over_cubic),
        lambda found: abs(found[queue] - 1) < abs(found["DropTail"] - 1),
        _named(lambda ratio: f"{ratio:.2f}"),
        dict.fromkeys(AQMS, 2.0) | {"DropTail": 1.5},
    )


HEADLINE: tuple[AnyRule, ...] = (
    _printed("reduction-codel", "Abstract: CoDel reduces the latency by 87 % (with CUBIC).",
             0.87, _reduction("CoDel"), 0.75),
    _printed("reduction-red", "Abstract: RED reduces the latency by 75 % (with CUBIC).",
             0.75, _reduction("RED"), 0.87),
    _printed("codel-time", "Abstract: CoDel's transmission time of 10 MB is 42 % longer (with "
             "CUBIC, than with DropTail).", 0.42, _increase("CoDel"), 0.31),
    _printed("red-time", "Section 4: RED's transmission time of 10 MB is 5 % longer (with CUBIC).",
             0.05, _increase("RED"), 0.15),
    Rule(
        "red-time-all",
        "Section 4: RED's drops do not impact the transmission time of 10 MB much, whatever the "
        "congestion control.",
        "its increase against DropTail is within 10 % with each of the four",
        _main(_by_control(lambda study, control: increase(
            study, queue="RED", control=control, buffer=MAIN_BUFFER)[0])),
        lambda found: max(map(abs, found.values())) <= 0.1,
        _named(_percent),
        {"CUBIC": 0.02, "NewReno": 0.03, "Vegas": 0.30, "Compound": 0.0},
    ),
    Rule(
        "both-reduce",
        "Section 4: RED and CoDel enable a better latency than DropTail.",
        "the 95 % interval of the reduction is above 0 for both, with each congestion control",
        _main(_low_ends),
        lambda found: min(found.values()) > 0,
        lambda found: f"low ends of the intervals {_named(_percent)(found)}",
        {f"{q}, {c}": 0.5 if (q, c) != ("RED", "Vegas") else -0.1 for q in AQMS for c in CONTROLS},
    ),
    Rule(
        "codel-reduces-more",
        "Section 3: RED reduces the packet delay, yet not as much as CoDel.",
        "the mean packet transmission time is longer with RED than with CoDel, with each "
        "congestion control",
        _main(_by_control(lambda study, control: packet_time(
            study, queue="RED", control=control, buffer=MAIN_BUFFER)[0] - packet_time(
            study, queue="CoDel", control=control, buffer=MAIN_BUFFER)[0])),
        lambda found: min(found.values()) > 0,
        lambda found: f"by {_named(_ms)(found)}",
        {"CUBIC": 0.1, "NewReno": 0.1, "Vegas": -0.01, "Compound": 0.1},
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
        "its mean packet transmission time is the least of the four",
        _main(_droptail_times),
        lambda found: min(found, key=found.__getitem__) == "Vegas",
        _named(_ms),
        {"CUBIC": 1.0, "NewReno": 1.0, "Vegas": 0.9, "Compound": 0.8},
    ),
    _printed("vegas-44", "Section 4: with DropTail, Vegas reduces the latency by 44 % against "
             "CUBIC.", 0.44,
             lambda study: reduction(
                 study, CUBIC, queue="DropTail", control="Vegas", buffer=MAIN_BUFFER)[0],
             0.85),
    _fairer("RED"),
    _fairer("CoDel"),
)  # fmt: skip


def _delays(study: Measurements, queue: str, control: str, buffers: Iterable[str]) -> Floats:
    """The mean queuing delay in each second, of all these buffers."""
    each = [seconds(study, queue=queue, control=control, buffer=b).delay for b in buffers]
    delays = np.concatenate(each)
    return delays[np.isfinite(delays)]


def _dropped(queue: str) -> AnyRule:
    def shares(study: Measurements) -> list[tuple[float, float]]:
        def share(name: str, buffer: str) -> float:
            labels = {"queue": name, "buffer": buffer, **CUBIC}
            arrived = study.count("arrived", **labels).sum()
            return float(study.count("dropped", **labels).sum() / arrived)

        return [(share(queue, buffer), share("DropTail", buffer)) for buffer in ROOMY]

    return Rule(
        f"drops-{queue.lower()}",
        f"Figure 2: the introduction of {queue} results in drop events.",
        f"with CUBIC it drops a larger share than DropTail with buffers of {_list(ROOMY)}",
        _all_buffers("CUBIC", shares),
        lambda found: all(ours > theirs for ours, theirs in found),
        lambda found: ", ".join(f"{_percent(a)} and {_percent(b)}" for a, b in found),
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
        _all_buffers(control, inside),
        lambda found: found >= 0.8,
        _percent,
        0.6,
    )


def _maximum(queue: str) -> AnyRule:
    limit = MAXIMA[queue]
    return Rule(
        f"delay-maximum-{queue}".lower(),
        f"Figure 2: {queue} reduces the maximum queuing delay to {_ms(limit)} (with CUBIC).",
        f"the largest mean of a second, all buffers, is at most 10 % above {_ms(limit)}",
        _all_buffers("CUBIC", lambda study: float(_delays(study, queue, "CUBIC", BUFFERS).max())),
        lambda found: found <= 1.1 * limit,
        _ms,
        2.2 * limit,
    )


def _size(queue: str, text: str, most: float) -> AnyRule:
    return Rule(
        f"buffer-size-{queue}".lower(),
        text,
        f"medians of the second's mean queuing delay with CUBIC and buffers of {_list(ROOMY)} are "
        f"within {100 * most:.0f} %",
        _all_buffers("CUBIC", lambda study: {
            buffer: quantile(_delays(study, queue, "CUBIC", (buffer,)), 0.5) for buffer in ROOMY
        }),
        lambda found: max(found.values()) <= (1 + most) * min(found.values()),
        _named(_ms),
        {"45": 0.02, "125": 0.02, "unlimited": 0.03},
    )  # fmt: skip


def _throughputs(
    control: str, queue: str = "DropTail"
) -> Callable[[Measurements], dict[str, float]]:
    """The mean throughput of the 10 MB in Mbit/s, by buffer."""
    return lambda study: {
        buffer: 80 / transfer_time(study, queue=queue, control=control, buffer=buffer)[0]
        for buffer in BUFFERS
    }


def _by_buffer(control: str, word: str, figure: int, sign: int) -> AnyRule:
    grows = dict(zip(BUFFERS, (0.2, 0.3, 0.4, 0.5), strict=True))
    falls = dict(zip(BUFFERS, (0.5, 0.4, 0.3, 0.2), strict=True))
    return Rule(
        f"{control.lower()}-buffer",
        f"Figure {figure}: with DropTail and {control} the throughput {word} with larger queues.",
        "the mean throughput of the 10 MB does so with each larger buffer",
        _all_buffers(control, _throughputs(control)),
        lambda found: all(sign * (b - a) > 0 for a, b in pairwise(found.values())),
        lambda found: f"{_named(lambda rate: f'{rate:.3f}')(found)} Mbit/s",
        falls if sign > 0 else grows,
    )


def _ratios(control: str) -> Callable[[Measurements], dict[str, float]]:
    """The throughput with RED as a multiple of that with CoDel, by buffer."""

    def value(study: Measurements) -> dict[str, float]:
        red, codel = (_throughputs(control, queue)(study) for queue in AQMS)
        return {buffer: red[buffer] / codel[buffer] for buffer in BUFFERS}

    return value


def vegas_loads(study: Measurements) -> str:
    """What the throughput with RED is as a multiple of that with CoDel under other loads."""
    part = study.part("vegas")
    if part is None:
        return ""
    told = {}
    for load in part.axes["load"]:
        red, codel = (transfer_time(part, queue=queue, load=load)[0] for queue in AQMS)
        told[load] = codel / red
    listed = ", ".join(f"{ratio:.2f} with {load}" for load, ratio in told.items())
    return f"a transfer by Vegas past other backgrounds, buffer {MAIN_BUFFER}: {listed}"


def _up_to(queue: str) -> AnyRule:
    limit = UP_TO[queue]
    at = {"queue": queue, "buffer": MAIN_BUFFER, **CUBIC}
    return Rule(
        f"up-to-{queue}".lower(),
        f"Figure 4: with CUBIC and {queue} the throughput goes up to {limit:g} Mbit/s.",
        f"95 % of the seconds are below a rate that is within 10 % of {limit:g} Mbit/s",
        _all_buffers("CUBIC", lambda study: 1e-6 * quantile(seconds(study, **at).throughput, 0.95)),
        lambda found: abs(found / limit - 1) <= 0.1,
        lambda found: f"{found:.2f} Mbit/s",
        1.25 * limit,
    )


def _list(names: Iterable[str]) -> str:
    names = list(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


SECTION_3: tuple[AnyRule, ...] = (
    _dropped("RED"),
    _dropped("CoDel"),
    *(_range(queue, control) for queue in RANGES for control in ("CUBIC", "Vegas")),
    _maximum("RED"),
    _maximum("CoDel"),
    _size("CoDel", "Section 3: with CoDel the size of the queue has no impact.", 0.1),
    _size("RED", "Section 3: with RED there is a tiny impact of the buffer size.", 0.25),
    _by_buffer("Vegas", "decreases", 3, -1),
    _by_buffer("CUBIC", "increases", 4, +1),
    Rule(
        "vegas-aqm",
        "Figure 3: with Vegas the throughput is the same whichever of the two AQMs.",
        "that with RED is within 10 % of that with CoDel, at every buffer",
        _all_buffers("Vegas", _ratios("Vegas")),
        lambda found: all(abs(ratio - 1) <= 0.1 for ratio in found.values()),
        _named(lambda ratio: f"{ratio:.2f}"),
        {"10": 1.0, "45": 1.3, "125": 1.0, "unlimited": 1.0},
        beside=vegas_loads,
    ),
    Rule(
        "cubic-aqm",
        "Figure 4: with CUBIC the throughput is larger with RED than with CoDel.",
        f"so it is with buffers of {_list(ROOMY)}",
        _all_buffers("CUBIC", _ratios("CUBIC")),
        lambda found: min(found[buffer] for buffer in ROOMY) > 1,
        _named(lambda ratio: f"{ratio:.2f}"),
        {"10": 1.0, "45": 1.3, "125": 0.9, "unlimited": 1.3},
    ),
    _up_to("RED"),
    _up_to("CoDel"),
)
