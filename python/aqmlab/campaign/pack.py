"""Packs: questions, each with cases to run, readings of them, and rules that answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from aqmlab.campaign.rule import Rule
from aqmlab.metrics.samples import Floats
from aqmlab.numbers import finite
from aqmlab.report.document import Estimate
from aqmlab.stats import UNBOUNDED, Bounds, estimate

if TYPE_CHECKING:
    from aqmlab.campaign.outcomes import Beside, Outcome
    from aqmlab.campaign.plan import Campaign, Filled
    from aqmlab.metrics import Metric
    from aqmlab.report.document import Block, Figure, Section

Table = Mapping[str, Any]
Draw: TypeAlias = "Callable[[Campaign], Figure | None]"


@dataclass(frozen=True)
class Case:
    """A scenario with one slot to fill."""

    name: str
    fill: Callable[[Any], Table | None]
    """The whole scenario with a contender in the slot; None if there is none with this one."""
    place: Callable[[Any], float | None] = lambda _: None
    """Place of the case on the axis of its question, such as a round-trip time; of a contender."""
    ground: Table = field(default_factory=dict)
    """The scenario without a contender: a baseline must have the same one. Empty: not compared."""


@dataclass(frozen=True)
class Reading:
    """A metric of one case, subject and time window."""

    case: str
    metric: str
    subject: str
    """Link or group of flows; empty where the metric says it."""
    unit: str
    direction: int
    """1 if more is better, -1 if less is, 0 if neither."""
    values: Floats
    """One value a replication."""
    grain: float = 0.0
    """In `unit`; a page orders differences as shares of at least twenty of it."""
    window: tuple[float, float] | None = None
    """Begin and end in seconds; None for the time from the warm-up to the end."""
    bounds: Bounds = UNBOUNDED
    """The least and the largest value that the mean can have."""
    event: float = 0.0
    """Change of a value by one rare event, in `unit` (`Metric.event`)."""

    @property
    def label(self) -> str:
        """`four-flows, down, sojourn_p95`."""
        return ", ".join(each for each in (self.case, self.subject, self.metric) if each)

    @property
    def mean(self) -> float:
        """The mean over the replications that have a value, NaN if none has."""
        kept = self.values[np.isfinite(self.values)]
        return float(np.clip(kept.mean(), *self.bounds)) if kept.size else float("nan")

    @cached_property
    def estimate(self) -> Estimate:
        """The mean with its 95 % interval."""
        kept = self.values[np.isfinite(self.values)]
        if not kept.size:
            return Estimate(float("nan"))
        found = estimate(kept, bounds=self.bounds, event=self.event)
        return Estimate.of(replace(found, value=self.mean), self.values.size)

    def to_json(self) -> dict[str, Any]:
        """All of it; docs/packs.md describes the keys."""
        found = self.estimate
        keys = ("case", "metric", "subject", "unit", "direction")
        return {key: getattr(self, key) for key in keys} | {
            "window": list(self.window) if self.window else None,
            "mean": None if np.isnan(found.value) else found.value,
            "low": found.low,
            "high": found.high,
            "values": [finite(float(each)) for each in self.values],
        }


@dataclass(frozen=True)
class Question:
    """One question of a document: its runs, readings and judgement."""

    id: str
    title: str
    text: str
    """What the document asks, in its words or close to them."""
    cases: tuple[Case, ...]
    """Equal scenarios are run once, also those of different questions."""
    rules: tuple[Rule[Any, Any], ...] = ()
    """Judge `Filled`, the results of one contender."""
    read: Callable[[Filled], Sequence[Reading]] = lambda _: ()
    figures: tuple[Draw, ...] = ()
    """None where a figure has no data; `aqmlab.campaign.figures` has the common kinds."""
    judge: Callable[[Beside], Outcome] | None = None
    """Outcome of the first contender beside another one."""
    alone: bool = False
    """True if `judge` uses the first contender only."""
    source: str = ""
    """Document and section."""
    group: str = ""
    """Group of questions on the page, of `Pack.groups`."""
    level: str = ""
    """How the document asks: MUST, SHOULD, considered."""


@dataclass(frozen=True)
class Pack:
    """A list of questions."""

    name: str
    title: str
    questions: tuple[Question, ...]
    source: str = ""
    replications: int = 20
    seed: int = 1
    contenders: Mapping[str, Any] = field(default_factory=dict)
    """Contenders for the slot by name; callers may add more."""
    beside: tuple[str, ...] = ()
    """Names of the contenders that the first one is compared with: by the question's `judge`, else
    reading by reading."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Groups of questions, with their titles."""
    lead: str = ""
    """Introduction of the page."""
    notes: tuple[str, ...] = ()
    """What a reader has to know."""
    untested: tuple[Mapping[str, str], ...] = ()
    """Criteria that simulations cannot answer: `criterion`, `source`, `level`, `why`."""
    pool: Callable[[str], str] | None = None
    """Class of a group of flows. With it, metrics of flows are those of a class along its path, and
    their sum as those of `all`; without it, those of a group in its worse direction."""
    metrics: tuple[Metric, ...] = ()
    """Metrics that only this pack has."""
    scenario: Table | None = None
    """The scenario that cases are settings of; None: cases are whole scenarios."""
    axis: str = "case"
    """Name of the axis of the study that is run."""
    where: str = ""
    """The path of the cases in words."""
    file: str = ""
    """File that it was read from; files that its scenarios name are looked up beside it."""
    arrange: Callable[[Campaign, list[Section]], Sequence[Block]] | None = None
    """Adds sections to those of the questions, or orders them."""
