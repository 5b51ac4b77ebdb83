"""The figures of a characterisation, section by section."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from aqmlab.characterize.sections.methodology import BOTH_WAYS
from aqmlab.characterize.sections.mixes import MIX, UP
from aqmlab.metrics.samples import Floats
from aqmlab.report.document import Figure
from aqmlab.report.document import panels as charts
from aqmlab.report.document.panels import Points

if TYPE_CHECKING:
    from aqmlab.characterize import Characterization

DELAY, GOODPUT = "queuing delay (ms)", "goodput (Mbit/s)"
ELLIPSE = (
    "A small dot is a run, the circle the mean, the line the 1σ ellipse of the most likely "
    "normal distribution (RFC 7928, section 2.7). Left and up is better."
)
MEDIANS = "Points are medians over the runs, lines go from the lower to the upper quartile."
LEVELS = {"8.2.2": "mild", "8.2.3": "medium", "8.2.4": "heavy"}
PROFILES = {
    ("5.1.1", ""): "NewReno",
    ("5.1.1", "TFRC"): "TFRC",
    ("5.1.2", "IW 3"): "NewReno, short flows IW 3",
    ("5.1.2", "IW 10"): "NewReno, short flows IW 10",
    ("5.2", ""): "CUBIC",
    ("5.3", "UDP 0.75 C + TCP"): "UDP 0.75 C and NewReno",
    ("5.4", ""): "NewReno and LEDBAT",
}
FULL, WIDE = 700, 315
"""Widths of one panel, and of two side by side."""
FAST_SHOWN = 2.0
"""Seconds of the fast changes that are drawn."""


def section_of(figure: Figure) -> str:
    """The section that a figure belongs to, in the report."""
    return figure.id.partition("-")[0]


class Album:
    """Makes the figures."""

    def __init__(self, characterization: Characterization) -> None:
        self.measures = characterization.measures
        self.names = list(characterization.plan.contenders)
        self.palette = charts.colours(self.names)
        self.rtt = characterization.plan.environment.rtt
        self.ran = {section.number for section in characterization.plan.sections}

    def runs(
        self, section: str, case: str, name: str, subject: str, measure: str, factor: float = 1.0
    ) -> Floats:
        """The values of the runs, scaled."""
        return self.measures.runs(section, case, name, subject, measure) * factor

    def points(
        self, section: str, case: str, x: tuple[str, str], y: tuple[str, str]
    ) -> dict[str, tuple[Floats, Floats]]:
        """Runs of each discipline as points: delay in ms, goodput in Mbit/s."""
        found = {}
        for name in self.names:
            across, up = (self.measures.each(section, case, name, *each) for each in (x, y))
            kept = np.isfinite(across) & np.isfinite(up)
            if kept.any():
                found[name] = (1e3 * across[kept], 1e-6 * up[kept])
        return found

    def cells(
        self, section: str, subject: str, measure: str, factor: float = 1.0,
        places: Mapping[str, str] | None = None,
    ) -> dict[tuple[str, str], Floats]:  # fmt: skip
        """Runs by discipline and case."""
        cases = places or {case: case for case in self.measures.names(section, self.names[0])}
        return {
            (name, label): self.runs(section, case, name, subject, measure, factor)
            for case, label in cases.items()
            for name in self.names
        }

    def packet_sizes(self) -> Iterator[Figure]:
        """Section 4.4."""
        panels: dict[str, dict[tuple[str, str], Floats]] = {"packets lost": {}, "goodput": {}}
        for subject, label in (("small", "500 bytes"), ("large", "1500 bytes")):
            places = {"": label, BOTH_WAYS: f"{label}, {BOTH_WAYS}"}
            panels["packets lost"] |= self.cells("4.4", subject, "loss_share", 100, places)
            panels["goodput"] |= self.cells("4.4", subject, "goodput", 1e-6, places)
        titles = {"packets lost": "share of the packets (%)", "goodput": GOODPUT}
        yield Figure(
            "4.4-sizes",
            "Packets of 500 and 1500 bytes",
            "Half of the flows send small packets; both ways, goodput is of both directions. An "
            "advantage would be a smaller share lost.",
            MEDIANS,
            charts.ranges(panels, self.palette, titles, columns=2, width=WIDE),
        )

    def ecn(self) -> Iterator[Figure]:
        """Section 4.5."""
        if "6.2" not in self.ran:
            return
        labels = (("6.2", "without ECN"), ("4.5", "with ECN"))
        panels = {}
        for label, subject, measure, factor in (
            ("packets dropped", "down", "drop_share", 100.0),
            ("queue", "down", "queue_delay", 1e3),
            ("goodput", "all", "goodput", 1e-6),
        ):
            cells = {}
            for section, word in labels:
                for name in self.names:
                    cases = self.measures.names(section, name)
                    runs = [self.runs(section, c, name, subject, measure, factor) for c in cases]
                    kept = [each for each in runs if each.size]
                    cells[name, word] = np.concatenate(kept) if kept else np.empty(0)
            panels[label] = cells
        titles = {"packets dropped": "share of the packets (%)", "queue": DELAY, "goodput": GOODPUT}
        yield Figure(
            "4.5-ecn",
            "With and without ECN",
            "Over all round-trip times of section 6.2. Drop-tail cannot mark.",
            MEDIANS,
            charts.ranges(panels, self.palette, titles),
        )

    def scheduling(self) -> Iterator[Figure]:
        """Section 4.6."""
        panels: dict[str, dict[tuple[str, str], Floats]] = {"waiting": {}}
        for subject, label in (("thin", "thin flow"), ("bulk", "bulk flows")):
            panels["waiting"] |= self.cells("4.6", subject, "waiting", 1e3, {"": label})
        yield Figure(
            "4.6-waiting",
            "A thin flow among bulk flows",
            "Mild congestion, and 50 small packets a second. With one queue all wait alike.",
            MEDIANS,
            charts.ranges(panels, self.palette, {"waiting": DELAY}, columns=1, width=WIDE),
        )

    def profiles(self) -> Iterator[Figure]:
        """Section 5."""
        panels = {
            f"{section}  {label}": self.points(
                section, case, ("down", "queue_delay"), ("all", "goodput")
            )
            for (section, case), label in PROFILES.items()
            if section in self.ran
        }
        panels = {name: points for name, points in panels.items() if points}
        if panels:
            yield Figure(
                f"{next(iter(panels)).partition(' ')[0]}-profiles",
                "Delay and goodput with each kind of sender",
                "Goodput of all flows together against the mean time in the queue.",
                ELLIPSE,
                charts.tradeoff(panels, self.palette, DELAY, GOODPUT),
            )
        if "5.1.2" in self.ran:
            yield Figure(
                "5.1.2-short",
                "Short flows beside a long one",
                "Fifty packets, with initial windows of 3 and of 10.",
                MEDIANS,
                charts.ranges(
                    {
                        "completion time": self.cells("5.1.2", "short", "completion"),
                        "goodput of the long flow": self.cells("5.1.2", "bulk", "goodput", 1e-6),
                    },
                    self.palette,
                    {"completion time": "seconds", "goodput of the long flow": GOODPUT},
                    columns=2,
                    width=WIDE,
                ),
            )
        if {"5.3", "5.4"} <= self.ran:
            yield Figure(
                "5.3-shares",
                "Who gets how much",
                "TCP beside datagrams at three quarters of the capacity; LEDBAT beside NewReno.",
                MEDIANS,
                charts.ranges(
                    {
                        "NewReno beside UDP": self.cells(
                            "5.3", "bulk", "goodput", 1e-6, {"UDP 0.75 C + TCP": "NewReno"}
                        ),
                        "LEDBAT beside NewReno": self.cells(
                            "5.4", "ledbat", "goodput", 1e-6, {"": "LEDBAT"}
                        )
                        | self.cells("5.4", "bulk", "goodput", 1e-6, {"": "NewReno"}),
                    },
                    self.palette,
                    {"NewReno beside UDP": GOODPUT, "LEDBAT beside NewReno": GOODPUT},
                    columns=2,
                    width=WIDE,
                ),
            )

    def _by_rtt(self, section: str, of: Callable[[str, str], float]) -> Points:
        found = {}
        for name in self.names:
            cases = self.measures.names(section, name)
            x = [1e3 * (self.measures.case(section, case, name).value or 0.0) for case in cases]
            found[name] = (np.array(x), np.array([of(name, case) for case in cases]))
        return found

    def fairness(self) -> Iterator[Figure]:
        """Section 6.2."""
        get = self.measures.mean

        def ratio(name: str, case: str) -> float:
            first = get("6.2", case, name, "cat1", "goodput")
            return get("6.2", case, name, "cat2", "goodput") / first

        def delay(name: str, case: str) -> float:
            return 1e3 * get("6.2", case, name, "down", "queue_delay")

        x = "round-trip time of category II (ms)"
        panels = {
            "goodput II / goodput I": charts.Panel(
                self._by_rtt("6.2", ratio), x, "ratio", dots=True, log_x=True
            ),
            "queue": charts.Panel(self._by_rtt("6.2", delay), x, DELAY, dots=True, log_x=True),
        }
        yield Figure(
            "6.2-fairness",
            "Fairness between round-trip times",
            "Two NewReno flows; category I always has 100 ms. A ratio of 1 is fair.",
            "Means over the runs.",
            charts.curves(panels, self.palette, columns=2, width=WIDE),
        )

    def bursts(self) -> Iterator[Figure]:
        """Section 7.2."""
        yield Figure(
            "7.2-bursts",
            "Pages, video frames and a constant stream",
            "Cases: I web and CBR; II with bulk TCP; III with video; IV with both.",
            MEDIANS,
            charts.ranges(
                {
                    "page load time": self.cells("7.2", "web", "page_load"),
                    "CBR: delay variation": self.cells("7.2", "cbr", "delay_variation", 1e3),
                    "CBR: packets lost": self.cells("7.2", "cbr", "loss_share", 100),
                },
                self.palette,
                {
                    "page load time": "seconds",
                    "CBR: delay variation": "99.9th percentile − minimum (ms)",
                    "CBR: packets lost": "share of the packets (%)",
                },
            ),
        )
        panels = {}
        for case, subject in (("II", "web"), ("II", "bulk"), ("IV", "video")):
            points = self.points("7.2", case, (subject, "waiting"), (subject, "goodput"))
            panels[f"case {case}, {subject}"] = points
        yield Figure(
            "7.2-tradeoff",
            "Delay and goodput of each application",
            "One-way delay in excess of the shortest possible, of the packets of each class.",
            ELLIPSE,
            charts.tradeoff(panels, self.palette, DELAY, GOODPUT),
        )

    def levels(self) -> Iterator[Figure]:
        """Sections 8.2.2 to 8.2.4."""
        ran = {number: name for number, name in LEVELS.items() if number in self.ran}
        first = next(iter(ran))
        panels = {
            name: self.points(number, "", ("down", "queue_delay"), ("all", "goodput"))
            for number, name in ran.items()
        }
        yield Figure(
            f"{first}-levels",
            "Delay and goodput by level of congestion",
            "Bulk flows whose number makes 0.1, 0.5 and 1 % loss with drop-tail by the RFC's "
            "formula.",
            ELLIPSE,
            charts.tradeoff(panels, self.palette, DELAY, GOODPUT),
        )
        delays, goodputs = {}, {}
        for number, name in ran.items():
            waited = {
                each: _scaled(self.measures.histogram(number, "", each), 1e3) for each in self.names
            }
            got = {
                each: _scaled(self.measures.goodput_samples(number, "", each), 1e-6)
                for each in self.names
            }
            delays[name] = charts.Panel(waited, DELAY, "share of packets", share=True)
            goodputs[name] = charts.Panel(got, GOODPUT, "share of samples", share=True, zero=False)
        yield Figure(
            f"{first}-delays",
            "Distribution of the time in the queue",
            "Of all packets of all runs.",
            "The share of the packets that waited no longer.",
            charts.curves(delays, self.palette),
        )
        yield Figure(
            f"{first}-goodputs",
            "Distribution of the goodput",
            f"Of all flows together, over {10 * self.rtt:g} s each (10 round-trip times).",
            "The share of the samples that was not above.",
            charts.curves(goodputs, self.palette),
        )
        yield self._losses(f"{first}-losses", ran)

    def _losses(self, ident: str, ran: Mapping[str, str]) -> Figure:
        def cells(measure: str) -> dict[tuple[str, str], Floats]:
            return {
                key: values
                for number, name in ran.items()
                for key, values in self.cells(number, "down", measure, 100, {"": name}).items()
            }

        return Figure(
            ident,
            "Losses, and who loses together",
            "Synchronisation: of all flows, those that lose packets within one round-trip time.",
            MEDIANS,
            charts.ranges(
                {
                    "packets dropped": cells("drop_share"),
                    "loss synchronisation": cells("loss_synchronisation"),
                },
                self.palette,
                {
                    "packets dropped": "share of the packets (%)",
                    "loss synchronisation": "share of the flows (%)",
                },
                columns=2,
                width=WIDE,
            ),
        )

    def _timeline(
        self, ident: str, section: str, case: str, title: str, message: str, end: float = 1e9
    ) -> Figure:
        panels = {}
        for name, quantity, factor, y_title in (
            ("queue", "sojourn_mean_s", 1e3, DELAY),
            ("throughput", "throughput_bps", 1e-6, "throughput (Mbit/s)"),
        ):
            points = {}
            for each in self.names:
                times, values = self.measures.series(section, case, each, "down", quantity)
                points[each] = (times[times <= end], values[times <= end] * factor)
            panels[name] = charts.Panel(points, "time (s)", y_title)
        spec = charts.curves(panels, self.palette, columns=1, width=FULL)
        return Figure(ident, title, message, "Medians over the runs.", spec)

    def load(self) -> Iterator[Figure]:
        """Section 8.2.5."""
        yield self._timeline(
            "8.2.5-load",
            "8.2.5",
            "",
            "A load that changes",
            "Mild, medium and heavy congestion for 20 s each, twice.",
        )

    def capacity(self) -> Iterator[Figure]:
        """Section 8.2.6."""
        yield self._timeline(
            "8.2.6-slow",
            "8.2.6",
            "slow",
            "A capacity that changes every 20 s",
            "Ten times the rate and the rate itself in turn.",
        )
        yield self._timeline(
            "8.2.6-fast",
            "8.2.6",
            "fast",
            "A capacity that changes every 100 ms",
            f"The first {FAST_SHOWN:g} s after the warm-up.",
            FAST_SHOWN,
        )

    def sensitivity(self) -> Iterator[Figure]:
        """Sections 8.3 and 4.3."""
        delays: dict[str, tuple[Floats, Floats]] = {}
        factors: dict[str, tuple[Floats, Floats]] = {}
        for name in self.names:
            cases = [
                case
                for case in self.measures.names("8.3", name)
                if self.measures.case("8.3", case, name).value is not None
            ]
            if not cases:
                continue
            get = self.measures.mean
            x = np.array([1e3 * get("8.3", c, name, "down", "queue_delay") for c in cases])
            y = np.array([1e-6 * get("8.3", c, name, "all", "goodput") for c in cases])
            scale = np.array([self.measures.case("8.3", c, name).value for c in cases], dtype=float)
            delays[name], factors[name] = (x, y), (scale, x)
        panels = {
            "what it costs": charts.Panel(delays, DELAY, GOODPUT, dots=True, zero=False),
            "what it moves": charts.Panel(
                factors, "factor of the parameter", DELAY, dots=True, log_x=True
            ),
        }
        yield Figure(
            "8.3-sensitivity",
            "A quarter to four times the main parameter",
            "Of each discipline its own (target, threshold, limit, ...); medium congestion.",
            "Means over the runs; along a line the parameter doubles from point to point.",
            charts.curves(panels, self.palette, columns=2, width=WIDE),
        )

    def mix(self) -> Iterator[Figure]:
        """Section 9.1."""
        panels = {}
        for subject in ("bulk", "web", "video", "cbr", "voip"):
            panels[subject] = self.points("9.1", "", (subject, "waiting"), (subject, "goodput"))
        yield Figure(
            "9.1-tradeoff",
            "Each class of the mix",
            "A call, six browsers, a constant stream, an adaptive video and five bulk flows.",
            ELLIPSE,
            charts.tradeoff(panels, self.palette, DELAY, GOODPUT),
        )
        one = {"": "mix"}
        yield Figure(
            "9.1-quality",
            "What users notice",
            "Load time of pages, quality of the call (E-model), bit rate of the video.",
            MEDIANS,
            charts.ranges(
                {
                    "page load time": self.cells("9.1", "web", "page_load", places=one),
                    "call": self.cells("9.1", "voip", "mos", places=one),
                    "video": self.cells("9.1", "video", "bitrate", 1e-6, places=one),
                },
                self.palette,
                {"page load time": "seconds", "call": "MOS", "video": "Mbit/s"},
            ),
        )

    def both_ways(self) -> Iterator[Figure]:
        """Section 9.2."""
        panels = {}
        cases = self.measures.names("9.2", self.names[0])
        mild = [case for case in cases if not case.startswith(MIX)]
        for case in mild:
            if case.endswith("two AQMs"):
                for link, word in (("down", "down"), ("up", "up")):
                    points = self.points("9.2", case, (link, "queue_delay"), (link, "goodput"))
                    panels[f"{case.partition(',')[0]}, {word}"] = points
        yield Figure(
            "9.2-directions",
            "Traffic both ways, the queue in both directions",
            "Goodput of the flows of each direction against the time in its queue.",
            ELLIPSE,
            charts.tradeoff(panels, self.palette, DELAY, GOODPUT) | {"columns": 2},
        )
        places = {case: case.replace(", ", " ") for case in mild}
        yield Figure(
            "9.2-acks",
            "Acknowledgements lost",
            "The share of all acknowledgements that a queue dropped.",
            MEDIANS,
            charts.ranges(
                {"acknowledgements": self.cells("9.2", "all", "ack_loss", 100, places)},
                self.palette,
                {"acknowledgements": "share lost (%)"},
                columns=1,
                width=FULL,
            ),
        )
        yield from self._mix_both_ways([case for case in cases if case.startswith(MIX)])

    def _mix_both_ways(self, cases: Sequence[str]) -> Iterator[Figure]:
        case = f"{MIX}, symmetric, two AQMs"
        panels = {
            f"{subject}, {word}": self.points(
                "9.2", case, (f"{subject}{suffix}", "waiting"), (f"{subject}{suffix}", "goodput")
            )
            for suffix, word in (("", "down"), (UP, "up"))
            for subject in ("bulk", "web", "video")
        }
        yield Figure(
            "9.2-mix-tradeoff",
            "The mix both ways, symmetric, the queue in both directions",
            "The mix of section 9.1 in each direction; there is one call.",
            ELLIPSE,
            charts.tradeoff(panels, self.palette, DELAY, GOODPUT),
        )

        def cells(subject: str, measure: str, factor: float = 1.0) -> dict[tuple[str, str], Floats]:
            places = {case: case.removeprefix(f"{MIX}, ").replace(", ", " ") for case in cases}
            return self.cells("9.2", subject, measure, factor, places)

        yield Figure(
            "9.2-mix-quality",
            "What users notice when the mix is both ways",
            "Load time of pages and bit rate of the video in each direction, and the call.",
            MEDIANS,
            charts.ranges(
                {
                    "pages down": cells("web", "page_load"),
                    "pages up": cells(f"web{UP}", "page_load"),
                    "video down": cells("video", "bitrate", 1e-6),
                    "video up": cells(f"video{UP}", "bitrate", 1e-6),
                    "call": cells("voip", "mos"),
                },
                self.palette,
                {
                    "pages down": "load time (s)",
                    "pages up": "load time (s)",
                    "video down": "Mbit/s",
                    "video up": "Mbit/s",
                    "call": "MOS",
                },
                columns=2,
                width=WIDE,
            ),
        )

    def in_series(self) -> Iterator[Figure]:
        """Section 10.2."""
        own = self.names[0]
        panels = {}
        for subject, word in (("a", "senders A, both queues"), ("b", "senders B, Router M only")):
            panels[word] = self.points("10.2", "same", (subject, "waiting"), (subject, "goodput"))
        yield Figure(
            "10.2-same",
            "The same discipline twice",
            "Senders A pass Router L and Router M, senders B only M.",
            ELLIPSE,
            charts.tradeoff(panels, self.palette, DELAY, GOODPUT) | {"columns": 2},
        )
        cases = self.measures.names("10.2", own)
        cells = {
            title: {
                (own, case): self.runs("10.2", case, own, subject, measure, factor)
                for case in cases
            }
            for title, subject, measure, factor in (
                ("delay of senders A", "a", "waiting", 1e3),
                ("goodput of all", "all", "goodput", 1e-6),
            )
        }
        yield Figure(
            "10.2-others",
            f"{own} at Router L, others at Router M",
            "The same, the same with another parameter, and each of the others behind it.",
            MEDIANS,
            charts.ranges(
                cells,
                {own: self.palette[own]},
                {"delay of senders A": DELAY, "goodput of all": GOODPUT},
                columns=1,
                width=FULL,
            ),
        )


def _scaled(curve: tuple[Floats, Floats], factor: float) -> tuple[Floats, Floats]:
    return curve[0] * factor, curve[1]
