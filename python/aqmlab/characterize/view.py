"""What a rule of the verdict looks at: one section, the discipline, and one other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from aqmlab.campaign.outcomes import Measured, measured
from aqmlab.campaign.rule import Replicated, picks

if TYPE_CHECKING:
    from aqmlab.characterize.environment import Environment
    from aqmlab.characterize.measure import Measures


@dataclass(frozen=True)
class View(Replicated):
    """One section with the discipline and one other, over all replications or one draw of them."""

    measures: Measures
    environment: Environment
    section: str
    own: str
    other: str
    has_flow_queues: bool = False
    """Whether the discipline has a queue for each flow."""
    number: int | None = None
    """Number of the draw of the replications."""

    @cached_property
    def replications(self) -> int:  # type: ignore[override]
        """Number of replications."""
        return self.measures.replications

    def drawn(self, number: int) -> View:
        """The same for one draw of the replications."""
        return replace(self, number=number)

    def cases(self) -> list[str]:
        """The cases that both have."""
        theirs = self.measures.names(self.section, self.other)
        return [each for each in self.measures.names(self.section, self.own) if each in theirs]

    def mean(
        self, case: str, discipline: str, subject: str, measure: str, section: str = ""
    ) -> float:
        """The mean over the replications that have a value; NaN if none has."""
        each = self.measures.each(section or self.section, case, discipline, subject, measure)
        if self.number is not None:
            each = each[picks(self.replications)[self.number]]
        kept = each[np.isfinite(each)]
        return float(kept.mean()) if kept.size else float("nan")

    def pair(self, case: str, subject: str, measure: str) -> tuple[float, float]:
        """Means of the discipline and of the other."""
        return (
            self.mean(case, self.own, subject, measure),
            self.mean(case, self.other, subject, measure),
        )

    def both(
        self, measure: str, *subjects: str, cases: Sequence[str] | None = None
    ) -> tuple[float, float]:
        """Geometric means over the cases (all if none are given) and subjects (`down` if none
        is); those without either are passed over."""
        chosen = self.cases() if cases is None else cases
        pairs = [
            self.pair(case, subject, measure) for case in chosen for subject in subjects or ["down"]
        ]
        return geometric(pairs)

    def average(
        self, measure: str, subject: str, cases: Sequence[str] | None = None
    ) -> tuple[float, float]:
        """Arithmetic means over the cases that have both."""
        chosen = self.cases() if cases is None else cases
        pairs = [self.pair(case, subject, measure) for case in chosen]
        kept = [(a, b) for a, b in pairs if isfinite(a) and isfinite(b)]
        if not kept:
            return float("nan"), float("nan")
        own, other = np.mean(np.array(kept), axis=0)
        return float(own), float(other)

    def measured(self, of: Callable[[View], float], *edges: float) -> Measured:
        """A number that is computed from the means, with its interval over the replications."""
        return measured(self, of, edges)


def geometric(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The geometric means of the pairs whose numbers are above 0; NaN without."""
    kept = [(a, b) for a, b in pairs if a > 0 and b > 0]
    if not kept:
        return float("nan"), float("nan")
    own, other = np.exp(np.mean(np.log(np.array(kept)), axis=0))
    return float(own), float(other)
