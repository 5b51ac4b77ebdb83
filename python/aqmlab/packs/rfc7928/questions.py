"""Sections of RFC 7928: the cases, the judge and the figures of each, in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aqmlab.campaign import Case, Question
from aqmlab.campaign.figures import Distributions
from aqmlab.campaign.outcomes import Beside, Outcome
from aqmlab.campaign.pack import Draw
from aqmlab.errors import unknown
from aqmlab.packs.rfc7928 import cases, mixes, rules
from aqmlab.packs.rfc7928 import figures as drawn
from aqmlab.packs.rfc7928.dumbbell import Bench, Made
from aqmlab.packs.rfc7928.environment import Contender, Environment
from aqmlab.packs.rfc7928.metrics import read
from aqmlab.scenario.settings import each_of

Judge = Callable[[Beside], Outcome]
MUST, SHOULD, MAY = "must be considered", "should be discussed", "may be considered"


@dataclass(frozen=True)
class RfcSection:
    """A section of RFC 7928."""

    number: str
    title: str
    question: str
    """Question of the section in one sentence."""
    cases: cases.Maker
    judge: Judge
    level: str = ""
    """Level in RFC 7928, section 13."""
    figures: tuple[Draw, ...] = ()
    """A figure of several sections is drawn at the first of them."""
    alone: bool = False
    """Whether the judge looks at the discipline only."""

    def asked(self, environment: Environment, everyone: Sequence[Contender]) -> Question:
        """The section as a question; a discipline lacks the cases that do not concern it."""
        made = {
            (each.name, case.name): case
            for each in everyone
            for case in self.cases(Bench(environment, each, everyone))
        }

        def filled(name: str) -> Case:
            def own(contender: Contender) -> Made:
                return made.get((contender.name, name), Made(name, None))

            return Case(name, lambda each: own(each).scenario, lambda each: own(each).place)

        distributions = Distributions(
            f"{self.number}-distribution",
            "Distributions of delay and goodput",
            "Time in the queue of every packet, and goodput of all flows together (RFC 7928, "
            "section 2.7).",
            self.number,
        )
        names = dict.fromkeys(name for _, name in made)
        return Question(
            self.number, f"{self.number} {self.title}", self.question, tuple(map(filled, names)),
            read=read, figures=(*self.figures, distributions), judge=self.judge,
            alone=self.alone, source=f"RFC 7928, section {self.number}", level=self.level,
        )  # fmt: skip


SECTIONS = (
    RfcSection(
        "4.3.1", "Performance comparison",
        "What does the same delay cost, when every discipline has the same target?",
        cases.same_targets, rules.same_targets, "recommended", (drawn.TARGETS,),
    ),
    RfcSection(
        "4.4", "Packet sizes", "Do flows with small packets get an advantage?",
        cases.packet_sizes, rules.packet_sizes, figures=(drawn.SIZES,), alone=True,
    ),
    RfcSection(
        "4.5", "ECN", "What changes when the queue may mark instead of drop?",
        cases.ecn, rules.ecn, "must be discussed if supported", (drawn.ECN,), alone=True,
    ),
    RfcSection(
        "4.6", "Scheduling", "Where does it drop, and does a thin flow wait behind the others?",
        cases.scheduling, rules.scheduling, SHOULD, (drawn.SCHEDULING,), alone=True,
    ),
    RfcSection(
        "5.1.1", "TCP-friendly sender", "One bulk flow; one TFRC flow.",
        cases.friendly, rules.of_all_flows, MUST, (drawn.PROFILES,),
    ),
    RfcSection(
        "5.1.2", "Initial windows",
        "How do short flows fare beside a long one, with initial windows of 3 and 10?",
        cases.windows, rules.short_flows, MUST, (drawn.PROFILES, drawn.SHORT),
    ),
    RfcSection(
        "5.2", "Aggressive sender", "One CUBIC flow.",
        cases.aggressive, rules.of_all_flows, MUST, (drawn.PROFILES,),
    ),
    RfcSection(
        "5.3", "Unresponsive sender",
        "How long is the queue when datagrams do not respond, and what is left for TCP?",
        cases.unresponsive, rules.unresponsive, MUST, (drawn.PROFILES, drawn.SHARES),
    ),
    RfcSection(
        "5.4", "Less-than-best-effort sender", "Does LEDBAT still yield to a bulk flow?",
        cases.background, rules.background, MAY, (drawn.PROFILES, drawn.SHARES),
    ),
    RfcSection(
        "6.2", "Round-trip time fairness",
        "How do two flows share the link if one has another round-trip time than 100 ms?",
        cases.fairness, rules.rtt_fairness, MUST, (drawn.FAIRNESS,),
    ),
    RfcSection(
        "7.1", "Buffer size", "How much of the burst absorption is the size of the buffer?",
        cases.buffers, rules.bursts, MAY, (drawn.BUFFERS,),
    ),
    RfcSection(
        "7.2", "Burst absorption", "How do pages and video frames fare that arrive in bursts?",
        cases.bursts, rules.bursts, MUST, (drawn.BURSTS, drawn.BURST_TRADEOFF),
    ),
    *(
        RfcSection(
            number, f"{flows.capitalize()} congestion",
            f"Bulk flows that make {flows} congestion with drop-tail.",
            cases.level(flows), rules.levels, figures=(drawn.LEVELS, drawn.LOSSES),
        )
        for number, flows in (("8.2.2", "mild"), ("8.2.3", "medium"), ("8.2.4", "heavy"))
    ),
    RfcSection(
        "8.2.5", "Varying congestion", "How does the queue follow a load that changes every 20 s?",
        cases.changing_load, rules.phases, MUST, (drawn.CHANGING, drawn.LOAD_PHASES),
    ),
    RfcSection(
        "8.2.6", "Varying capacity",
        "How does the queue follow a capacity that changes by a factor of ten?",
        cases.changing_capacity, rules.phases, MUST,
        (drawn.SLOW, drawn.FAST, drawn.CAPACITY_PHASES, drawn.WIRELESS),
    ),
    RfcSection(
        "8.3", "Parameter sensitivity and stability",
        "What does its main parameter move, and how steady is its queue under other conditions?",
        cases.sensitivity, rules.sensitivity, SHOULD, (drawn.SENSITIVITY, drawn.STEADINESS),
        alone=True,
    ),
    RfcSection(
        "9.1", "Traffic mix", "How do calls, pages, video and bulk flows fare together?",
        cases.mix, mixes.mix, "recommended", (drawn.MIX, drawn.MIX_QUALITY),
    ),
    RfcSection(
        "9.2", "Bidirectional traffic",
        "Mild congestion, and the mix, both ways: how do both directions fare, and how many "
        "acknowledgements are lost?",
        cases.both_ways, mixes.bidirectional, MAY,
        (drawn.DIRECTIONS, drawn.ACKS, drawn.MIX_BOTH, drawn.MIX_BOTH_QUALITY),
    ),
    RfcSection(
        "10.2", "Several AQMs", "Two queues in a row: does one disturb the other?",
        cases.in_series, rules.in_series, MAY, (drawn.IN_SERIES, drawn.BEHIND),
    ),
)  # fmt: skip
"""In the order of the RFC."""


def sections(wanted: Sequence[str] = ()) -> list[RfcSection]:
    """The sections whose numbers are `wanted`, or begin so (`8.2`); all if none is.

    Raises `InputError` for an unknown number.
    """
    wanted = each_of(wanted)
    for number in wanted:
        if not any(_within(each.number, number) for each in SECTIONS):
            raise unknown("section", number, [each.number for each in SECTIONS], key="only")
    return [
        each
        for each in SECTIONS
        if not wanted or any(_within(each.number, number) for number in wanted)
    ]


def _within(number: str, wanted: str) -> bool:
    return f"{number}.".startswith(f"{wanted}.")
