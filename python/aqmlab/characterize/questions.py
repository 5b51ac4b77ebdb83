"""Sections of RFC 7928: the cases, the rule and the figures of each, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aqmlab.characterize import more_figures as more
from aqmlab.characterize.figures import Album
from aqmlab.characterize.rules import alone, mixes, traffic
from aqmlab.characterize.rules.common import Rule, queue_and_goodput
from aqmlab.characterize.sections import (
    Maker,
    bursts,
    methodology,
    profiles,
    rtt,
    series,
    stability,
)
from aqmlab.characterize.sections import mixes as mixed
from aqmlab.report.document import Figure

Figures = Callable[[Album], Iterator[Figure]]


@dataclass(frozen=True)
class Section:
    """A section of RFC 7928."""

    number: str
    title: str
    question: str
    """What the section asks, in one sentence."""
    cases: Maker
    rule: Rule
    """The rule of the verdict."""
    requirement: str = ""
    """Of RFC 7928, section 13: must, should, recommended or may be considered."""
    figures: tuple[Figures, ...] = ()
    """A function that several sections name draws for all of them."""
    is_alone: bool = False
    """Whether the rule looks at the discipline alone."""
    has_distributions: bool = True
    """Whether it has the distributions of section 2.7; otherwise its own figures show them."""


MUST, SHOULD, MAY = "must be considered", "should be discussed", "may be considered"
SECTIONS = (
    Section(
        "4.3.1", "Performance comparison",
        "What does the same delay cost, when every discipline is told to keep it?",
        methodology.same_targets, alone.same_targets, "recommended", (more.same_targets,),
    ),
    Section(
        "4.4", "Packet sizes", "Do flows with small packets get an advantage?",
        methodology.packet_sizes, alone.packet_sizes, figures=(Album.packet_sizes,), is_alone=True,
    ),
    Section(
        "4.5", "ECN", "What changes when the queue may mark instead of drop?",
        methodology.ecn, alone.ecn, "must be discussed if supported", (Album.ecn,), is_alone=True,
    ),
    Section(
        "4.6", "Scheduling", "Where does it drop, and does a thin flow wait behind the others?",
        methodology.scheduling, alone.scheduling, SHOULD, (Album.scheduling,), is_alone=True,
    ),
    Section(
        "5.1.1", "TCP-friendly sender", "One NewReno flow; one TFRC flow.",
        profiles.friendly, queue_and_goodput, MUST, (Album.profiles,),
    ),
    Section(
        "5.1.2", "Initial windows",
        "How do short flows fare beside a long one, with initial windows of 3 and 10?",
        profiles.windows, traffic.short_flows, MUST, (Album.profiles,),
    ),
    Section(
        "5.2", "Aggressive sender", "One CUBIC flow.",
        profiles.aggressive, queue_and_goodput, MUST, (Album.profiles,),
    ),
    Section(
        "5.3", "Unresponsive sender",
        "How long is the queue when datagrams do not give way, and what is left for TCP?",
        profiles.unresponsive, traffic.unresponsive, MUST, (Album.profiles,),
    ),
    Section(
        "5.4", "Less-than-best-effort sender", "Does LEDBAT still give way to NewReno?",
        profiles.background, traffic.background, MAY, (Album.profiles,),
    ),
    Section(
        "6.2", "Round-trip time fairness",
        "How do two flows share the link if one has another round-trip time than 100 ms?",
        rtt.fairness, traffic.rtt_fairness, MUST, (Album.fairness,),
    ),
    Section(
        "7.1", "Buffer size", "How much of the burst absorption is the size of the buffer?",
        bursts.buffers, traffic.bursts, MAY, (more.buffers,),
    ),
    Section(
        "7.2", "Burst absorption", "What becomes of pages and video frames that come in bursts?",
        bursts.bursts, traffic.bursts, MUST, (Album.bursts,),
    ),
    *(
        Section(
            number, f"{flows.capitalize()} congestion",
            f"Bulk flows that make {flows} congestion with drop-tail.",
            stability.level(number, flows), traffic.levels, figures=(Album.levels,),
            has_distributions=False,
        )
        for number, flows in (("8.2.2", "mild"), ("8.2.3", "medium"), ("8.2.4", "heavy"))
    ),
    Section(
        "8.2.5", "Varying congestion", "How does the queue follow a load that changes every 20 s?",
        stability.changing_load, traffic.phases, MUST, (Album.load,),
    ),
    Section(
        "8.2.6", "Varying capacity",
        "How does the queue follow a capacity that changes by a factor of ten?",
        stability.changing_capacity, traffic.phases, MUST, (Album.capacity, more.wireless),
    ),
    Section(
        "8.3", "Parameter sensitivity and stability",
        "What does its main parameter move, and how steady is its queue under other conditions?",
        stability.sensitivity, alone.sensitivity, SHOULD, (Album.sensitivity, more.steadiness),
        is_alone=True,
    ),
    Section(
        "9.1", "Traffic mix", "How do calls, pages, video and bulk flows fare together?",
        mixed.mix, mixes.mix, "recommended", (Album.mix,),
    ),
    Section(
        "9.2", "Bidirectional traffic",
        "Mild congestion, and the mix, both ways: what becomes of both directions, and how many "
        "acknowledgements are lost?",
        mixed.both_ways, mixes.bidirectional, MAY, (Album.both_ways,),
    ),
    Section(
        "10.2", "Several AQMs", "Two queues in a row: does one disturb the other?",
        series.multi, traffic.in_series, MAY, (Album.in_series,),
    ),
)  # fmt: skip
"""In the order of the RFC."""


def figures(album: Album, chosen: list[Section]) -> Iterator[Figure]:
    """The figures of sections, then their distributions of delay and goodput."""
    for make in dict.fromkeys(each for section in chosen for each in section.figures):
        yield from make(album)
    for section in chosen:
        if section.has_distributions:
            yield from more.distributions(album, section.number)
