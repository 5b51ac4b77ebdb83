"""Statements of a study as rules: one statement, one answer.

A `Rule` separates what is measured from how it is judged. `refuted_by` is a result that refutes
the statement: the tests feed it to the rule, which has to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from aqmlab.reproduce.measure import Measurements
from aqmlab.reproduce.model import Claim
from aqmlab.reproduce.verdicts import FAILS, HOLDS

Found = TypeVar("Found")
Part = TypeVar("Part")


@dataclass(frozen=True)
class Rule(Generic[Part, Found]):
    """One statement of a document, and the result that decides it."""

    id: str
    text: str
    """The statement, with the place where the document makes it."""
    rule: str
    """The rule in words, as the evidence shows it."""
    measure: Callable[[Part], Found | None]
    """The result by which the statement is judged; None if it was not run."""
    holds: Callable[[Found], bool]
    told: Callable[[Found], str]
    """The result in words, without a full stop."""
    refuted_by: Found
    """A result that refutes the statement."""
    beside: Callable[[Part], str] | None = None
    """Results of other settings in words: shown, but not part of the verdict."""

    def claim(self, part: Part) -> Claim | None:
        """The statement with its verdict; None if what it needs was not run."""
        found = self.measure(part)
        if found is None:
            return None
        evidence = f"Rule: {self.rule}. Found: {self.told(found)}."
        beside = self.beside(part) if self.beside else ""
        if beside:
            evidence += f" Beside it, not counted: {beside}."
        return Claim(self.id, self.text, HOLDS if self.holds(found) else FAILS, evidence)


def checked(rules: Iterable[Rule[Measurements, Any]], part: Measurements | None) -> list[Claim]:
    """The statements for which `part` has what they need, in order."""
    if part is None:
        return []
    return [claim for rule in rules if (claim := rule.claim(part))]
