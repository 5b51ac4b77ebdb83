"""The comparison with recorded connections: tables, figures (times in queue, and the course of the
first flow), two statements a case, causes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aqmlab.campaign import Asked, Rule
from aqmlab.metrics.samples import Floats
from aqmlab.report.document import Figure, charts
from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Cause, Cell, CellTable
from aqmlab.reproduce.verdicts import AGREES, DIFFERS, Criterion
from aqmlab_studies.linux2026 import cake
from aqmlab_studies.linux2026.recorded import (
    CONTROLS,
    FLOWS,
    PAIR,
    PATHS,
    QUANTITIES,
    QUEUES,
    SHARES,
    Counted,
    delays,
    drops,
    in_most,
    is_inside,
    recorded,
    recorded_seconds,
    seconds,
    shares_of_seconds,
)
from aqmlab_studies.shared import mean_table

__all__ = ["causes", "claims", "figures", "tables"]

INSIDE = Criterion(
    text="the recorded mean is in the range of the simulated runs, or within 5 % of their mean, or "
    "within a step of the measurement"
)


def _tables(measured: Measurements) -> Iterator[CellTable]:
    """A table for each quantity: our mean beside the recorded one."""
    whole = measured.part("study")
    for quantity in QUANTITIES:
        cells, notes = [], {}
        for queue in whole.axes["queue"]:
            told = []
            for control in whole.axes["control"]:
                values = quantity.simulated(whole, control=control, queue=queue)
                theirs = quantity.recorded(control, queue)
                mean = float(theirs.mean())
                word = AGREES if is_inside(mean, values, quantity.step(queue)) else DIFFERS
                cells.append(Cell.mean(queue, control, mean, values, INSIDE, verdict=word))
                told.append(f"{control} {_range(theirs)} / {_range(values)}")
            notes[queue] = f"recorded / simulated: {'; '.join(told)}"
        name = f"{quantity.name}, runs from least to most in brackets"
        yield mean_table(quantity.key, name, quantity.unit, cells, "Linux 6.12", notes)


def _range(values: Floats) -> str:
    return f"{values.min():.4g} to {values.max():.4g}"


COLOURS = {"pfifo": "#8c8c8c", "CoDel": "#2f6fbb", "FQ-CoDel": "#8a56b5", "PIE": "#ef9232"}
RECORDED = ", recorded"
LEAST, MOST, SEEN = "least simulated", "most simulated", "recorded mean"
COURSE = {LEAST: "#9ecae1", MOST: "#3182bd", SEEN: "#d62728"}


def figures(measured: Measurements) -> Iterator[Figure]:
    """Two figures for each control and path of which something was run."""
    whole = measured.part("study")
    for path in PATHS:
        queues = [each for each in whole.axes["queue"] if each.endswith(path)]
        for control in whole.axes["control"]:
            if queues:
                yield _delay_figure(whole, control, path, queues)
                yield _course_figure(whole, control, path, queues)


def _delay_figure(whole: Measurements, control: str, path: str, queues: list[str]) -> Figure:
    points, told = {}, []
    quantities = {share: each for each in QUANTITIES for share in SHARES if each.key == f"p{share}"}
    for share, quantity in quantities.items():
        for queue in queues:
            short = queue.partition(",")[0]
            ours = float(quantity.simulated(whole, control=control, queue=queue).mean())
            theirs = float(quantity.recorded(control, queue).mean())
            points[short, str(share)] = ours
            points[short + RECORDED, str(share)] = theirs
            if share == 50:
                told.append(f"{short} {ours:.3g} (recorded {theirs:.3g})")
    colours = COLOURS | {f"{queue}{RECORDED}": colour for queue, colour in COLOURS.items()}
    return Figure(
        f"delay-{control}-{path.split()[0]}".lower(),
        f"{control}, {path}: time in queue",
        f"Medians in ms: {', '.join(told)}.",
        f"Means of {whole.replications} replications; dashes: means of the recorded runs.",
        charts.lines(
            points,
            colours,
            "Time in queue (ms)",
            "Percentile",
            dashed=[f"{queue}{RECORDED}" for queue in COLOURS],
        ),
    )


def _course_figure(whole: Measurements, control: str, path: str, queues: list[str]) -> Figure:
    flow = FLOWS[0]
    panels, length = [], 0
    for queue in queues:
        ours = seconds(whole, flow, control=control, queue=queue)
        theirs = recorded_seconds(control, queue, flow).mean(axis=0)
        length = ours.shape[1]
        at: Floats = np.arange(1, length + 1, dtype=np.float64)
        curves = {
            LEAST: (at, ours.min(axis=0)),
            MOST: (at, ours.max(axis=0)),
            SEEN: (at, theirs[:length]),
        }
        panels.append((f"{queue.partition(',')[0]} (Mbit/s)", curves, COURSE))
    return Figure(
        f"course-{control}-{path.split()[0]}".lower(),
        f"{control}, {path}: goodput of the first flow, second by second",
        "The recorded mean between the least and the most of the simulated runs.",
        f"{whole.replications} replications; the second flow begins within the first second.",
        charts.panels(panels, "Time (s)", x_domain=(0.0, float(length)), height=90),
    )


def _claims(measured: Measurements) -> list[Asked]:
    """Rules that nine in ten of all cells are inside, then of the cells of each case, and of the
    seconds of its course."""
    whole = measured.part("study")
    cases = [(control, queue) for queue in whole.axes["queue"] for control in whole.axes["control"]]
    rules = [
        in_most(
            "all",
            "Nine in ten of the recorded numbers lie where the simulated runs are.",
            "in the range of the simulated runs, or within 5 % of their mean, or within a packet's "
            "transmission or one drop",
            lambda whole: _inside(whole, cases),
        ),
        *(_case(*case) for case in cases),
        *(_course(*case) for case in cases),
    ]
    return [Asked(rule, whole) for rule in rules]


tables, claims = (_tables, cake.tables), (_claims, cake.claims)


def _inside(whole: Measurements, cases: list[tuple[str, str]]) -> Counted:
    """Quantities that are inside, of all cases."""
    found = [
        is_inside(
            float(quantity.recorded(control, queue).mean()),
            quantity.simulated(whole, control=control, queue=queue),
            quantity.step(queue),
        )
        for control, queue in cases
        for quantity in QUANTITIES
    ]
    return int(np.sum(found)), len(found)


def _case(control: str, queue: str) -> Rule[Measurements, Counted]:
    return in_most(
        _ident(control, queue),
        f"{control} over {queue}: the quantities lie where the simulated runs are.",
        "nine in ten of the quantities",
        lambda whole: _inside(whole, [(control, queue)]),
    )


def _course(control: str, queue: str) -> Rule[Measurements, Counted]:
    return in_most(
        f"{_ident(control, queue)}-course",
        f"{control} over {queue}: the seconds of the course lie where the simulated runs are.",
        "nine in ten of the seconds of both flows",
        lambda whole: shares_of_seconds(whole, control=control, queue=queue),
    )


def _ident(control: str, queue: str) -> str:
    return f"{CONTROLS[control]}-{QUEUES[queue.partition(',')[0]]}-{queue.split()[-2]}"


def _interval(measured: Measurements) -> Iterator[Cause]:
    part, label = measured.part("experiments"), "interval 100.1ms"
    quantity = next(each for each in QUANTITIES if each.key == "p95")
    values = quantity.simulated(part, experiment=label)
    recorded = quantity.recorded("Reno", "FQ-CoDel, 10 Mbit/s")
    yield Cause(
        "Reno over FQ-CoDel: microseconds decide in which round trip CoDel drops",
        "Packets leave every 1.2 ms and windows grow once a round trip, so the delay passes the "
        "target in steps, and whether it has been above it for all of the interval of 100 ms at a "
        "packet or one round trip later is a matter of microseconds; in that round trip the flow's "
        "queue grows by a packet, 2.4 ms. 95th percentile at 10 Mbit/s, recorded: "
        f"{_range(recorded)} ms; with an interval longer by 0.1 % here: {_range(values)} ms.",
    )


def _drops(measured: Measurements, label: str) -> str:
    return _mean_of(drops(measured.part("experiments"), experiment=label))


def _recorded_drops(control: str, queue: str) -> str:
    return _mean_of(QUANTITIES[-1].recorded(control, queue))


def _mean_of(values: Floats) -> str:
    return f"{values.mean():.0f} ({values.min():.0f} to {values.max():.0f})"


def _send_buffer(measured: Measurements) -> Iterator[Cause]:
    free, fewer = (_drops(measured, each) for each in ("no send buffer", "1790 segments"))
    yield Cause(
        "Reno over PIE at 100 Mbit/s: the send buffer ends the first slow start",
        "A window of 2166 segments would be in flight before the first drop is heard of; the "
        "senders' 4 MB of buffer hold fewer, as each segment takes its head and description as "
        "well as its payload. Recorded: "
        f"{_recorded_drops('Reno', 'PIE, 100 Mbit/s')} drops in all; without a limit here: "
        f"{free}. What a head takes depends on the devices for which a kernel is built. With "
        f"2344 bytes a segment, as with wireless devices and tunnels, the buffer has 1790: "
        f"{fewer} drops. The study has 2280 bytes, without these, and 1840 segments.",
    )


def _quantum(measured: Measurements) -> Iterator[Cause]:
    other = _drops(measured, "quantum 1514b")
    yield Cause(
        "FQ-CoDel: the quantum is one packet",
        "The kernel counts the Ethernet header, so its quantum of 1514 bytes is one packet. "
        "With packets of 1500 bytes a flow keeps 14 bytes of each turn and now and then sends "
        "two packets; BBR, whose windows follow the rate of delivery, overshoots more then. "
        "BBR over FQ-CoDel at 100 Mbit/s, recorded: "
        f"{_recorded_drops('BBR', 'FQ-CoDel, 100 Mbit/s')} "
        f"drops in all; with 1514 bytes of quantum and packets of 1500 here: {other}.",
    )


def _starts(measured: Measurements) -> Iterator[Cause]:
    early, late = _drops(measured, "start 0.19 s"), _drops(measured, "start 0.46 s")
    yield Cause(
        "CUBIC over FQ-CoDel at 10 Mbit/s: when the second flow begins",
        "All but some two drops a second belong to the slow start of the second flow, and how "
        "many they are depends on where in the first one's it falls. The recordings' starts "
        "follow from the goodput of the first second (within 10 ms, the same over all four "
        "queues): 0.17 to 0.20 s twice, 0.46 s, 0.52 s and after 0.9 s. Recorded: "
        f"{_recorded_drops('CUBIC', 'FQ-CoDel, 10 Mbit/s')} drops in all, 43 and 93 of the "
        f"first two; here with starts from 0.18 to 0.20 s: {early}, from 0.45 to 0.47 s: "
        f"{late}.",
    )


RECORDED_STARTS = ("0.17 to 0.20", "0.45 to 0.47", "0.51 to 0.53", "0.90 to 1.00")
"""When the second flow of the recorded runs begins, s."""


def _reno_starts(measured: Measurements) -> Iterator[Cause]:
    part = measured.part("experiments")
    labels = [f"Reno over pfifo, start {each} s" for each in RECORDED_STARTS]
    told = []
    for quantity in (each for each in QUANTITIES if each.key in ("p5", "p25")):
        values = np.concatenate([quantity.simulated(part, experiment=each) for each in labels])
        recorded = quantity.recorded("Reno", "pfifo, 10 Mbit/s")
        told.append(f"{quantity.name.lower()} {_range(recorded)} ms, here {_range(values)} ms")
    yield Cause(
        "Reno over the pfifo at 10 Mbit/s: when the second flow begins, and where data are counted",
        "A buffer of 100 packets overflows every few seconds, and a few milliseconds of the second "
        "flow's start decide which of the two loses a packet. With the recordings' starts "
        f"({', '.join(RECORDED_STARTS)} s), recorded: {'; '.join(told)}. Times in this queue are "
        "multiples of a packet's 1.2 ms. The seconds outside are those of the first recovery: the "
        "recordings count data that leave the queue, the simulator data that are acknowledged.",
    )


IN_STEP = "cake-shaped_cubic_50mbit_40ms"
"""Two of its recorded runs have both flows in step; of random starts few do."""
IN_STEP_RUN = 1


def in_step(measured: Measurements) -> tuple[Floats, Floats]:
    """The runs with the start of a recorded one: the median time in queue of each, ms, and how far
    the goodput of a second after the first is from the recorded one at most, Mbit/s."""
    part, run = measured.part("experiments"), recorded(IN_STEP)[IN_STEP_RUN]
    label = {"experiment": f"{IN_STEP}, start 0.2342 s"}
    found = delays(part, "p50", cake.PACKET / cake.rate_of(IN_STEP), **label)
    off = [
        np.abs(seconds(part, flow, **label) - np.array(run["seconds"][place]))[:, 1:].max(axis=1)
        for place, flow in enumerate(PAIR)
    ]
    return found, np.maximum(*off)


def _in_step(measured: Measurements) -> Iterator[Cause]:
    ours, off = in_step(measured)
    theirs = recorded(IN_STEP)[IN_STEP_RUN]["delays"][SHARES.index(50)]
    yield Cause(
        "CUBIC through CAKE at 50 Mbit/s: both flows in step",
        "Two of the three recorded runs have both flows in step, with the longer times in queue. "
        f"That follows from when the second flow begins. For the second run it is 0.2342 s: "
        f"recorded is a median of {theirs:.2f} ms, here with starts from 0.2340 to 0.2345 s "
        f"{_range(ours)} ms, and in most of the runs no second's goodput after the first is "
        f"farther than {np.median(off):.2f} Mbit/s from the recorded one.",
    )


causes = (_send_buffer, _quantum, _starts, _reno_starts, _interval, _in_step)
"""The experiments: what moves a quantity."""
