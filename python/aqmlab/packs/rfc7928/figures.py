"""The figures of the sections."""

from __future__ import annotations

from aqmlab.campaign.figures import (
    MEANS,
    WIDE,
    Along,
    AxisMeasure,
    Cells,
    Curves,
    PanelPlace,
    Ranges,
    Timelines,
    Tradeoffs,
)
from aqmlab.campaign.pack import Draw
from aqmlab.packs.rfc7928.cases import BOTH_WAYS, UP
from aqmlab.packs.rfc7928.cases import MIX as BOTH
from aqmlab.packs.rfc7928.cases import WIRELESS as RADIOS
from aqmlab.packs.rfc7928.metrics import CAPACITY, LOAD

DELAY, RATE, SHARE = "queuing delay (ms)", "goodput (Mbit/s)", "share of the packets (%)"
AXES = {
    "sojourn_mean": (DELAY, 1e3),
    "waiting": (DELAY, 1e3),
    "phase_delay": (DELAY, 1e3),
    "goodput": (RATE, 1e-6),
    "phase_goodput": (RATE, 1e-6),
    "loss_share": (SHARE, 100.0),
    "drop_share": (SHARE, 100.0),
    "page_load_mean": ("load time (s)", 1.0),
    "bitrate": ("bit rate (Mbit/s)", 1e-6),
}


def of(metric: str, subject: str) -> AxisMeasure:
    """A metric of a link, class or phase, in the unit of its axis."""
    return AxisMeasure(metric, subject, *AXES[metric])


QUEUE, ALL = of("sojourn_mean", "down"), of("goodput", "all")
CALL = AxisMeasure("mos", "voip", "MOS")


def _of_class(question: str, case: str, name: str) -> PanelPlace:
    return PanelPlace(question, case, of("waiting", name), of("goodput", name))


TARGETS: Draw = Curves(
    "4.3.1-targets",
    "Delay and goodput at the same targets",
    "The main parameter of every discipline is set to keep 2.5 to 80 ms (thresholds in packets or "
    "bytes: what the link sends in that time); medium congestion.",
    {
        "what the delay costs": Along("4.3.1", QUEUE, ALL, zero=False),
        "what the target gives": Along("4.3.1", "target (ms)", QUEUE, 1e3),
    },
    f"{MEANS} Along a line the target doubles from point to point.",
)


def _sizes(metric: str) -> tuple[Cells, ...]:
    return tuple(
        Cells(of(metric, name), "4.4", {"": label, BOTH_WAYS: f"{label}, {BOTH_WAYS}"})
        for name, label in (("small", "500 bytes"), ("large", "1500 bytes"))
    )


SIZES: Draw = Ranges(
    "4.4-sizes",
    "Packets of 500 and 1500 bytes",
    "Half of the flows send small packets; both ways, goodput is that of both directions. An "
    "advantage is a smaller share lost.",
    {"packets lost": _sizes("loss_share"), "goodput": _sizes("goodput")},
    columns=2,
)


def _with_ecn(measure: AxisMeasure) -> tuple[Cells, ...]:
    return Cells(measure, "6.2", "without ECN"), Cells(measure, "4.5", "with ECN")


ECN: Draw = Ranges(
    "4.5-ecn",
    "With and without ECN",
    "Over all round-trip times of section 6.2. Drop-tail cannot mark.",
    {
        "packets dropped": _with_ecn(of("drop_share", "down")),
        "queue": _with_ecn(QUEUE),
        "goodput": _with_ecn(ALL),
    },
)
SCHEDULING: Draw = Ranges(
    "4.6-waiting",
    "A thin flow among bulk flows",
    "Mild congestion, and 50 small packets a second. With one queue all wait alike.",
    {
        "waiting": (
            Cells(of("waiting", "thin"), "4.6", {"": "thin flow"}),
            Cells(of("waiting", "bulk"), "4.6", {"": "bulk flows"}),
        )
    },
    columns=1,
    width=WIDE,
)
PROFILES: Draw = Tradeoffs(
    "5-profiles",
    "Delay and goodput with each kind of sender",
    "Goodput of all flows together against the mean time in the queue.",
    {
        f"{question}  {label}": PanelPlace(question, case, QUEUE, ALL)
        for question, case, label in (
            ("5.1.1", "", "bulk"),
            ("5.1.1", "TFRC", "TFRC"),
            ("5.1.2", "IW 3", "bulk, short flows IW 3"),
            ("5.1.2", "IW 10", "bulk, short flows IW 10"),
            ("5.2", "", "CUBIC"),
            ("5.3", "UDP 0.75 C + TCP", "UDP 0.75 C and bulk"),
            ("5.4", "", "bulk and LEDBAT"),
        )
    },
)
SHORT: Draw = Ranges(
    "5.1.2-short",
    "Short flows beside a long one",
    "Fifty packets, with initial windows of 3 and of 10.",
    {
        "completion time": (Cells(AxisMeasure("completion_mean", "short", "seconds"), "5.1.2"),),
        "goodput of the long flow": (Cells(of("goodput", "bulk"), "5.1.2"),),
    },
    columns=2,
)
SHARES: Draw = Ranges(
    "5.3-shares",
    "Shares of the goodput",
    "TCP beside datagrams at three quarters of the capacity; LEDBAT beside a bulk flow.",
    {
        "bulk beside UDP": (Cells(of("goodput", "bulk"), "5.3", {"UDP 0.75 C + TCP": "bulk"}),),
        "LEDBAT beside bulk": (
            Cells(of("goodput", "ledbat"), "5.4", {"": "LEDBAT"}),
            Cells(of("goodput", "bulk"), "5.4", {"": "bulk"}),
        ),
    },
    columns=2,
)
RTT = "round-trip time of category II (ms)"
FAIRNESS: Draw = Curves(
    "6.2-fairness",
    "Fairness between round-trip times",
    "Two bulk flows; category I always has 100 ms. A ratio of 1 is fair.",
    {
        "goodput II / goodput I": Along(
            "6.2", RTT, AxisMeasure("goodput_ratio", "cat2", "ratio"), 1e3
        ),
        "queue": Along("6.2", RTT, QUEUE, 1e3),
    },
)
CBR_LOST = of("loss_share", "cbr")
BUFFERS: Draw = Curves(
    "7.1-buffers",
    "Bursts and the size of the buffer",
    "Web pages, video frames, a constant stream and a bulk flow (mix IV of section 7.2).",
    {
        title: Along("7.1", "factor of the buffer", measure, also=("7.2", "IV", 1.0))
        for title, measure in (
            ("page load time", of("page_load_mean", "web")),
            ("constant stream: packets lost", CBR_LOST),
            ("queue", QUEUE),
            ("goodput", ALL),
        )
    },
    f"{MEANS} 1 is the buffer of section 7.2.",
)
VARIATION = "99.9th percentile − minimum (ms)"
BURSTS: Draw = Ranges(
    "7.2-bursts",
    "Pages, video frames and a constant stream",
    "Cases: I web and CBR; II with bulk TCP; III with video; IV with both.",
    {
        "page load time": (Cells(of("page_load_mean", "web"), "7.2"),),
        "CBR: delay variation": (
            Cells(AxisMeasure("delay_variation", "cbr", VARIATION, 1e3), "7.2"),
        ),
        "CBR: packets lost": (Cells(CBR_LOST, "7.2"),),
    },
)
BURST_TRADEOFF: Draw = Tradeoffs(
    "7.2-tradeoff",
    "Delay and goodput of each application",
    "One-way delay in excess of the shortest possible, of the packets of each class.",
    {
        f"case {case}, {name}": _of_class("7.2", case, name)
        for case, name in (("II", "web"), ("II", "bulk"), ("IV", "video"))
    },
)
NUMBERS = {"8.2.2": "mild", "8.2.3": "medium", "8.2.4": "heavy"}
LEVELS: Draw = Tradeoffs(
    "8.2-levels",
    "Delay and goodput by level of congestion",
    "Bulk flows whose number makes 0.1, 0.5 and 1 % loss with drop-tail by the RFC's formula.",
    {name: PanelPlace(number, "", QUEUE, ALL) for number, name in NUMBERS.items()},
)


def _levels(metric: str, title: str) -> tuple[Cells, ...]:
    measure = AxisMeasure(metric, "down", title, 100.0)
    return tuple(Cells(measure, number, {"": name}) for number, name in NUMBERS.items())


LOSSES: Draw = Ranges(
    "8.2-losses",
    "Losses, and loss synchronisation",
    "Synchronisation: share of the flows that lose packets within one round-trip time.",
    {
        "packets dropped": _levels("drop_share", SHARE),
        "loss synchronisation": _levels("loss_synchronisation", "share of the flows (%)"),
    },
    columns=2,
)

CHANGING: Draw = Timelines(
    "8.2.5-load",
    "A load that changes",
    "Mild, medium and heavy congestion for 20 s each, twice.",
    "8.2.5",
    "",
)


def _phase(question: str, case: str, name: str) -> PanelPlace:
    return PanelPlace(question, case, of("phase_delay", name), of("phase_goodput", name))


LOAD_PHASES: Draw = Tradeoffs(
    "8.2.5-phases",
    "Delay and goodput in each phase",
    "Mild, medium and heavy congestion in turn.",
    {name: _phase("8.2.5", "", name) for name in LOAD},
)
SLOW: Draw = Timelines(
    "8.2.6-slow",
    "A capacity that changes every 20 s",
    "Ten times the rate and the rate itself in turn.",
    "8.2.6",
    "slow",
)
FAST: Draw = Timelines(
    "8.2.6-fast",
    "A capacity that changes every 100 ms",
    "The first 2 s after the warm-up.",
    "8.2.6",
    "fast",
    2.0,
)
CAPACITY_PHASES: Draw = Tradeoffs(
    "8.2.6-phases",
    "Delay and goodput in each phase",
    "The high and the low rate, for 20 s and for 100 ms each.",
    {
        f"{case}: {name} rate": _phase("8.2.6", case, name)
        for case in ("slow", "fast")
        for name in CAPACITY
    },
    columns=2,
)
WIRELESS: Draw = Tradeoffs(
    "8.2.6-wireless",
    "Realistic capacities",
    "Five flows over synthetic LTE and Wi-Fi.",
    {case: PanelPlace("8.2.6", case, QUEUE, ALL) for case in RADIOS},
)
SENSITIVITY: Draw = Curves(
    "8.3-sensitivity",
    "A quarter to four times the main parameter",
    "Of each discipline its own (target, threshold, limit, ...); medium congestion.",
    {
        "what it costs": Along("8.3", QUEUE, ALL, log=False, zero=False),
        "what it moves": Along("8.3", "factor of the parameter", QUEUE),
    },
    f"{MEANS} Along a line the parameter doubles from point to point.",
)
STEADINESS: Draw = Ranges(
    "8.3-stability",
    "How steady the queue is",
    "Default parameters, medium congestion, one condition changed. Swing: the standard deviation "
    "of the mean delays of 10 round-trip times each, over their mean.",
    {
        "swing": (
            Cells(AxisMeasure("swing", "down", "share of the mean delay (%)", 100.0), "8.3"),
        ),
        "queue": (Cells(QUEUE, "8.3"),),
    },
    columns=1,
    width=400,
)
MIX: Draw = Tradeoffs(
    "9.1-tradeoff",
    "Each class of the mix",
    "A call, six browsers, a constant stream, an adaptive video and five bulk flows.",
    {name: _of_class("9.1", "", name) for name in ("bulk", "web", "video", "cbr", "voip")},
)
MIX_QUALITY: Draw = Ranges(
    "9.1-quality",
    "Quality for the user",
    "Load time of pages, quality of the call (E-model), bit rate of the video.",
    {
        title: (Cells(measure, "9.1", {"": "mix"}),)
        for title, measure in (
            ("page load time", of("page_load_mean", "web")), ("call", CALL),
            ("video", of("bitrate", "video")),
        )
    },
)  # fmt: skip
KINDS = {
    f"{form}, {where}": f"{form} {where}"
    for form in ("symmetric", "asymmetric")
    for where in ("one AQM", "two AQMs")
}
"""Cases of section 9.2, with their labels."""
DIRECTIONS: Draw = Tradeoffs(
    "9.2-directions",
    "Traffic both ways, the queue in both directions",
    "Goodput of the flows of each direction against the time in its queue.",
    {
        f"{form}, {link}": PanelPlace(
            "9.2", f"{form}, two AQMs", of("sojourn_mean", link), of("goodput", link)
        )
        for form in ("symmetric", "asymmetric")
        for link in ("down", "up")
    },
    columns=2,
)
ACKS: Draw = Ranges(
    "9.2-acks",
    "Acknowledgements lost",
    "The share of all acknowledgements that a queue dropped.",
    {
        "acknowledgements": (
            Cells(AxisMeasure("ack_loss", "all", "share lost (%)", 100.0), "9.2", KINDS),
        )
    },
    columns=1,
)
MIX_BOTH: Draw = Tradeoffs(
    "9.2-mix-tradeoff",
    "The mix both ways, symmetric, the queue in both directions",
    "The mix of section 9.1 in each direction; there is one call.",
    {
        f"{name}, {word}": _of_class("9.2", f"{BOTH}, symmetric, two AQMs", name + end)
        for end, word in (("", "down"), (UP, "up"))
        for name in ("bulk", "web", "video")
    },
)
MIX_BOTH_QUALITY: Draw = Ranges(
    "9.2-mix-quality",
    "Quality for the user when the mix is both ways",
    "Load time of pages and bit rate of the video in each direction, and the call.",
    {
        title: (Cells(measure, "9.2", {f"{BOTH}, {case}": KINDS[case] for case in KINDS}),)
        for title, measure in (
            ("pages down", of("page_load_mean", "web")),
            ("pages up", of("page_load_mean", f"web{UP}")),
            ("video down", of("bitrate", "video")), ("video up", of("bitrate", f"video{UP}")),
            ("call", CALL),
        )
    },
    columns=2,
)  # fmt: skip
IN_SERIES: Draw = Tradeoffs(
    "10.2-same",
    "The same discipline twice",
    "Senders A pass Router L and Router M, senders B only M.",
    {
        title: _of_class("10.2", "same", name)
        for name, title in (
            ("a", "senders A, both queues"), ("b", "senders B, Router M only")
        )
    },
    columns=2,
)  # fmt: skip
BEHIND: Draw = Ranges(
    "10.2-others",
    "Others at Router M",
    "The same, the same with another parameter, and each of the others behind it.",
    {
        "delay of senders A": (Cells(of("waiting", "a"), "10.2"),),
        "goodput of all": (Cells(ALL, "10.2"),),
    },
    columns=1,
    alone=True,
)
