"""The scenarios of RFC 7928, a module for each group of sections.

A module has `SECTIONS`: what is run for each section, as functions that give the cases of
one discipline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aqmlab.characterize.case import Case
from aqmlab.characterize.environment import Contender, Environment

Maker = Callable[[Environment, Contender, Sequence[Contender]], list[Case]]
"""Gives the cases of one discipline; the last argument is all that are compared."""


@dataclass(frozen=True)
class Section:
    """A section of RFC 7928."""

    number: str
    title: str
    question: str
    """What is asked there, in one sentence."""
    cases: Maker
    requirement: str = ""
    """Of RFC 7928, section 13: must, should, recommended or may be considered."""


def all_sections() -> list[Section]:
    """Every section, in the order of the RFC."""
    from aqmlab.characterize.sections import (
        bursts,
        methodology,
        mixes,
        profiles,
        rtt,
        series,
        stability,
    )

    modules = (methodology, profiles, rtt, bursts, stability, mixes, series)
    return [section for module in modules for section in module.SECTIONS]
