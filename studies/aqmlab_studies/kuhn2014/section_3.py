"""The statements of section 3, and what section 5 draws from it: figures 2 to 4, second by second
and by buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from aqmlab.campaign import Rule, above, at_least, at_most, within
from aqmlab.metrics.samples import Floats, quantile
from aqmlab.numbers import listed
from aqmlab.reproduce.measure import Measurements
from aqmlab_studies.kuhn2014.measure import (
    AQMS,
    BUFFERS,
    CUBIC,
    MAIN_BUFFER,
    ROOMY,
    AnyRule,
    mbit,
    ms,
    named,
    range_within,
    ratio,
    times,
    transfer_mean,
)
from aqmlab_studies.kuhn2014.seconds import seconds
from aqmlab_studies.shared import each, percent

RANGES = {"CoDel": (0.01, 0.1), "RED": (0.1, 0.5)}
MAXIMA = {"CoDel": 0.05, "RED": 0.3}
UP_TO = {"RED": 0.75, "CoDel": 0.45}
LIMITED = BUFFERS[:-1]
"""The buffers with a limit, in packets."""
PACKET = 8 * 1050 / 1e6
"""The transmission time of a packet of the transfer, seconds."""
OTHER_LOSS_BASED = ("NewReno", "Compound")


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


def _maximum(queue: str) -> AnyRule:
    limit = MAXIMA[queue]
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


def _ratios(control: str) -> Callable[[Measurements], dict[str, float]]:
    """The throughput with RED as a multiple of that with CoDel, by buffer."""

    def value(study: Measurements) -> dict[str, float]:
        red, codel = (_throughputs(control, queue)(study) for queue in AQMS)
        return {buffer: red[buffer] / codel[buffer] for buffer in BUFFERS}

    return value


def vegas_loads(study: Measurements) -> str:
    """What the throughput with RED is as a multiple of that with CoDel under other loads."""
    part = study.part("vegas")
    over_red = ratio(transfer_mean, {"queue": "RED"})
    told = {load: over_red(part, queue="CoDel", load=load) for load in part.axes["load"]}
    listed = ", ".join(f"{multiple:.2f} with {load}" for load, multiple in told.items())
    return f"a transfer by Vegas past other backgrounds, buffer {MAIN_BUFFER}: {listed}"


def _up_to(queue: str) -> AnyRule:
    limit = UP_TO[queue]
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
            for name in (control, "CUBIC") for buffer, ratio in _ratios(name)(study).items()
            if buffer in ROOMY
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
    _maximum("RED"),
    _maximum("CoDel"),
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
    _up_to("RED"),
    _up_to("CoDel"),
    *(_others_alike(control) for control in OTHER_LOSS_BASED),
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
