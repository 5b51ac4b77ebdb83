"""Figures 2 to 10, their numbers as tables, and why the measurements differ from the statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab_studies.monga2016.claims import claims
from aqmlab_studies.monga2016.sweeps import (
    AQMS,
    BASE,
    DROPS,
    FILL,
    FLOWS,
    QUEUE,
    QUEUES,
    SWEEPS,
    UTILISATION,
    Metric,
    Points,
    Sweep,
    unlimited,
)
from aqmlab_studies.shared import mean_table

__all__ = ["causes", "claims", "figures", "tables"]

COLOURS = {
    "DropTail": "#8c8c8c",
    "CoDel": "#2f6fbb",
    "sfqCoDel": "#8a56b5",
    "CoDel-DT": "#ef9232",
}
FREE = ", window not limited"
METRICS = (UTILISATION, QUEUE, DROPS)
"""In the order of the paper's figures of each sweep."""


def figures(measured: Measurements) -> Iterator[Figure]:
    """All figures of which something was run."""
    points, free = Points(measured), unlimited(measured)
    number = 2
    for sweep in SWEEPS:
        for metric in METRICS:
            ident = f"figure-{number}"
            if points.places(sweep):
                title = f"Figure {number}: {metric.title} over the {sweep.title.partition(' (')[0]}"
                # In packets, queues that fill a buffer of 8 BDP would hide all others.
                beside = None if metric is QUEUE and sweep is not FLOWS else free
                yield _figure(ident, title, metric, sweep, points, beside)
            if metric is QUEUE and sweep is not FLOWS and points.places(sweep):
                title = f"Figure {number}, as a share of the buffer of 8 BDP"
                yield _figure(f"{ident}-share", title, FILL, sweep, points, free)
            number += 1


def _figure(
    ident: str, title: str, metric: Metric, sweep: Sweep, points: Points, free: Points | None
) -> Figure:
    sources = {"": points} | ({FREE: free} if free else {})
    values = {
        (f"{queue}{suffix}", f"{number:g}"): source.mean(metric, queue, place)
        for place, number in sweep.places.items()
        for suffix, source in sources.items()
        for queue in QUEUES
        if source.has(queue, place)
    }
    colours = {f"{queue}{suffix}": c for suffix in sources for queue, c in COLOURS.items()}
    dashed = [f"{queue}{FREE}" for queue in QUEUES if free]
    runs = points.measured.replications
    caption = f"Means of {runs} replication{'s' if runs > 1 else ''} of 100 s."
    if free:
        caption += " Dashes: senders whose window nothing limits; lines: ns-2's 20 packets."
    return Figure(
        ident,
        title,
        _message(points, metric, sweep),
        caption + " Click on the legend to single out a line.",
        charts.lines(
            values, colours, f"{metric.title} ({metric.unit})", sweep.title, dashed=dashed
        ),
    )


def _message(points: Points, metric: Metric, sweep: Sweep) -> str:
    places = points.places(sweep)
    ends = (places[0], places[-1])
    told = []
    for queue in QUEUES:
        first, last = points.along(metric, queue, ends)
        told.append(f"{queue} {metric.text([first])} to {metric.text([last])}")
    low, high = (f"{sweep.places[place]:g}" for place in ends)
    return f"In {metric.unit}, from {low} to {high} {sweep.unit}: {'; '.join(told)}."


def tables(measured: Measurements) -> Iterator[CellTable]:
    """The numbers behind the figures; the paper prints none."""
    points = Points(measured)
    for sweep in SWEEPS:
        title, _, unit = sweep.title.partition(" (")
        places = [(p, q) for p in sweep.places for q in QUEUES if points.has(q, p)]
        for metric in METRICS:
            cells = [
                Cell.mean(
                    f"{sweep.places[place]:g} {unit.rstrip(')')}".strip(),
                    queue,
                    None,
                    points.runs(metric, queue, place),
                    bounds=metric.bounds,
                )
                for place, queue in places
            ]
            name = f"{metric.title.capitalize()} by {title}"
            yield mean_table(f"{metric.id}-{sweep.id}", name, metric.unit, cells)


def _all(points: Points, metric: Metric, place: str) -> str:
    """`DropTail 50.3, CoDel 76.7, ...`."""
    told = (f"{queue} {metric.text([points.mean(metric, queue, place)])}" for queue in QUEUES)
    return ", ".join(told)


def _range(points: Points, metric: Metric, place: str) -> str:
    """`44.0`, or `90.3 to 97.1`, over the queues."""
    values = [points.mean(metric, queue, place) for queue in QUEUES]
    ends = [metric.text([end]) for end in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _window(measured: Measurements) -> Iterator[Cause]:
    points, free = Points(measured), Points(measured.part("window"), window="unlimited")
    each = UTILISATION.text(list(free.runs(UTILISATION, "DropTail", "1000 Mbit/s")))
    yield Cause(
        "The window in figures 2 and 8",
        "The paper does not specify how large a sender's window may get, the suite's scripts set "
        "none, and ns-2's default is 20 packets. Five flows can then keep 100 packets of 1000 "
        "bytes in flight: the utilisation at 1 Gbit/s is "
        f"{_range(points, UTILISATION, '1000 Mbit/s')} %, at an RTT of 1 s "
        f"{_range(points, UTILISATION, 'RTT 1000 ms')} %, over the queues. Without the limit "
        f"it is {_all(free, UTILISATION, '1000 Mbit/s')} % at 1 Gbit/s, and "
        f"{_all(free, UTILISATION, 'RTT 1000 ms')} % at 1 s. (DropTail at 1 Gbit/s, run by run: "
        f"{each} %; README.)",
    )


def _short_rtts(measured: Measurements) -> Iterator[Cause]:
    points = Points(measured)
    full = {queue: 100 * points.share_of_drops("overlimit", queue, "RTT 1 ms") for queue in QUEUES}
    told = ", ".join(f"{queue} {share:.0f} %" for queue, share in full.items())
    yield Cause(
        "Drops of the full buffer at 1 ms",
        "8 BDP are 10 packets at an RTT of 1 ms, and 8 ms of delay; CoDel's target is 5 ms. Of all "
        f"drops the full buffer made {told}; the drop rates are "
        f"{_all(points, DROPS, 'RTT 1 ms')} %.",
    )


def _experiments(measured: Measurements) -> Iterator[Cause]:
    points, free = Points(measured), unlimited(measured)
    experiments = Points(measured.part("experiments"), axis="experiment")
    yield from _degraded(points, experiments, free)
    yield _streams(points, experiments)
    yield Cause(
        "The AQMs' queue with many flows",
        "CoDel's drop rate grows with the square root of its count, and against 1000 flows it "
        "has to grow far: the mean queue with 1000 flows is "
        f"{_all(points, QUEUE, '1000 FTP')} packets over 100 s, "
        f"{_all(experiments, QUEUE, '400 s, 1000 FTP')} over 400 s. In sfqCoDel each flow has a "
        "queue, and CoDel leaves the last packet of each alone, so the backlog grows with the "
        "flows at any buffer: with one of 2010 packets "
        f"{QUEUE.text([experiments.mean(QUEUE, 'sfqCoDel', 'two packets a flow, 1000 FTP')])}.",
    )
    yield Cause(
        "The other readings of the bottleneck",
        "With the suite's RTT of 80 ms (see the contradictions) the utilisation is "
        f"{_range(experiments, UTILISATION, 'RTT 80 ms, 1 Mbit/s')} % at 1 Mbit/s, "
        f"{_range(experiments, UTILISATION, 'RTT 80 ms, 10 Mbit/s')} at 10, "
        f"{_range(experiments, UTILISATION, 'RTT 80 ms, 100 Mbit/s')} at 100 and "
        f"{_range(experiments, UTILISATION, 'RTT 80 ms, 1000 Mbit/s')} at 1000, and with 1 FTP "
        f"flow {_all(experiments, UTILISATION, 'RTT 80 ms, 1 FTP')}; the mean queue with 1000 FTP "
        f"flows is {_all(experiments, QUEUE, 'RTT 80 ms, 1000 FTP')} packets. At 20 Mbit/s and "
        "4 ms in each direction the utilisation is "
        f"{_all(experiments, UTILISATION, '20 Mbit/s and 4 ms')} %, with 1 FTP flow "
        f"{_all(experiments, UTILISATION, '20 Mbit/s and 4 ms, 1 FTP')}; the mean queue with 1000 "
        f"flows {_all(experiments, QUEUE, '20 Mbit/s and 4 ms, 1000 FTP')} packets.",
    )
    yield Cause(
        "The beginning counts",
        "The suite leaves out the first fifth of 100 s; here all of it is measured. Over 400 s "
        f"the mean queue at 1 Mbit/s is {_all(experiments, QUEUE, '400 s, 1 Mbit/s')} packets "
        f"(100 s: {_all(points, QUEUE, '1 Mbit/s')}), the utilisation at an RTT of 1 s "
        f"{_range(experiments, UTILISATION, '400 s, RTT 1000 ms')} % (100 s: "
        f"{_range(points, UTILISATION, 'RTT 1000 ms')}).",
    )


def _streams(points: Points, experiments: Points) -> Cause:
    full = {
        queue: f"{100 * points.share_of_drops('overlimit', queue, '1 Mbit/s'):.0f} %"
        for queue in ("sfqCoDel", "CoDel")
    }
    alone = "; ".join(
        f"{_all(experiments, QUEUE, f'only TCP, {rate} Mbit/s')} at {rate} Mbit/s"
        for rate in (1, 2, 5)
    )
    sent = {
        group: points.sent_for_each_received("sfqCoDel", "1 Mbit/s", group)
        for group in ("stream", "voice")
    }
    waiting = sum(5 * (1 + each / 2) for each in sent.values())
    return Cause(
        "sfqCoDel's queue at low bandwidths: the streams",
        "Streams and voice send 3.5 Mbit/s in each direction without control, which is more than "
        "links of 1 and 2 Mbit/s carry. sfqCoDel keeps their ten queues apart, drops from one when "
        "its turn comes, and leaves its last packet alone; until the next turn "
        f"{sent['stream']:.1f} packets of a stream arrive, {sent['voice']:.1f} of a call. One "
        f"packet and half of these in each queue are {waiting:.0f} packets at 1 Mbit/s; measured: "
        f"{_all(points, QUEUE, '1 Mbit/s')}, and {full['sfqCoDel']} of sfqCoDel's drops are those "
        f"of the full buffer (CoDel {full['CoDel']}). With TCP alone the queues are "
        f"{alone}.",
    )


def _degraded(points: Points, experiments: Points, free: Points | None) -> Iterator[Cause]:
    few = f"{_all(points, UTILISATION, '1 FTP')} % with 1 flow"
    more = f"{_all(points, UTILISATION, '3 FTP')} % with 3"
    alone = _all(experiments, UTILISATION, "nothing backwards, 1 FTP")
    alone_3 = _all(experiments, UTILISATION, "nothing backwards, 3 FTP")
    yield Cause(
        "DropTail's utilisation with few FTP flows: the queue of the other direction",
        "The acknowledgements wait behind the reverse traffic, and windows of 20 packets are "
        f"spread over a longer round trip: {few}, {more}. With "
        f"nothing backwards but acknowledgements and voice it is {alone} % with 1 flow, and "
        f"{alone_3} % with 3"
        + (
            f"; with no limit of the window and 1 flow it is {_all(free, UTILISATION, '1 FTP')} %."
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
        "DropTail with many FTP flows",
        f"DropTail's utilisation with 1000 flows in %: {told}. The goodput of all forward flows is "
        f"{goodput} Mbit/s of 10.",
    )


def _intervals(measured: Measurements) -> Iterator[Cause]:
    points, intervals = Points(measured), Points(measured.part("intervals"))

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

    places = ("1 Mbit/s", BASE, "30 FTP", "1000 FTP", "RTT 100 ms")
    yield Cause(
        "The interval",
        "With an interval of 10 ms / 100 ms / 1 s the mean queue in packets is, at "
        f"{told(QUEUE, places)}. The utilisation in %, at "
        f"{told(UTILISATION, (BASE, 'RTT 100 ms'))}.",
    )


causes = (_short_rtts, _window, _experiments, _intervals)
