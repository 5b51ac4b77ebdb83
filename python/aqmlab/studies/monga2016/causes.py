"""Why the measurements differ from the statements: experiments, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause
from aqmlab.studies.monga2016.sweeps import (
    AQMS,
    BASE,
    DROPS,
    QUEUE,
    QUEUES,
    UTILISATION,
    Metric,
    Points,
    document,
    part,
    unlimited,
)


def causes(measured: Measurements) -> list[Cause]:
    """All that the parts that were run can tell."""
    points = document(measured)
    needed = (BASE, "1 Mbit/s", "1000 Mbit/s", "1 FTP", "3 FTP", "1000 FTP", "RTT 1 ms")
    if not all(points.has(queue, place) for queue in QUEUES for place in needed):
        return []
    found = list(_short_rtts(points))
    free = unlimited(measured)
    if free:
        found += _window(points, free)
    experiments = part(measured, "experiments", axis="experiment")
    if experiments and all(experiments.has(queue, "RTT 80 ms, 1 FTP") for queue in QUEUES):
        found += _experiments(points, experiments, free)
    intervals = part(measured, "intervals")
    if intervals and all(intervals.has(f"{queue}, 1 s", "1000 FTP") for queue in AQMS):
        found += _intervals(points, intervals)
    return found


def _all(points: Points, metric: Metric, place: str) -> str:
    """`DropTail 50.3, CoDel 76.7, ...`."""
    told = (f"{queue} {metric.text([points.mean(metric, queue, place)])}" for queue in QUEUES)
    return ", ".join(told)


def _range(points: Points, metric: Metric, place: str) -> str:
    values = [points.mean(metric, queue, place) for queue in QUEUES]
    return f"{metric.text([min(values)])} to {metric.text([max(values)])}"


def _window(points: Points, free: Points) -> Iterator[Cause]:
    yield Cause(
        "The window decides figures 2 and 8",
        "The paper does not say how large a sender's window may get, the suite's scripts set none, "
        "and ns-2's default is 20 packets. Five flows can then keep 100 packets of 1000 bytes on "
        f"the way: at 1 Gbit/s the utilisation is {_range(points, UTILISATION, '1000 Mbit/s')} %, at "
        f"an RTT of 1 s {_range(points, UTILISATION, 'RTT 1000 ms')} %, whatever the queue, and "
        "nothing is dropped. So utilisation falls in figures 2 and 8 as the paper has it. Without "
        f"the limit it is {_range(free, UTILISATION, '1000 Mbit/s')} % at 1 Gbit/s "
        f"({_all(free, UTILISATION, '1000 Mbit/s')}), and figure 2 is another; at 1 s it still "
        f"falls ({_all(free, UTILISATION, 'RTT 1000 ms')}), for Reno needs longer than 100 s to "
        "open the windows.",
    )


def _short_rtts(points: Points) -> Iterator[Cause]:
    full = {queue: 100 * points.share_of_drops("overlimit", queue, "RTT 1 ms") for queue in QUEUES}
    told = ", ".join(f"{queue} {share:.0f} %" for queue, share in full.items())
    yield Cause(
        "Below 10 ms there is no AQM",
        "8 BDP are 10 packets at an RTT of 1 ms, and 8 ms of delay: CoDel hardly sees more than its "
        f"target. Of all drops the full buffer made {told}. So all queues are alike there, and drop "
        f"as much: {_all(points, DROPS, 'RTT 1 ms')} %.",
    )


def _experiments(points: Points, experiments: Points, free: Points | None) -> Iterator[Cause]:
    yield from _degraded(points, experiments, free)
    yield Cause(
        "sfqCoDel's queue at low bandwidths: the streams",
        "Streams and voice send 3.5 Mbit/s each way and respond to nothing. At 1 and 2 Mbit/s they "
        "are more than the link can carry, and each of their queues waits for its own CoDel to find "
        "the drop rate; a single queue gathers one drop rate for all. Mean queue in packets at "
        f"1 Mbit/s: {_all(points, QUEUE, '1 Mbit/s')}. With TCP alone: "
        f"{_all(experiments, QUEUE, 'only TCP, 1 Mbit/s')} at 1 Mbit/s, "
        f"{_all(experiments, QUEUE, 'only TCP, 2 Mbit/s')} at 2, and "
        f"{_all(experiments, QUEUE, 'only TCP, 5 Mbit/s')} at 5.",
    )
    yield Cause(
        "The AQMs' queue is not constant with many flows",
        "CoDel raises its drop rate with the square root of its count, and with 1000 flows, most of "
        "them slow and coming back from timeouts, that takes long: mean queue with 1000 flows "
        f"{_all(points, QUEUE, '1000 FTP')} packets over 100 s, "
        f"{_all(experiments, QUEUE, '400 s, 1000 FTP')} over 400 s. sfqCoDel cannot do better: "
        "CoDel leaves a queue of one packet alone, and 1000 flows have as many queues; "
        f"{100 * points.share_of_drops('overlimit', 'sfqCoDel', '1000 FTP'):.0f} % of its drops are "
        "those of the full buffer.",
    )
    yield Cause(
        "The other readings of the bottleneck",
        "With the suite's RTT of 80 ms (see the contradictions) the utilisation is "
        f"{_range(experiments, UTILISATION, 'RTT 80 ms, 1 Mbit/s')} % at 1 Mbit/s, "
        f"{_range(experiments, UTILISATION, 'RTT 80 ms, 10 Mbit/s')} at 10, "
        f"{_range(experiments, UTILISATION, 'RTT 80 ms, 100 Mbit/s')} at 100 and "
        f"{_range(experiments, UTILISATION, 'RTT 80 ms, 1000 Mbit/s')} at 1000; the mean queue with "
        f"1000 FTP flows {_all(experiments, QUEUE, 'RTT 80 ms, 1000 FTP')} packets, with 30 "
        f"{_all(experiments, QUEUE, 'RTT 80 ms, 30 FTP')}. At 20 Mbit/s and 4 ms the utilisation is "
        f"{_all(experiments, UTILISATION, '20 Mbit/s and 4 ms')} % and the mean queue with 1000 "
        f"flows {_all(experiments, QUEUE, '20 Mbit/s and 4 ms, 1000 FTP')} packets. Neither changes "
        "an order that the claims are about.",
    )
    yield Cause(
        "The beginning counts",
        "The suite leaves out the first fifth of 100 s; here all of it is measured. Over 400 s the "
        f"mean queue at 1 Mbit/s is {_all(experiments, QUEUE, '400 s, 1 Mbit/s')} packets (100 s: "
        f"{_all(points, QUEUE, '1 Mbit/s')}), the utilisation at an RTT of 1 s "
        f"{_range(experiments, UTILISATION, '400 s, RTT 1000 ms')} % (100 s: "
        f"{_range(points, UTILISATION, 'RTT 1000 ms')}).",
    )


def _degraded(points: Points, experiments: Points, free: Points | None) -> Iterator[Cause]:
    few = f"{_all(points, UTILISATION, '1 FTP')} % with 1 flow"
    more = f"{_all(points, UTILISATION, '3 FTP')} % with 3"
    alone = _all(experiments, UTILISATION, "nothing backwards, 1 FTP")
    yield Cause(
        "DropTail's utilisation with few FTP flows: the queue of the other direction",
        "The acknowledgements wait behind what comes backwards. Under DropTail that queue is long, "
        f"and the windows of 20 packets are spread over a longer round trip: {few}, {more}. With "
        f"nothing backwards but acknowledgements and voice all queues are alike: {alone} % with 1 "
        f"flow, and {_all(experiments, UTILISATION, 'nothing backwards, 3 FTP')} % with 3. So this is "
        "bufferbloat at work, and it needs few flows and small windows"
        + (
            f": without a limit of the window it is {_all(free, UTILISATION, '1 FTP')} % with 1 flow."
            if free
            else "."
        ),
    )
    readings = {
        "here": (points, "1000 FTP"),
        "with an RTT of 80 ms": (experiments, "RTT 80 ms, 1000 FTP"),
        "at 20 Mbit/s and 4 ms": (experiments, "20 Mbit/s and 4 ms, 1000 FTP"),
        "with a buffer of two packets a flow": (experiments, "two packets a flow, 1000 FTP"),
        "with NewReno": (experiments, "NewReno, 1000 FTP"),
        "with SACK": (experiments, "SACK, 1000 FTP"),
        "over 400 s": (experiments, "400 s, 1000 FTP"),
    }
    if free:
        readings["without a limit of the window"] = (free, "1000 FTP")
    told = "; ".join(
        f"{UTILISATION.text([source.mean(UTILISATION, 'DropTail', place)])} {name}"
        for name, (source, place) in readings.items()
    )
    goodput = ", ".join(f"{queue} {points.goodput(queue, '1000 FTP'):.2f}" for queue in QUEUES)
    yield Cause(
        "DropTail with many FTP flows is not degraded",
        f"With 1000 flows the link is never idle. DropTail's utilisation in %: {told}. Nor is it "
        "goodput that is degraded: what all flows forwards deliver once is "
        f"{goodput} Mbit/s of 10. No reading that we know gives the printed curve there.",
    )


INTERVAL_PLACES = ("1 Mbit/s", BASE, "30 FTP", "1000 FTP", "RTT 100 ms")


def _intervals(points: Points, intervals: Points) -> Iterator[Cause]:
    def told(metric: Metric, places: Sequence[str]) -> str:
        each = []
        for place in places:
            values = (
                f"{queue} {metric.text([intervals.mean(metric, f'{queue}, 10 ms', place)])} / "
                f"{metric.text([points.mean(metric, queue, place)])} / "
                f"{metric.text([intervals.mean(metric, f'{queue}, 1 s', place)])}"
                for queue in AQMS
            )
            each.append(f"{place}: {', '.join(values)}")
        return "; ".join(each)

    yield Cause(
        "The interval",
        "With an interval of 10 ms / 100 ms / 1 s the mean queue in packets is, at "
        f"{told(QUEUE, INTERVAL_PLACES)}. The utilisation in %, at "
        f"{told(UTILISATION, (BASE, 'RTT 100 ms'))}. A second is too long: with 30 flows and more "
        "the AQMs are then drop-tail queues.",
    )
