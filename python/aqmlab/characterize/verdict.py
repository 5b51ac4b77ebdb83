"""The verdict on a discipline: one line a section, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aqmlab.campaign.outcomes import (
    BETTER,
    EVEN,
    OPEN,
    TRADE,
    UNDECIDED,
    VIOLATION,
    WORSE,
    Finding,
)
from aqmlab.characterize.view import View

if TYPE_CHECKING:
    from aqmlab.characterize import Characterization
    from aqmlab.characterize.questions import Section


@dataclass(frozen=True)
class Line:
    """The verdict on a section."""

    section: Section
    findings: dict[str, Finding]
    """By the other discipline; drop-tail is the first."""

    @property
    def main(self) -> Finding:
        """Against drop-tail."""
        return next(iter(self.findings.values()))

    @property
    def is_alone(self) -> bool:
        """Whether the rule looks at the discipline alone."""
        return self.section.is_alone


@dataclass(frozen=True)
class Verdict:
    """All lines."""

    discipline: str
    lines: tuple[Line, ...]

    def of(self, outcome: str) -> list[Line]:
        """The lines with an outcome against drop-tail."""
        return [line for line in self.lines if line.main.outcome == outcome]

    def counts(self) -> dict[str, int]:
        """How many sections have each outcome, those that some have."""
        order = (BETTER, TRADE, EVEN, WORSE, VIOLATION, UNDECIDED, OPEN)
        return {each: len(self.of(each)) for each in order if self.of(each)}

    def headline(self) -> str:
        """The verdict in one sentence."""
        judged = [line for line in self.lines if line.main.outcome != OPEN]
        parts = [
            f"{len(self.of(outcome))} {words}"
            for outcome, words in (
                (BETTER, "better"),
                (TRADE, "a trade-off"),
                (EVEN, "even"),
                (WORSE, "worse"),
                (VIOLATION, "against what the IETF recommends"),
                (UNDECIDED, "not decided"),
            )
            if self.of(outcome)
        ]
        other = next(iter(self.lines[0].findings))
        count = f"{len(judged)} section{'s' if len(judged) != 1 else ''}"
        return f"Of {count} of RFC 7928, {self.discipline} is against {other}: {', '.join(parts)}."

    def to_json(self) -> list[dict[str, Any]]:
        """One object a section and other discipline."""
        return [
            {
                "section": line.section.number,
                "title": line.section.title,
                "against": other,
                "outcome": found.outcome,
                "possible": list(found.possible) or [found.outcome],
                "evidence": found.text,
            }
            for line in self.lines
            for other, found in line.findings.items()
        ]


def judge(characterization: Characterization) -> Verdict:
    """Applies each section's rule, against each other discipline."""
    plan = characterization.plan
    lines = [
        Line(section, _findings(characterization, section, characterization.others))
        for section in plan.sections
    ]
    return Verdict(characterization.discipline, tuple(lines))


def _findings(
    characterization: Characterization, section: Section, others: Iterable[str]
) -> dict[str, Finding]:
    plan, found = characterization.plan, {}
    own = plan.contenders[characterization.discipline]
    for other in others:
        view = View(
            characterization.measures,
            plan.environment,
            section.number,
            own.name,
            other,
            own.has_flow_queues,
        )
        found[other] = section.rule(view)
    return found
